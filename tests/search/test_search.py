"""Whole searches: with the policy that ships, and taken up after whatever ended them."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from random import Random

import numpy as np
import pytest

pytest.importorskip("transformers")

from vpo.search.config import SearchConfig
from vpo.search.log import CANDIDATES, GENERATIONS
from vpo.search.result import families_of, merge_seeds, only_solved, read_result
from vpo.search.run import search_into
from vpo.util.stored import read_log

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages

SMALL = SearchConfig(
    model="embedded",
    task="maze",
    task_settings={"size": 7},
    problems=4,
    targets=("gold=1", "diamond=1"),
    answers=3,
    iterations=5,
    processes=0,
)
STRATEGIES = ("best_of_n", "evolve", "tree")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("search") / "whole"
    return folder, search_into(folder, SMALL)


def lines(folder, name):
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def same(one, other):
    """Whether two folders hold the same search; candidates may have been scored in another order."""
    assert lines(one, GENERATIONS) == lines(other, GENERATIONS)
    key = lambda row: (row["case"], row["number"])  # noqa: E731
    assert sorted(lines(one, CANDIDATES), key=key) == sorted(lines(other, CANDIDATES), key=key)
    assert json.loads((one / "archive.json").read_text()) == json.loads((other / "archive.json").read_text())


def test_the_log_is_complete(whole):
    folder, result = whole
    generations, candidates = lines(folder, GENERATIONS), lines(folder, CANDIDATES)
    assert [row["number"] for row in generations] == list(range(len(generations)))
    assert len({row["case"] for row in generations if row["iteration"] == 0}) == 8
    operators = {row["operator"] for row in generations}
    assert {"fresh", "branch"} <= operators
    by_generation = {row["number"]: row for row in generations}
    for row in candidates:
        made = by_generation[row["generation"]]
        assert row["position"] > made["known"]
        assert all(row[name] == made[name] for name in ("case", "iteration", "operator", "parent"))
        assert (made["parent"] is None) == (made["operator"] == "fresh")
        if made["operator"] == "branch" and row["position"] == 1 and row["answer"] is not None:
            assert made["text"].startswith("<answer_1>" + row["answer"])
            (parent,) = (each for each in candidates if (each["case"], each["number"]) == (row["case"], made["parent"]))
            assert row["answer"] != parent["answer"]  # what stood there was barred
    solved = {row["case"] for row in candidates if row["solved"]}
    assert result.solved == solved
    for case in solved:  # nothing is generated once a case is solved
        first = min(
            by_generation[row["generation"]]["iteration"] for row in candidates if row["solved"] and row["case"] == case
        )
        assert max(row["iteration"] for row in generations if row["case"] == case) == first
    assert result.spent["answers"].sum() == len(candidates)
    assert result.spent["tokens"].sum() == sum(row["tokens"] for row in generations)


def test_values_are_those_of_the_goal(whole):
    from vpo.tasks.maze import MazeTask

    task = MazeTask(size=7)
    mazes = {maze.id: maze for maze in task.problems("test", count=4)}
    for row in lines(whole[0], CANDIDATES):
        problem, goal = row["case"].split(" ")
        index = {"gold=1": 1, "diamond=1": 2}[goal]
        weights = np.eye(4)[index]
        if row["answer"] is None:
            assert (row["scores"], row["value"], row["failure"]) == (None, 0.0, "the completion has no such answer")
        else:
            scores = task.score(mazes[problem], row["answer"])
            assert row["scores"] == pytest.approx(scores)
            assert row["value"] == pytest.approx(scores[index])
            assert row["solved"] == (scores[index] >= task.best(mazes[problem], weights) - 1e-9)


def test_a_family_leads_from_a_fresh_sample_to_the_solution_or_the_best(whole):
    folder, result = whole
    for case, members in families_of(folder).items():
        line = [each for each in members if each["ancestor"]]
        assert line[0]["parent"] is None
        assert line[-1]["solved"] == (case in result.solved)
        assert line[-1]["value"] == max(each["value"] for each in members)
        assert [each["parent"] for each in line[1:]] == [each["number"] for each in line[:-1]]


@pytest.mark.parametrize("answers", [1, 3])
def test_a_tree_continues_its_parents_exactly(answers, tmp_path):
    search_into(tmp_path / "a", replace(SMALL, strategy="tree", answers=answers, iterations=12))
    candidates = lines(tmp_path / "a", CANDIDATES)
    by_number = {(row["case"], row["number"]): row for row in candidates}
    continued = [row for row in candidates if row["operator"] == "branch" and row["position"] == 1 and row["answer"]]
    assert len(continued) > 10
    for row in continued:
        parent = by_number[row["case"], row["parent"]]["answer"]
        assert row["answer"][: row["kept"]] == parent[: row["kept"]]
        assert row["answer"] != parent  # what stood there was barred
        if len(parent) > row["kept"] < len(row["answer"]):
            assert row["answer"][row["kept"]] != parent[row["kept"]]


@pytest.fixture(scope="module")
def whole_tree(tmp_path_factory):
    folder = tmp_path_factory.mktemp("search") / "tree"
    return folder, search_into(folder, replace(SMALL, strategy="tree"))


@pytest.mark.filterwarnings("ignore:.*(the last line is cut off|generations are missing)")
@pytest.mark.parametrize("strategy", ["evolve", "tree"])
@pytest.mark.parametrize("seed", range(10))
def test_a_search_that_was_cut_off_anywhere_ends_the_same(strategy, seed, request, tmp_path):
    """Both logs are cut at a random byte, as a kill or a full disk may leave them; generations come first."""
    whole = request.getfixturevalue("whole" if strategy == "evolve" else "whole_tree")
    folder = tmp_path / "cut"
    shutil.copytree(whole[0], folder)
    rng = np.random.default_rng(seed)
    iteration = int(rng.integers(0, 5))
    kept = [row for row in lines(folder, GENERATIONS) if row["iteration"] <= iteration]
    text = "".join(json.dumps(row) + "\n" for row in kept)
    torn = seed % 2 == 1  # in the middle of writing generations, or of scoring them
    if torn:
        begun = len("".join(json.dumps(row) + "\n" for row in kept if row["iteration"] < iteration))
        text = text[: int(rng.integers(begun, len(text)))]
    (folder / GENERATIONS).write_text(text)
    text = (folder / CANDIDATES).read_text()
    first = min(row["number"] for row in lines(whole[0], GENERATIONS) if row["iteration"] == iteration)
    begun = text.index(f'{{"generation": {first},')
    (folder / CANDIDATES).write_text(text[:begun] if torn else text[: int(rng.integers(begun, len(text)))])
    (folder / "ended.json").unlink()
    search_into(folder, replace(SMALL, strategy=strategy))
    same(folder, whole[0])


def test_a_log_that_is_torn_inside_a_character_is_read(tmp_path):
    log = tmp_path / "log.jsonl"
    log.write_bytes('{"a": "é"}\n{"a": "é'.encode()[:-1])
    with pytest.warns(UserWarning, match="log.jsonl:2: the last line is cut off, and is left out"):
        assert read_log(log, {}) == [{"a": "é"}]


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_kill_9_at_ten_random_moments_and_the_same_in_the_end(strategy, tmp_path):
    """One search is killed ten times, each time once it has written some more, and resumed by the same command."""
    command = [sys.executable, "-W", "ignore", "-m", "vpo", "search", "embedded", "--task", "maze", "--set", "size=7"]
    command += ["--problems", "6", "--answers", "1", "--iterations", "1000", "--budget", "tokens=1500"]
    command += ["--reward", "goal.py:never", "--strategy", strategy, "--no-baseline", "--processes", "1"]
    unsolvable(tmp_path)
    run = {"cwd": tmp_path, "env": {**os.environ, "OMP_NUM_THREADS": "1"}}
    subprocess.run([*command, "--out", "whole"], **run, check=True, capture_output=True)
    whole, killed = (tmp_path / name / f"embedded-{strategy}" for name in ("whole", "killed"))
    written = lambda folder: sum(path.stat().st_size for path in folder.glob("*.jsonl"))  # noqa: E731
    random, total = Random(strategy), written(whole)
    moments = sorted(random.random() * 0.95 for _ in range(10))
    for moment in moments:
        process = subprocess.Popen([*command, "--out", "killed"], **run, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        deadline = time.monotonic() + 120
        while written(killed) < moment * total:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(random.random() / 100)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert not (killed / "ended.json").exists()
    subprocess.run([*command, "--out", "killed"], **run, check=True, capture_output=True)
    same(killed, whole)
    assert read_result(killed).spent["tokens"].tolist() == [1500] * 6


def test_a_longer_search_continues(whole, tmp_path):
    search_into(tmp_path / "a", replace(SMALL, iterations=2))
    search_into(tmp_path / "a", SMALL)
    same(tmp_path / "a", whole[0])


def test_processes_change_nothing(whole, tmp_path):
    search_into(tmp_path / "a", replace(SMALL, processes=2))
    same(tmp_path / "a", whole[0])


def test_fewer_iterations_are_shown_on_request(whole, tmp_path):
    shutil.copytree(whole[0], tmp_path / "a")
    result = search_into(tmp_path / "a", replace(SMALL, iterations=2))
    assert result.spent["iterations"].max() == 2
    assert result.spent["answers"].sum() < whole[1].spent["answers"].sum()


@pytest.mark.parametrize(("unit", "most"), [("answers", 6), ("generations", 2), ("tokens", 60)])
def test_a_budget_ends_a_case(unit, most, tmp_path):
    result = search_into(tmp_path / "a", replace(SMALL, budget={unit: most}, targets=("gold=1,diamond=1",), problems=2))
    unsolved = ~np.isfinite(result.solved_at[unit])
    assert unsolved.any()
    assert (result.spent[unit][unsolved] == most).all()
    assert (result.spent[unit] <= most).all()
    assert result.spent["iterations"].max() < 5
    with pytest.raises(ValueError, match=r"holds another search \(it differs in budget\)"):
        search_into(tmp_path / "a", replace(SMALL, targets=("gold=1,diamond=1",), problems=2))


def unsolvable(folder):
    """A goal that no answer reaches."""
    (folder / "goal.py").write_text("def never(answer, scores, problem):\n    return 0.5\n")
    return {"targets": (), "rewards": (f"{folder}/goal.py:never",)}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    ("answers", "unit", "most"), [(3, "answers", 10), (1, "answers", 10), (1, "generations", 4), (1, "tokens", 200)]
)
def test_a_budget_is_exact_also_where_it_ends_within_an_iteration(strategy, answers, unit, most, tmp_path):
    config = replace(SMALL, strategy=strategy, answers=answers, budget={unit: most}, problems=2, iterations=20)
    config = replace(config, **unsolvable(tmp_path))
    whole, resumed = tmp_path / "whole", tmp_path / "resumed"
    assert search_into(whole, config).spent[unit].tolist() == [most] * 2
    search_into(resumed, replace(config, iterations=1))
    assert search_into(resumed, config).spent[unit].tolist() == [most] * 2
    same(whole, resumed)
    generations = lines(whole, GENERATIONS)
    counted = {"answers": len(lines(whole, CANDIDATES)), "generations": len(generations)}
    counted["tokens"] = sum(row["tokens"] for row in generations)
    assert counted[unit] == most * 2


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("answers", "most"), [(3, 40), (1, 7)])
def test_a_budget_in_tokens_caps_the_last_generations(strategy, answers, most, tmp_path):
    config = replace(SMALL, strategy=strategy, answers=answers, budget={"tokens": most}, iterations=40)
    result = search_into(tmp_path / "a", replace(config, **unsolvable(tmp_path)))
    assert result.spent["tokens"].tolist() == [most] * 4


def test_a_policy_that_writes_no_answers_is_recorded(tmp_path, monkeypatch):
    from vpo.search.generators import Generation
    from vpo.search.setup import SearchSetup

    class Mute:
        def generate(self, requests, seed):
            return [Generation("well", 3) for _ in requests]

    monkeypatch.setattr(SearchSetup, "new_generator", lambda _: Mute())
    result = search_into(tmp_path / "a", replace(SMALL, iterations=2))
    assert result.failures == {"the completion has no such answer": 8 * 3 * 2}
    assert not result.solved


def test_another_search_needs_another_folder(whole, tmp_path):
    shutil.copytree(whole[0], tmp_path / "a")
    with pytest.raises(ValueError, match=r"holds another search \(it differs in seed\)"):
        search_into(tmp_path / "a", replace(SMALL, seed=1))


def test_single_answers_spend_as_much_an_iteration(tmp_path):
    result = search_into(tmp_path / "a", replace(SMALL, answers=1, iterations=2, targets=("gold=1",)))
    generations = lines(tmp_path / "a", GENERATIONS)
    assert len([row for row in generations if row["iteration"] == 0]) == 4 * 3
    assert (result.spent["answers"] % 3 == 0).all()


def test_a_policy_with_the_target_in_its_prompt_gets_the_weights_of_the_goal(tmp_path, monkeypatch):
    from vpo.search import loop, setup

    stated = []
    request_for_move, locate_model = loop.request_for_move, setup.locate_model

    def with_target_in_prompt(config):
        located, answers = locate_model(config)
        return replace(located, format=replace(located.format, target_in_prompt=True)), answers

    monkeypatch.setattr(loop, "request_for_move", lambda *args: stated.append(args[-1]) or request_for_move(*args))
    monkeypatch.setattr(setup, "locate_model", with_target_in_prompt)
    search_into(tmp_path / "a", replace(SMALL, answers=1, iterations=1, problems=1))
    assert set(stated) == {(0.0, 1.0, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0)}


def test_curves_count_what_is_solved_within_a_budget(whole):
    _, result = whole
    last = result.curve("iterations", [5])[0]
    assert last.mean == pytest.approx(len(result.solved) / 8)
    assert last.low <= last.mean <= last.high
    means = [value.mean for value in result.curve("answers", range(1, 16))]
    assert means == sorted(means)
    assert means[-1] == last.mean
    assert only_solved([result, result]) == [[0, 0], [0, 0]]


def test_seeds_count_with_their_mean(whole, tmp_path):
    one, other = whole[1], search_into(tmp_path / "a", replace(SMALL, seed=3))
    both = merge_seeds([one, other], "both")
    assert both.distinct == one.cases
    assert both.solved == one.solved | other.solved
    for unit in ("iterations", "tokens"):
        budgets = [1, 3, 50, 200]
        curves = [[value.mean for value in each.curve(unit, budgets)] for each in (one, other, both)]
        assert curves[2] == pytest.approx([(a + b) / 2 for a, b in zip(*curves[:2], strict=True)])
    never = one.solved - other.solved, other.solved - one.solved
    assert only_solved([both, one])[0] == [0, len(never[1]) / 2]
    assert only_solved([one, both])[0] == [0, 0]


def test_a_search_with_former_names_of_settings_is_read_and_resumed(whole, tmp_path):
    folder = tmp_path / "a"
    shutil.copytree(whole[0], folder)
    settings = json.loads((folder / "search.json").read_text())
    former = {"problems": "count", "generator": "backend", "population": "size", "max_tokens": "tokens_per_answer"}
    assert former.keys() <= settings.keys()
    (folder / "search.json").write_text(json.dumps({former.get(name, name): settings[name] for name in settings}))
    (folder / "ended.json").unlink()
    assert read_result(folder).settings["problems"] == 4
    search_into(folder, SMALL)
    same(folder, whole[0])
    with pytest.raises(ValueError, match=r"holds another search \(it differs in cases, problems\)"):
        search_into(folder, replace(SMALL, problems=3))
