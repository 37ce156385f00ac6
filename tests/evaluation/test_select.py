"""`vpo select`: what is chosen, what it is worth, what is written; by a weighting, another pool, and a judge."""

import json
import re
from random import Random

import numpy as np
import pytest
from benchmarks.selection import flipped

from tests import oracles
from vpo import InputError, directions, read_pool, set_reward, write_pool
from vpo.cli.main import main
from vpo.evaluation.answer_rows import read_answers
from vpo.evaluation.eval_folder import new_pool_path, write_facts
from vpo.evaluation.judged import judged_by_pool
from vpo.evaluation.select import select
from vpo.evaluation.select_config import SelectConfig
from vpo.evaluation.selection_text import selected_rows
from vpo.evaluation.selection_values import selection_values
from vpo.tasks.maze import MazeTask
from vpo.util.row_files import read_rows


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def row(generation, scores, answer="", problem="p", **more):
    text = answer or f"answer {generation}"
    return {"problem": problem, "generation": generation, "position": 1, "scores": scores, "answer": text, **more}


ALL_ROUNDER = {"a": 0.7, "b": 0.7}
SPECIALISTS = [{"a": 1.0, "b": 0.0}, {"a": 0.0, "b": 1.0}]


@pytest.fixture
def pool(tmp_path):
    """Three all-rounders, of which two are copies, and two specialists."""
    rows = [row(0, ALL_ROUNDER, "round"), row(1, SPECIALISTS[0]), row(2, ALL_ROUNDER, " round\n")]
    rows += [row(3, {"a": 0.7, "b": 0.69}), row(4, SPECIALISTS[1])]
    return write(tmp_path / "pool.jsonl", rows)


def chosen(path, k, config=None, **more):
    answers = read_answers(path)
    rows = answers.problems["p"]
    return [rows[index]["generation"] for index in select(answers, k, config, **more).problems["p"].chosen]


def test_the_cover_has_specialists_where_the_target_has_all_rounders(pool):
    assert chosen(pool, 3) == ["0", "1", "4"]
    assert chosen(pool, 3, SelectConfig(by="target")) == ["0", "3", "1"]
    assert chosen(pool, 1, SelectConfig(by="target"), target={"b": 1.0}) == ["4"]


def test_copies_are_chosen_once_and_smaller_choices_are_beginnings(pool):
    assert chosen(pool, 9) == ["0", "1", "4", "3"]
    for k in (1, 2, 3):
        assert chosen(pool, k) == chosen(pool, 9)[:k]


def test_values_are_those_of_the_sets(pool):
    answers = read_answers(pool)
    scores = np.array([[0.7, 0.7], [1, 0], [0.7, 0.7], [0.7, 0.69], [0, 1]])
    columns = scores @ directions(2).T
    for each in selection_values(answers, select(answers, 3), [1, 2, 3]):
        values = {name: some["weightings"].mean for name, some in each.values.items()}
        picked = [0, 1, 4][: each.k]
        assert values["chosen"] == pytest.approx(set_reward(scores[picked]), abs=1e-9)
        assert values["top"] == pytest.approx(set_reward(scores[[0, 3, 1][: each.k]]), abs=1e-9)
        assert values["random"] == pytest.approx(
            np.mean([oracles.best_at_k(column, each.k) for column in columns.T]), abs=1e-9
        )
        assert values["all"] == pytest.approx(set_reward(scores), abs=1e-9)
        assert oracles.best_set(columns, each.k) <= values["bound"] + 1e-9
        assert each.values["chosen"]["target"].mean == pytest.approx(0.7)
        assert each.differences["random"]["weightings"].mean == pytest.approx(values["chosen"] - values["random"])
        assert each.values["chosen"]["weightings"].low is None  # one problem has no interval


def test_the_order_of_rows_and_objectives_changes_no_value(tmp_path, pool):
    rows = [each for _, each in read_rows(tmp_path / "pool.jsonl")]
    turned = [{**each, "scores": dict(reversed(each["scores"].items()))} for each in reversed(rows)]
    answers = [read_answers(path) for path in (pool, write(tmp_path / "turned.jsonl", turned))]
    values = [selection_values(each, select(each, 3), [3])[0].values["chosen"]["weightings"].mean for each in answers]
    assert values[0] == pytest.approx(values[1], abs=1e-12)


def test_rows_without_a_text_are_chosen_only_where_no_row_has_one(tmp_path):
    rows = [row(0, {"a": 0.0}), {**row(1, {"a": 1.0}), "answer": None}]
    assert chosen(write(tmp_path / "some.jsonl", rows), 2) == ["0"]
    bare = [{name: value for name, value in each.items() if name != "answer"} for each in rows]
    assert chosen(write(tmp_path / "none.jsonl", bare), 2) == ["1", "0"]


def test_rows_without_a_text_count_among_the_sampled_answers(tmp_path, capsys):
    """Four samples, of which two have no text: a random one is worth (1 + 0.5 + 0 + 0) / 4."""
    rows = [row(0, {"a": 1.0}), row(1, {"a": 0.5}), *({**row(n, {"a": 0.0}), "answer": None} for n in (2, 3))]
    path = write(tmp_path / "some.jsonl", rows)
    assert main(["select", path, "--k", "1,4", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["answers"], data["different"]) == (4, 2)
    assert data["notes"][1] == "answers without a text, which are not chosen: 2"
    one, four = (each["values"] for each in data["values"])
    assert one["random"]["target"]["mean"] == pytest.approx(0.375)
    assert four["random"]["target"]["mean"] == one["all"]["target"]["mean"] == 1.0
    assert len(data["chosen"]["p"]) == 2


def test_the_majority_is_the_least_risk(tmp_path):
    texts = ["#### 3", "#### 7", "####  7", "#### 5", "#### 7", "#### 3"]
    path = write(tmp_path / "votes.jsonl", [row(n, {"right": 0.0}, text) for n, text in enumerate(texts)])
    assert chosen(path, 3, SelectConfig(by="mbr")) == ["1", "0", "3"]


def test_scores_do_not_break_the_ties_of_a_majority_vote(tmp_path):
    different = [row(n, {"right": score}) for n, score in enumerate([0.0, 0.2, 1.0])]
    path = write(tmp_path / "different.jsonl", different)
    assert chosen(path, 2, SelectConfig(by="mbr")) == ["0", "1"]
    assert chosen(path, 2, SelectConfig(by="mbr", similarity="words")) == ["0", "1"]
    # Three votes for each of two routes; RRD is the text of one that was sampled twice.
    texts = ["R R D", "RRD", "RRD", "DD", "D D", "d d"]
    routes = write(tmp_path / "routes.jsonl", [row(n, {"gold": n / 5}, text) for n, text in enumerate(texts)])
    assert chosen(routes, 2, SelectConfig(by="mbr"), task=MazeTask()) == ["1", "3"]


def test_votes_can_be_weighed_by_a_verifier(tmp_path):
    rows = [row(0, {"v": 0.1}, "x"), row(1, {"v": 0.1}, "x"), row(2, {"v": 0.9}, "y")]
    path = write(tmp_path / "votes.jsonl", rows)
    assert chosen(path, 1, SelectConfig(by="mbr")) == ["0"]
    assert chosen(path, 1, SelectConfig(by="mbr", weigh_votes=True)) == ["2"]


@pytest.mark.parametrize("similarity", ["exact", "words"])
def test_answers_without_a_score_vote(tmp_path, similarity):
    """A judge that abstains on all copies of x but one, and on y, changes no vote; where votes are weighed, it does."""
    texts = ["z", "z", "x", "x", "x", "y"]
    path = write(tmp_path / "votes.jsonl", [row(n, {"v": 0.5}, text) for n, text in enumerate(texts)])
    answers = read_answers(path)
    known = [row(n, {"v": 0.5}, texts[n]) for n in (0, 1, 2)]
    judged = judged_by_pool(answers, write(tmp_path / "judge.jsonl", known))
    vote = select(answers, 3, SelectConfig(by="mbr", similarity=similarity), judged=judged)
    assert (vote.problems["p"].chosen, vote.problems["p"].top, vote.notes) == ((2, 0, 5), (0, 2), ())
    weighed = select(answers, 3, SelectConfig(by="mbr", similarity=similarity, weigh_votes=True), judged=judged)
    assert weighed.problems["p"].chosen == (0, 2)
    assert weighed.notes[0].endswith("which are not chosen: 3")


def test_the_normal_form_of_a_task_decides_what_is_the_same(tmp_path):
    texts = ["R R D", "RRD", "rrd", "DD", "DD"]
    path = write(tmp_path / "routes.jsonl", [row(n, {"gold": 0.0}, text) for n, text in enumerate(texts)])
    assert MazeTask().normal_form("R R D") == MazeTask().normal_form("RRD")
    assert chosen(path, 1, SelectConfig(by="mbr")) == ["3"]
    assert chosen(path, 1, SelectConfig(by="mbr"), task=MazeTask()) == ["0"]


def test_overlap_of_words_and_of_scores(tmp_path):
    texts = ["the cat sat", "the cat sat down", "a dog"]
    vectors = [{"a": 0.0, "b": 0.0}, {"a": 1.0, "b": 1.0}, {"a": 0.4, "b": 0.4}]
    path = write(tmp_path / "p.jsonl", [row(n, vectors[n], text) for n, text in enumerate(texts)])
    assert chosen(path, 1, SelectConfig(by="mbr", similarity="words")) == ["0"]  # 6/7 + 1 each; the first
    # Agreements with all three: 1 + 0 + 0.6, 0 + 1 + 0.4, 0.6 + 0.4 + 1.
    assert chosen(path, 1, SelectConfig(by="mbr", similarity="scores")) == ["2"]


def test_with_errors_the_choice_hedges(tmp_path):
    """By the scores alone the third answer adds nothing to the first; if one of them is wrong, it does."""
    rows = [row(0, {"a": 1.0, "b": 1.0}), row(1, {"a": 1.0, "b": 0.0}), row(2, {"a": 1.0, "b": 1.0})]
    rows += [row(3, {"a": 0.0, "b": 0.0})]
    path = write(tmp_path / "p.jsonl", rows)
    judged = chosen(path, 2, SelectConfig(error=0.2))
    assert sorted(judged) == ["0", "2"]
    assert sorted(chosen(path, 2, SelectConfig(by="target", error=0.2))) == ["0", "2"]


def test_another_pool_judges_and_the_pool_measures(tmp_path, pool):
    opposite = [
        {**each, "scores": {name: 1 - value for name, value in each["scores"].items()}}
        for _, each in read_rows(tmp_path / "pool.jsonl")
        if each["generation"] != 3
    ]
    judge = write(tmp_path / "judge.jsonl", opposite)
    out = str(tmp_path / "out.jsonl")
    assert main(["select", pool, "--judged", judge, "--by", "target", "--k", "2", "--out", out]) == 0
    written = [each for _, each in read_rows(tmp_path / "out.jsonl")]
    # By the judge both specialists have 0.5, the all-rounder 0.3; generation 3 it does not know.
    assert [each["source_generation"] for each in written] == ["1", "4"]
    assert written[0]["scores"] == {"a": 1.0, "b": 0.0}
    assert written[0]["judged"] == {"a": 0.0, "b": 1.0}
    answers = read_answers(pool)
    notes = select(answers, 2, judged=judged_by_pool(answers, judge)).notes
    assert notes == (f"answers without a score in {judge}, which are not chosen: 1",)


def test_a_judge_with_other_objectives_has_its_own_target(tmp_path, pool):
    target = {"style": 0.25, "tone": 0.75}
    rows = [row(n, {"style": n / 4, "tone": 1 - n / 4}, target=target) for n in range(5)]
    rows = [{**each, "answer": None} for each in rows]  # a judge's pool needs no texts
    judge = write(tmp_path / "judge.jsonl", rows)
    answers = read_answers(pool)
    judged = judged_by_pool(answers, judge)
    selection = select(answers, 1, SelectConfig(by="target"), target={"b": 1.0}, judged=judged)
    assert selection.problems["p"].chosen == (0,)


def test_a_judge_of_other_answers_is_refused(tmp_path, pool):
    judge = write(tmp_path / "judge.jsonl", [row(0, {"a": 1.0}, problem="q")])
    with pytest.raises(InputError, match="problem, generation and position must agree"):
        judged_by_pool(read_answers(pool), judge)


def test_a_judge_of_other_texts_is_refused(tmp_path, pool):
    """Generation 0 differs by its spaces alone, 1 has no text at the judge's; 3 is the first that is another answer."""
    rows = [row(0, ALL_ROUNDER, "round "), {**row(1, SPECIALISTS[0]), "answer": None}]
    rows += [row(n, ALL_ROUNDER, f"other {n}") for n in (3, 4)]
    judge = write(tmp_path / "judge.jsonl", rows)
    message = f"{judge}: the text of problem 'p', generation '3', position 1 is not that of {pool}"
    with pytest.raises(InputError, match=re.escape(message)):
        judged_by_pool(read_answers(pool), judge)
    same = judged_by_pool(read_answers(pool), write(tmp_path / "same.jsonl", rows[:2]))
    assert sorted(same.scores) == [("p", "0", 1), ("p", "1", 1)]


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz", "parquet"])
def test_what_is_written_is_a_pool(tmp_path, pool, ending, capsys):
    out = tmp_path / f"out.{ending}"
    assert main(["select", pool, "--k", "1,3", "--out", str(out), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [each["k"] for each in data["values"]] == [1, 3]
    assert data["chosen"] == {"p": [{"generation": name, "position": 1} for name in ("0", "1", "4")]}
    written = read_pool(out)
    assert written.set_size == 3
    assert written.problems["p"].scores_nD.tolist() == [[0.7, 0.7], [1, 0], [0, 1]]
    assert main(["measure", str(out), "--json"]) == 0
    measured = json.loads(capsys.readouterr().out)["measures"]
    expected = next(each for each in measured if each["at"] == "expected_max")
    assert expected["values"][0]["mean"] == pytest.approx(data["values"][1]["values"]["chosen"]["weightings"]["mean"])


def test_where_fewer_are_chosen_none_is_missing(tmp_path, capsys):
    rows = [row(n, {"a": 1.0}) for n in range(3)] + [row(n, {"a": 0.5}, "same", problem="q") for n in range(3)]
    out = tmp_path / "out.jsonl"
    assert main(["select", write(tmp_path / "pool.jsonl", rows), "--k", "3", "--out", str(out)]) == 0
    assert [each["answers"] for _, each in read_rows(out)] == [3, 3, 3, 1]
    assert read_pool(out).problems["q"].scores_nD.tolist() == [[0.5]]
    capsys.readouterr()
    assert main(["measure", str(out), "--json"]) == 0
    best = json.loads(capsys.readouterr().out)["measures"][0]
    assert (best["by"], best["at"], best["values"][0]["mean"]) == ("answers", 1, 0.75)


def test_objectives_may_differ_between_problems(tmp_path, capsys):
    rows = [row(n, {"test_1": n % 2, "test_2": 1 - n % 2}, solved=n == 2) for n in range(3)]
    rows += [row(n, {"test_1": n / 4}, problem="q", solved=False) for n in range(4)]
    path = write(tmp_path / "pool.jsonl", rows)
    assert main(["select", path, "--k", "2"]) == 0
    output = capsys.readouterr().out
    assert "2 problems, 3.5 answers each, 3.5 different; chosen by cover, for every weighting" in output
    assert "random weightings" in output
    assert "solved" in output
    assert "  chosen − top 2 by w*" in output
    assert f"wrote {tmp_path / 'pool.selected.jsonl'}; next: vpo measure" in output
    assert [each["position"] for _, each in read_rows(tmp_path / "pool.selected.jsonl")] == [1, 2, 1, 2]


@pytest.fixture
def routes(tmp_path):
    """Routes of three mazes, scored by the task: demonstrations and a poor one."""
    return routes_of(tmp_path, 3)


def routes_of(tmp_path, mazes):
    task = MazeTask(size=7)
    rows = []
    for maze in task.problems(count=mazes):
        texts = [*task.demonstrations(maze, 6, Random(0)), "R"]
        rows += [{"problem": maze.id, "completion": f"<answer>{text}</answer>"} for text in texts]
    completions = write(tmp_path / "completions.jsonl", rows)
    path = str(tmp_path / "routes.jsonl")
    assert main(["score", completions, "--task", "maze", "--set", "size=7", "--out", path]) == 0
    return path


def test_an_llm_judge_chooses(tmp_path, routes, capsys):
    pytest.importorskip("openai")
    from tests.endpoint import endpoint
    from tests.rewards.judged import shown_in

    def short(request, number):
        return json.dumps({name: 5 if len(text) < 3 else 1 for name, text in shown_in(request).items()})

    with endpoint(short) as (address, seen):
        (tmp_path / "judge.toml").write_text(
            f'[panel]\nkind = "judge"\nendpoint = "{address}"\nmodel = "m"\n[panel.rubrics]\nbrief = "Short is good."\n'
        )
        arguments = ["select", routes, "--rewards", str(tmp_path / "judge.toml"), "--k", "1", "--by", "target"]
        assert main(arguments) == 2
        assert "rewards needs the questions of the problems: name their task" in capsys.readouterr().err
        assert main([*arguments, "--task", "maze", "--set", "size=7"]) == 0
    texts = {(each["problem"], each["answer"]) for _, each in read_rows(tmp_path / "routes.jsonl")}
    assert len(seen) == len(texts)  # copies are judged once
    assert "maze" in str(seen[0]["messages"]).lower()  # the judge sees the question
    written = [each for _, each in read_rows(tmp_path / "routes.selected.jsonl")]
    assert [each["answer"] for each in written] == ["R"] * 3
    assert [each["judged"] for each in written] == [{"brief": 1.0}] * 3
    assert "by the scores of" in capsys.readouterr().out


@pytest.mark.parametrize("error_of", ["scores", "answers"])
def test_a_judge_that_errs_is_met_with_the_error(tmp_path, error_of):
    """Scores of real routes, wrong one time in five: over 3 judges, the choice that knows of errors is better."""
    answers = read_answers(routes_of(tmp_path, 60))
    rng = np.random.default_rng(0)
    configs = [SelectConfig(), SelectConfig(error=0.2, error_of=error_of)]
    values = [[], []]
    for _ in range(3):
        judged = flipped(answers, 0.2, rng, whole=error_of == "answers")
        for some, config in zip(values, configs, strict=True):
            for name, choice in select(answers, 2, config, judged=judged).problems.items():
                picked = [answers.problems[name][index]["scores"] for index in choice.chosen]
                some.append(set_reward([list(each.values()) for each in picked]))
    assert np.mean(values[1]) > np.mean(values[0]) + 0.01


def test_the_judge_of_the_benchmark_errs_as_often_as_it_says(pool):
    answers = read_answers(pool)
    rng = np.random.default_rng(0)
    judges = [flipped(answers, 0.2, rng).scores for _ in range(500)]
    assert all(judge["p", "0", 1] == judge["p", "2", 1] for judge in judges)  # copies
    assert np.mean([judge["p", "1", 1]["a"] == 0 for judge in judges]) == pytest.approx(0.2, abs=0.05)
    whole = [flipped(answers, 0.2, rng, whole=True).scores["p", "1", 1] for _ in range(500)]
    assert {tuple(each.values()) for each in whole} == {(1.0, 0.0), (0.0, 1.0)}


def test_a_folder_of_an_evaluation_knows_its_task(tmp_path, capsys):
    texts = ["R R D", "RRD", "rrd", "DD", "DD"]
    folder = tmp_path / "eval"
    write_pool(new_pool_path(folder), [row(n, {"gold": 0.0}, text) for n, text in enumerate(texts)])
    write_facts(folder, {"task": "maze", "task_settings": {"size": 7}, "split": "test", "problems": 1, "target": None})
    assert main(["select", str(folder), "--by", "mbr", "--k", "1"]) == 0
    assert "chosen by minimum Bayes risk (exact)" in capsys.readouterr().out
    assert [each["answer"] for _, each in read_rows(folder / "selected.jsonl")] == ["R R D"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--k", "0"], "k must be 1 or more, not 0"),
        (["--by", "luck"], "by must be one of cover, target, mbr, not 'luck'"),
        (["--error", "0.5"], "error must be 0 or more and below 0.5, not 0.5"),
        (["--error", "-1"], "error must be 0 or more, not -1"),
        (["--by", "mbr", "--error", "0.1"], "error must be 0 with --by mbr, not 0.1"),
        (["--error-of", "answers"], "error_of answers needs --error"),
        (["--similarity", "words"], "similarity and weigh_votes need --by mbr"),
        (["--concentration", "0"], "concentration must be greater than 0, not 0"),
        (["--target", "c=1"], "target names 'c', and the objectives of problem 'p' are a, b"),
        (["--out", "POOL"], "out must not be a pool that is read"),
        (["--judged", "POOL", "--rewards", "x.toml"], "give --judged or --rewards, not both"),
        (["--judged", "nowhere.jsonl"], "no such run, folder or pool: nowhere.jsonl"),
        (["--data", "x"], "name it with --task"),
        (["--out", "/nowhere/x.jsonl"], "/nowhere/x.jsonl: no such folder: /nowhere"),
    ],
)
def test_wrong_options_are_one_line(pool, arguments, message, capsys):
    assert main(["select", pool, *(pool if each == "POOL" else each for each in arguments)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_texts_are_needed_where_they_are_compared(tmp_path):
    rows = [{"problem": "p", "generation": n, "position": 1, "scores": {"a": n / 2}} for n in range(2)]
    path = write(tmp_path / "bare.jsonl", rows)
    with pytest.raises(InputError, match="similarity exact needs texts, and problem 'p' has none: choose scores"):
        select(read_answers(path), 1, SelectConfig(by="mbr"))
    assert chosen(path, 1, SelectConfig(by="mbr", similarity="scores")) == ["0"]


def test_rows_name_their_source(pool):
    answers = read_answers(pool)
    rows = list(selected_rows(answers, select(answers, 2)))
    assert [(each["position"], each["source_generation"], each["source_position"]) for each in rows] == [
        (1, "0", 1),
        (2, "1", 1),
    ]
    assert "judged" not in rows[0]
