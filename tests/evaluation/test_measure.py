import json
from pathlib import Path

import numpy as np
import pytest

from vpo import best_at_k, read_pool, write_pool
from vpo.core.targets import parse_target
from vpo.evaluation.compare import compare
from vpo.evaluation.comparison_text import comparison_data, comparison_text
from vpo.evaluation.metrics import BEST, ORACLE_SHARE, PASS, Budget, Metric
from vpo.report.page_tables import seed_table


def make_pool(path, scores_PNMD, names=("gold", "lava"), tokens=10, **more):
    """Write a pool from an array of scores; tokens is a number per generation."""
    rows = []
    for problem, generations in enumerate(scores_PNMD):
        for generation, answers in enumerate(generations):
            for index, scores in enumerate(answers):
                rows.append(
                    {
                        "problem": f"p{problem}",
                        "generation": generation,
                        "position": index + 1,
                        "scores": dict(zip(names, map(float, scores), strict=True)),
                        "solved": bool(np.mean(scores) > 0.8),
                        "tokens": tokens,
                        **more,
                    }
                )
    write_pool(path, rows)
    return read_pool(path)


def value(comparison, section, by, at, pool=0):
    (matching,) = [row for row in comparison.rows if row.metric.data() == {"section": section, "by": by, "at": at}]
    return matching.values[pool]


@pytest.fixture
def scores():
    return np.random.default_rng(0).random((6, 4, 3, 2))  # 6 problems, 4 sets of 3, 2 objectives


def test_a_hand_worked_pool(tmp_path):
    # One problem, two sets of two; under the mean of both objectives: 0, 1 | 0.5, 0.5.
    pool = make_pool(tmp_path / "a.jsonl", [[[[0, 0], [1, 1]], [[1, 0], [0.5, 0.5]]]], tokens=20)
    comparison = compare([pool], ks=[1, 2, 4])
    assert value(comparison, "best@k", "answers", 1).mean == pytest.approx(0.5)
    # Pairs of 0, 1, ½, ½: bests 1, ½, ½, 1, 1, ½.
    assert value(comparison, "best@k", "answers", 2).mean == pytest.approx(4.5 / 6)
    assert value(comparison, "best@k", "answers", 4).mean == pytest.approx(1)
    assert value(comparison, "best@k", "generations", 1).mean == pytest.approx(0.75)  # (1 + ½) / 2
    assert value(comparison, "best@k", "generations", 2).mean == pytest.approx(1)
    assert value(comparison, "best@k", "tokens", 20).mean == pytest.approx(0.75)
    assert value(comparison, "best@k", "tokens", 40).mean == pytest.approx(1)
    assert value(comparison, "pass@k", "answers", 1).mean == pytest.approx(0.25)
    assert value(comparison, "pass@k", "answers", 2).mean == pytest.approx(0.5)  # 3 of 6 pairs hold the solver
    assert value(comparison, "pass@k", "generations", 1).mean == pytest.approx(0.5)
    assert value(comparison, "one generation", "", "first").mean == pytest.approx(0.25)  # (0 + ½) / 2
    assert value(comparison, "one generation", "", "set").mean == pytest.approx(0.75)
    assert value(comparison, "diversity", "", "coverage").mean == pytest.approx(1)
    assert value(comparison, "diversity", "", "distinct").mean == 4
    assert value(comparison, "best@k", "answers", 1).low is None  # one problem has no interval


def test_against_the_core(tmp_path, scores):
    comparison = compare([make_pool(tmp_path / "a.jsonl", scores)], ks=[1, 5, 12])
    flat = scores.reshape(6, 12, 2)
    expected = best_at_k(flat.mean(axis=-1), [1, 5, 12]).mean(axis=0)
    assert [value(comparison, "best@k", "answers", k).mean for k in (1, 5, 12)] == pytest.approx(expected.tolist())
    interval = value(comparison, "best@k", "answers", 5)
    assert interval.low < interval.mean < interval.high


def test_a_target_changes_the_scalar(tmp_path, scores):
    pool = make_pool(tmp_path / "a.jsonl", scores)
    comparison = compare([pool], target=parse_target("lava=2"), ks=[1])
    assert value(comparison, "best@k", "answers", 1).mean == pytest.approx(scores[..., 1].mean())
    comparison = compare([pool], target=parse_target("gold=1, lava=3"), ks=[1])
    mean = 0.25 * scores[..., 0].mean() + 0.75 * scores[..., 1].mean()
    assert value(comparison, "best@k", "answers", 1).mean == pytest.approx(mean)


def test_pools_are_compared_in_pairs(tmp_path, scores):
    a = make_pool(tmp_path / "a.jsonl", scores)
    better = make_pool(tmp_path / "b.jsonl", (scores + 0.01).reshape(6, 12, 1, 2)[:, ::-1])
    comparison = compare([a, better])
    (best,) = [row for row in comparison.rows if row.metric == Metric(BEST, Budget.ANSWERS, 3)]
    # The same answers in another order and 0.01 better: every problem differs by 0.01. Six problems miss whatever has a
    # probability of 1 − 0.025^(1/6) in 2.5% of cases, and that could be a difference of −1 or 1.
    unseen = 1 - 0.025 ** (1 / 6)
    assert best.differences[0].mean == pytest.approx(0.01)
    assert best.differences[0].low == pytest.approx(0.01 - 1.01 * unseen, abs=1e-3)
    assert best.differences[0].high == pytest.approx(0.01 + 0.99 * unseen, abs=1e-3)


def test_objectives_in_another_order_are_matched_by_name(tmp_path, scores):
    a = make_pool(tmp_path / "a.jsonl", scores)
    b = make_pool(tmp_path / "b.jsonl", scores[..., ::-1], names=("lava", "gold"))
    comparison = compare([a, b], target=parse_target("gold=1"))
    for row in comparison.rows:
        assert row.differences[0].mean == pytest.approx(0, abs=1e-12), row


def test_only_shared_problems_are_compared_and_the_rest_is_named(tmp_path, scores):
    a, b = make_pool(tmp_path / "a.jsonl", scores), make_pool(tmp_path / "b.jsonl", scores[:4])
    comparison = compare([a, b])
    assert len(comparison.problems) == 4
    assert any("2 of 6 problems of" in note and "a.jsonl" in note for note in comparison.notes)
    assert value(comparison, "best@k", "answers", 1).mean == pytest.approx(scores[:4].mean())


def test_mixed_pools_report_no_first_and_set_and_say_so(tmp_path):
    rows = [
        {"problem": "p", "generation": g, "position": i, "scores": {"gold": 0.5}} for g, i in ((0, 1), (1, 1), (1, 2))
    ]
    write_pool(tmp_path / "a.jsonl", rows)
    comparison = compare([read_pool(tmp_path / "a.jsonl")])
    assert not any(row.metric.section == "one generation" for row in comparison.rows)
    assert any("first and set are not reported" in note for note in comparison.notes)
    assert value(comparison, "best@k", "generations", 1).mean == pytest.approx(0.5)


def test_missing_answers_and_tokens_are_noted(tmp_path):
    rows = [{"problem": "p", "generation": 0, "position": 1, "scores": {"gold": 1.0}, "answers": 3}]
    write_pool(tmp_path / "a.jsonl", rows)
    comparison = compare([read_pool(tmp_path / "a.jsonl")])
    assert value(comparison, "best@k", "answers", 1).mean == pytest.approx(1 / 3)
    assert any("2 answers missing from their sets" in note for note in comparison.notes)
    assert any("has no field 'tokens'" in note for note in comparison.notes)


def test_distinct_counts_texts_where_there_are_any(tmp_path):
    rows = [
        {"problem": "p", "generation": g, "position": 1, "scores": {"gold": 0.5}, "answer": answer}
        for g, answer in enumerate(["up", "up", "down", None])
    ]
    write_pool(tmp_path / "a.jsonl", rows)
    comparison = compare([read_pool(tmp_path / "a.jsonl")])
    assert value(comparison, "diversity", "", "distinct").mean == 1  # score vectors
    assert value(comparison, "diversity", "", "texts").mean == 2
    # Another pool without texts: what is counted is the same in both, so texts are not.
    write_pool(tmp_path / "b.jsonl", [{**row, "answer": None} for row in rows])
    both = compare([read_pool(tmp_path / "a.jsonl"), read_pool(tmp_path / "b.jsonl")])
    assert not any(row.metric.name == "texts" for row in both.rows)


def test_ragged_pools(tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        {
            "problem": f"p{problem}",
            "generation": generation,
            "position": 1,
            "scores": {f"test_{d}": float(rng.random() < 0.5) for d in range(2 + problem)},
        }
        for problem in range(8)
        for generation in range(3 + problem)
    ]
    write_pool(tmp_path / "a.jsonl", rows)
    comparison = compare([read_pool(tmp_path / "a.jsonl")])
    # The smallest problem has 3 answers; with more than 6 objectives somewhere there is no hypervolume.
    assert "k ends at 3, the answers of problem 'p0'; others have more" in comparison.notes
    assert {row.metric.k for row in comparison.rows if row.metric.budget == Budget.ANSWERS} == {1, 3}
    assert not any(row.metric.name == "hypervolume" for row in comparison.rows)


def test_tokens_make_an_expensive_generation_compare_with_cheap_ones(tmp_path, scores):
    sets = make_pool(tmp_path / "sets.jsonl", scores, tokens=30)
    single = make_pool(tmp_path / "single.jsonl", scores.reshape(6, 12, 1, 2), tokens=10)
    comparison = compare([sets, single])
    budgets = [row.metric.k for row in comparison.at_every_k(BEST, Budget.TOKENS)]
    assert budgets[0] == 30  # one set
    assert budgets[-1] == 120  # everything
    # 30 tokens buy one set of three answers or three single answers.
    expected = best_at_k(scores.reshape(6, 12, 2).mean(axis=-1), 3).mean()
    assert value(comparison, "best@k", "tokens", 30, pool=1).mean == pytest.approx(expected)


def test_all_answers_are_always_reported(tmp_path):
    pool = make_pool(tmp_path / "a.jsonl", np.random.default_rng(0).random((3, 4, 2, 2)))
    comparison = compare([pool])
    assert [row.metric.k for row in comparison.at_every_k(BEST, Budget.ANSWERS)] == [1, 3, 5, 8]
    assert [row.metric.k for row in comparison.at_every_k(BEST, Budget.GENERATIONS)] == [1, 3, 4]
    few = compare([pool], ks=np.array([2, 8]))
    assert [row.metric.k for row in few.at_every_k(BEST, Budget.GENERATIONS)] == [2]
    assert any("by generations k ends at 4" in note for note in few.notes)


def test_expensive_generations_beyond_every_budget(tmp_path, scores):
    """Where one set costs more than the whole of the other pool, there is no budget to compare at."""
    sets = make_pool(tmp_path / "sets.jsonl", scores, tokens=1000)
    single = make_pool(tmp_path / "single.jsonl", scores.reshape(6, 12, 1, 2), tokens=10)
    comparison = compare([sets, single])
    assert not any(row.metric.budget == Budget.TOKENS for row in comparison.rows)
    assert any("no token budget is both" in note for note in comparison.notes)


def test_the_table_marks_certain_differences(tmp_path, scores):
    scores = np.concatenate([scores] * 5) / 2
    a, b = make_pool(tmp_path / "a.jsonl", scores), make_pool(tmp_path / "b.jsonl", scores + 0.5)
    comparison = compare([a, b])
    text = comparison_text(comparison)
    assert "30 problems; answers per generation: 3; target: all objectives alike" in text
    assert "[low, high]: 95% interval over the 30 problems" in text
    assert comparison_data(comparison)["problems"] == 30
    assert "b − a" in text
    assert "+0.500 [+0.326, +0.558] *" in text


def test_equal_columns_have_intervals(tmp_path):
    """Nothing solved in 30 problems: the rate may still be up to 11.6%, as Clopper and Pearson have it."""
    nothing, all_solved = np.zeros((30, 2, 1, 2)), np.ones((30, 2, 1, 2))
    comparison = compare([make_pool(tmp_path / "a.jsonl", nothing), make_pool(tmp_path / "b.jsonl", all_solved)])
    text = comparison_text(comparison)
    assert "0.000 [0.000, 0.116]" in text
    assert "1.000 [0.884, 1.000]" in text
    for row in comparison.rows:
        for interval in (*row.values, *row.differences):
            assert interval.low < interval.high, row.metric


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gold", "target must be written NAME=WEIGHT"),
        ("gold=x", "target must be written NAME=WEIGHT"),
        ("=1", "target must be written NAME=WEIGHT"),
        ("gold=-1", "weights of 0 or more, not 'gold=-1'"),
        ("gold=nan", "weights of 0 or more, not 'gold=nan'"),
        ("gold=0", "target must hold weights of 0 or more, of a sum greater than 0 and finite, not {'gold': 0.0}"),
        ("gold=1,gold=2", "names 'gold' twice"),
        ("", "target must be written NAME=WEIGHT"),
    ],
)
def test_bad_targets_are_named(text, message):
    with pytest.raises(ValueError, match=message):
        parse_target(text)


def test_bad_arguments_are_named(tmp_path, scores):
    a = make_pool(tmp_path / "a.jsonl", scores)
    other = make_pool(tmp_path / "b.jsonl", scores, names=("gold", "speed"))
    with pytest.raises(ValueError, match=r"k must lie in 1\.\.12, the answers of the smallest problem, not 13"):
        compare([a], ks=[13])
    with pytest.raises(ValueError, match=r"k must lie in 1\.\.12.*not 0"):
        compare([a], ks=[0])
    with pytest.raises(ValueError, match=r"target names .silver., and the objectives of problem .p0. are gold, lava"):
        compare([a], target={"silver": 1.0})
    with pytest.raises(ValueError, match="target must sum to 1"):
        compare([a], target={"gold": 2.0})
    with pytest.raises(ValueError, match=r"problem 'p0' has gold, lava in .* and gold, speed in"):
        compare([a, other])
    write_pool(tmp_path / "c.jsonl", [{"problem": "q", "generation": 0, "position": 1, "scores": {"gold": 1}}])
    with pytest.raises(ValueError, match="the pools must share problems"):
        compare([a, read_pool(tmp_path / "c.jsonl")])


@pytest.mark.parametrize(
    ("metric", "data", "title", "label"),
    [
        (Metric(BEST, Budget.ANSWERS, 5), ("best@k", "answers", 5), "best@k, by answers", "best@5"),
        (Metric(PASS, Budget.TOKENS, 120), ("pass@k", "tokens", 120), "pass@k, by tokens", "pass@120"),
        (Metric(ORACLE_SHARE, Budget.ANSWERS, 30), ("share of the oracle", "answers", 30), None, "oracle@30"),
        (Metric("set"), ("one generation", "", "set"), "one generation", "set"),
        (Metric("l1"), ("diversity", "", "l1"), "diversity", "l1"),
    ],
)
def test_a_metric_has_one_form_in_json_and_is_read_back(metric, data, title, label):
    assert tuple(metric.data().values()) == data
    assert list(metric.data()) == ["section", "by", "at"]
    assert Metric.from_data(metric.data()) == metric
    assert metric.label == label
    assert metric.title == (title or "share of the oracle, by answers")


@pytest.mark.parametrize("name", ["demo", "maze9", "maze13", "toolrl"])
def test_stored_results_are_read(name):
    stored = json.loads((Path(__file__).parents[2] / "results" / f"{name}.json").read_text())
    assert stored["measures"]
    for row in stored["measures"]:
        assert Metric.from_data(row).data() == {key: row[key] for key in ("section", "by", "at")}
    if "seeds" in stored:
        table = seed_table(stored["seeds"])
        assert table["head"][:4] == ["run", "seed", "best@1", "best@3"]
