"""`vpo select` by the scores of another pool or of a judge, which may be wrong."""

import json
import re
from random import Random

import numpy as np
import pytest
from benchmarks.selection import flipped

from tests.evaluation.selected import ALL_ROUNDER, SPECIALISTS, chosen, row, small_pool, write
from vpo import InputError, set_reward
from vpo.cli.main import main
from vpo.evaluation.answer_rows import read_answers
from vpo.evaluation.judged import judged_by_pool
from vpo.evaluation.select import select
from vpo.evaluation.select_config import SelectConfig
from vpo.tasks.maze import MazeTask
from vpo.util.row_files import read_rows


@pytest.fixture
def pool(tmp_path):
    return small_pool(tmp_path)


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
