"""The page, opened in a headless browser: what is drawn is what was measured, and nothing goes wrong."""

import json
import os
import re

import numpy as np
import pytest

from tests.evaluation.test_compare import make_evaluation
from tests.report.browser import needs_browser, opened, page_json
from vpo.cli.main import main
from vpo.evaluation.compare import compare_groups
from vpo.evaluation.eval_folder import read_evaluation
from vpo.evaluation.pools import ProblemPool, write_pool
from vpo.report.curves import curves_of
from vpo.report.gallery import sets_of
from vpo.report.page import write_page
from vpo.report.page_data import page_data, positions_of, trade_off, training_curves
from vpo.report.page_head import page_facts

TARGET = {"completion": 0.25, "gold": 0.25, "diamond": 0.25, "avoid_lava": 0.25}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A comparison of a run of one seed and of one of two, with its page."""
    folder = tmp_path_factory.mktemp("page")
    for name, seed, answers in (("grpo", 0, 1), ("vpo-0", 1, 3), ("vpo-1", 2, 3)):
        make_evaluation(folder / name, seed, answers, command=f"vpo eval {name}")
        steps = [
            {"step": step, "entropy": 1 / step, "vpo/diversity": seed + step / 10, "vpo/objective/gold": step / 10}
            for step in (1, 2, 3)
        ]
        (folder / name / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in steps))
    evaluations = [[read_evaluation(folder / "grpo")], [read_evaluation(folder / f"vpo-{seed}") for seed in (0, 1)]]
    comparison = compare_groups([[each.pool for each in group] for group in evaluations], target=TARGET)
    data = page_data(
        comparison,
        evaluations,
        ["grpo", "</script><b>vpo"],
        "vpo compare grpo vpo",
        verdict="Level <i>everywhere</i>.",
        title="A <title>",
    )
    write_page(folder / "report.html", data)
    return folder / "report.html", comparison, data


def best_mean(comparison, group, pair, mix):
    """The mean scores of the answers that are best under a mix of two objectives, one problem at a time."""
    best = []
    for pool in group:
        for name in comparison.problems:
            scores = pool.problems[name].scores_nD[:, [pool.objectives.index(each) for each in pair]].tolist()
            best.append(max(scores, key=lambda row: mix * row[0] + (1 - mix) * row[1]))
    return tuple(sum(row[index] for row in best) / len(best) for index in (0, 1))


@needs_browser
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_opens_without_an_error_and_draws_what_was_measured(made, width):
    page, comparison, data = made
    parsed, console = opened(page, width)
    assert console == []
    assert parsed.seen["width"] <= width  # nothing to scroll aside for
    for run, curves in enumerate(curves_of(comparison)):
        for curve in curves:
            expected = list(zip(curve.budgets, curve.mean, curve.low, curve.high, strict=True))
            assert [pytest.approx(point) for point in expected] == parsed.points[f"by {curve.by}", run]
    x, y = data["fronts"][data["first_front"]]["objectives"]
    for run, group in enumerate(comparison.groups):
        points = [point[:2] for point in parsed.points[f"{x} against {y}", run]]
        assert points[0] == pytest.approx(best_mean(comparison, group, (x, y), 0.02))
        assert points[-1] == pytest.approx(best_mean(comparison, group, (x, y), 0.98))
    assert parsed.lines == [6, 6]  # all six answers of each run are drawn over the maze, the missing one as nothing
    assert [point[:2] for point in parsed.points["diversity", 1]] == [(1, 1.6), (2, 1.7), (3, 1.8)]  # of two seeds
    assert parsed.cells > len(comparison.rows) * 4


@needs_browser
@pytest.mark.parametrize("width", [390, 1280])
def test_a_reader_finds_the_verdict_the_contents_and_the_numbers(made, width):
    page, comparison, data = made
    seen = opened(page, width)[0].seen
    assert seen["verdict"] == "Level <i>everywhere</i>."
    assert "taskmaze (size=7)" in seen["facts"]
    assert "problems5, split test" in seen["facts"]
    assert seen["sections"] == seen["links"] == seen["anchors"]
    assert seen["sections"][:2] == ["best", "gallery"]
    assert seen["made"] == 2  # at the foot, and in the link to it
    assert seen["legend"]  # at the end of the page, too
    assert len(set(seen["ticks"])) == 1  # one range for answers, generations and tokens
    (best, *_, last) = comparison.at_every_k("best@k", "answers")
    for row, said in ((best, seen["first"]), (last, seen["last"]), (last, seen["hovered"])):
        assert said.splitlines()[0] == f"{row.metric.k} answers"
        for run, value in enumerate(row.values):
            line = f"{data['runs'][run]['name']} {value.mean:.3f} [{value.low:.3f}, {value.high:.3f}]"
            assert line in said
    assert seen["escaped"] == ""
    assert seen["hidden"] == "none"
    assert "grpo" in seen["first"]
    assert "grpo" not in seen["without"]


@needs_browser
def test_crossings_are_marked_and_training_is_smoothed(made, tmp_path):
    data = json.loads(json.dumps(made[2]))
    rising = {"by": "answers", "budgets": [1, 2, 3, 4], "low": [None] * 4, "high": [None] * 4}
    means = ([0.5, 0.5, 0.5, 0.5], [0.3, 0.4, 0.6, 0.7])
    levels = ([0.5, 0.5, 0.5, 0.5], [0.5, 0.501, 0.499, 0.5001])  # within the width of a line
    for mean, level, run in zip(means, levels, data["runs"], strict=True):
        run["curves"] = [{**rising, "mean": mean}, {**rising, "by": "tokens", "mean": level}]
        run["training"] = {"step": list(range(9)), "entropy": [float(step % 2) for step in range(9)]}
    write_page(tmp_path / "page.html", data)
    seen = opened(tmp_path / "page.html", 1280)[0].seen
    assert seen["crossings"] == ["grpo and </script><b>vpo cross between 2 and 3 answers"]
    assert seen["smooth"] == 2


def test_the_page_of_one_run_has_a_head_and_no_cost(tmp_path):
    evaluation = read_evaluation(make_evaluation(tmp_path / "vpo", 1, 3, model="org/model"))
    data = page_data(compare_groups([[evaluation.pool]]), [[evaluation]], ["vpo"], "vpo compare vpo")
    assert data["title"] == "maze: vpo"
    facts = dict(data["facts"])
    assert facts.pop("date").startswith("20")
    assert facts == {
        "task": "maze (size=7)",
        "model": "org/model",
        "problems": "5, split test",
        "answers": "6 a problem, 3 a generation",
        "target": "all objectives alike",
    }
    assert [card["title"] for card in data["cards"]] == ["training not logged"]  # its answers took tokens
    assert data["cards"][0]["items"] == [["sampled tokens", "305"], ["tokens an answer", "10.2"]]


def test_the_page_needs_nothing_else_and_carries_its_data(made):
    page, _, data = made
    text = page.read_text()
    assert not re.search(r"(src|href)=|@import|https?://(?!www\.w3\.org)", text)
    assert page_json(page) == json.loads(json.dumps(data))
    assert "<title>A &lt;title&gt;</title>" in text
    assert "vpo eval vpo-1" in data["commands"]


def test_the_points_of_the_page_are_the_numbers_of_the_table(made):
    _, comparison, data = made
    rows = comparison.at_every_k("best@k", "answers")
    assert rows
    for row in rows:
        for run, value in enumerate(row.values):
            (curve,) = [each for each in data["runs"][run]["curves"] if each["by"] == "answers"]
            assert curve["mean"][curve["budgets"].index(row.metric.k)] == pytest.approx(value.mean)


def pool_of(objectives, scores, set_sizes):
    return ProblemPool("p", objectives, set_sizes, np.asarray(scores, dtype=float), None, None, None, missing=0)


def test_positions_share_a_tie():
    problem = pool_of(("gold", "lava"), [[1, 0], [0, 1], [0.5, 0.5], [0, 0]], (2, 2))
    first, second = positions_of([problem], ("gold", "lava"), None)
    assert (first["wins"], second["wins"]) == (0.75, 0.25)  # a tie, then a win of the first
    assert first["mean"] == [0.75, 0.25]


def test_scores_stand_under_their_own_objective_in_whatever_order_a_pool_has_them():
    problem = pool_of(("lava", "gold"), [[0.1, 0.9]], (1,))
    assert positions_of([problem], ("gold", "lava"), None)[0]["mean"] == [0.9, 0.1]
    ((answer,),) = sets_of(problem, ("gold", "lava"), {"gold": 1.0}, None)
    assert answer["scores"] == [0.9, 0.1]
    assert answer["value"] == 0.9


def test_the_front_that_is_shown_first_has_a_trade_off():
    points = {"objectives": ["a", "b"], "runs": [[[1.0, 1.0]] * 3, [[0.2, 0.1]] * 3]}  # far apart, each one point
    line = {"objectives": ["a", "c"], "runs": [[[0.4, 0.5], [0.5, 0.4]], [[0.4, 0.4]] * 2]}
    assert trade_off(points) == 0
    assert trade_off(line) == pytest.approx(0.01)


def test_a_loss_that_ran_away_leaves_a_gap(tmp_path):
    for name, entropies in (("a", (1.0, float("nan"), None)), ("b", (3.0, float("inf"), 5.0))):
        (tmp_path / name).mkdir()
        rows = [{"step": step, "entropy": entropy} for step, entropy in enumerate(entropies, start=1)]
        (tmp_path / name / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert training_curves([tmp_path / "a", tmp_path / "b"]) == {"step": [1, 2, 3], "entropy": [2.0, None, 5.0]}
    (tmp_path / "a" / "metrics.jsonl").write_text("")
    assert training_curves([tmp_path / "a"]) == {}


def test_many_seeds_are_named_by_the_least_and_the_greatest(tmp_path):
    group = []
    for seed in range(12):
        folder = tmp_path / f"vpo-{seed}"
        group.append(read_evaluation(make_evaluation(folder, seed, 3)))
        (folder / "config.toml").write_text(f'model = "tiny"\nseed = {seed}\n[trainer]\n')

    def seeds(some):
        return dict(page_facts(compare_groups([[each.pool for each in some]]), [some]))["seeds"]

    assert seeds(group) == "12, from 0 to 11"
    assert seeds([group[11], group[2], group[0]]) == "0, 2 and 11"


def test_a_page_is_written_of_any_text(tmp_path):
    write_page(tmp_path / "page.html", {"title": "lone \ud800 surrogate", "x": "\udfff"})
    text = (tmp_path / "page.html").read_text()
    assert "<title>lone \\ud800 surrogate</title>" in text
    assert '"x": "\\udfff"' in text


def test_pools_are_compared_whatever_bytes_their_names_are(tmp_path, capsys):
    pools = [str(tmp_path / os.fsdecode(name)) for name in (b"vpo\xff.jsonl", b"grpo.jsonl")]
    for pool in pools:
        rows = [{"problem": n, "generation": 0, "position": 1, "scores": {"a": n / 4}} for n in range(4)]
        write_pool(pool, rows)
    out = tmp_path / "out"
    assert main(["compare", *pools, "--out", str(out)]) == 0
    assert "vpo\\udcff" in capsys.readouterr().out
    for name in ("report.html", "comparison.txt"):
        assert "vpo\\udcff" in (out / name).read_text()
    assert json.loads((out / "comparison.json").read_text())["pools"][0]["path"] == pools[0]
