"""OpenEvolve projects as they are: diffs and rewrites, m answers a completion, programs that cannot be evaluated."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("openevolve")

from tests.endpoint import endpoint
from vpo.tasks.answers import write

EXAMPLES = Path(__file__).parents[3] / "shared" / "data" / "evolve" / "openevolve_examples"
PROGRAM = """LIMIT = 10
# EVOLVE-BLOCK-START
def search():
    x = 3
    return x
# EVOLVE-BLOCK-END
"""
EVALUATOR = """
import importlib.util

def evaluate(program_path):
    spec = importlib.util.spec_from_file_location("program", program_path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {"x": module.search(), "combined_score": -abs(float(module.search()))}  # the best is 0, all others are less
"""
CONFIG = {
    "log_level": "ERROR",
    "random_seed": 7,
    "diff_based_evolution": True,
    "llm": {"models": [{"name": "local"}], "timeout": 20, "retries": 0},
    "database": {"num_islands": 2, "population_size": 20, "archive_size": 10},
    "evaluator": {"timeout": 3, "max_retries": 0, "cascade_evaluation": False},
}
RUN = """
import asyncio, json, sys, warnings
from openevolve.config import load_config
from vpo.search.openevolve.evolution import SetEvolution

program, evaluator, config, answers, iterations = sys.argv[1:]
config = load_config(config)
for model in config.llm.models:
    model.api_base = "ADDRESS"
evolution = SetEvolution(program, evaluator, config, "out", answers=int(answers))
best = asyncio.run(evolution.run(iterations=int(iterations)))
programs = [each.to_dict() for each in evolution.database.programs.values()]
json.dump({"best": best and best.to_dict(), "lost": evolution.lost, "programs": programs}, open("end.json", "w"))
"""


def evolve(folder, answer, iterations, *, answers=3, example=None, check=True, **changes):
    """Run a project, that of `PROGRAM` or an example; returns its end, the rows of its children and the requests."""
    config = {
        **CONFIG,
        **{name: {**CONFIG.get(name, {}), **new} if isinstance(new, dict) else new for name, new in changes.items()},
    }
    files = ["initial_program.py", "evaluator.py", "config.yaml"]
    if example is None:
        for name, text in zip(files, (PROGRAM, EVALUATOR, json.dumps(config)), strict=True):
            if name == "config.yaml" or not (folder / name).exists():
                (folder / name).write_text(text)
    with endpoint(answer) as (address, seen):
        (folder / "run.py").write_text(RUN.replace("ADDRESS", address))
        arguments = [*((example or folder) / name for name in files), answers, iterations]
        run = subprocess.run(
            [sys.executable, "run.py", *map(str, arguments)],
            cwd=folder, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
    if not check:
        return run, seen
    assert run.returncode == 0, run.stderr
    rows = [json.loads(line) for line in (folder / "out" / "children.jsonl").read_text().splitlines()]
    return {**json.loads((folder / "end.json").read_text()), "stderr": run.stderr}, rows, seen


def change(old, new):
    return f"<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE"


def user_message(request):
    return request["messages"][-1]["content"]


def test_each_answer_is_a_set_of_changes_of_the_parent(tmp_path):
    def answer(request, number):
        text = user_message(request)
        assert "Give 3 different answers" in text
        assert "Each answer is one or more SEARCH/REPLACE blocks" in text
        program = text.partition("# Current Program\n")[2].splitlines()
        x, returned = (next(line for line in program if line.startswith(f"    {word}")) for word in ("x = ", "return "))
        both = [f"First\n{change(x, f'    x = {number}.5')}", f"then\n{change(returned, '    return -x')}"]
        return write([change(x, f"    x = 2.{number}"), "\n".join(both), change("    y = 1", "    y = 2")])

    end, rows, seen = evolve(tmp_path, answer, 6)
    assert len(seen) == 2
    assert [row["error"] for row in rows] == [None, None, "no SEARCH block matches the parent program"] * 2
    assert "    x = 2.0\n    return x\n" in rows[0]["code"]
    assert "    x = 0.5\n    return -x\n" in rows[1]["code"]
    for row in rows:
        if row["code"]:
            assert row["code"].count("EVOLVE-BLOCK-START") == row["code"].count("EVOLVE-BLOCK-END") == 1
            assert row["code"].startswith("LIMIT = 10\n")
    best = max((row for row in rows if row["id"]), key=lambda row: row["metrics"]["combined_score"])
    assert end["best"]["metrics"] == best["metrics"]
    assert end["lost"] == {"no SEARCH block matches the parent program": 2}
    assert "2 of 6 children are lost: no SEARCH block matches the parent program (2)" in end["stderr"]


def test_lost_children_are_counted_and_named(tmp_path):
    def answer(request, number):
        if number == 0:
            return "no tags at all"
        return write(["just words", f"{change('    x = 3', '    x = 2')}\n=======", change("    x = 3", "    x = 3")])

    end, rows, _ = evolve(tmp_path, answer, 6)
    assert end["lost"] == {
        "the completion has no such answer": 3,
        "the answer has no SEARCH/REPLACE block": 1,
        "malformed SEARCH/REPLACE block": 1,
        "the SEARCH/REPLACE blocks change nothing": 1,
    }
    assert [bool(row["error"]) for row in rows] == [True] * 6
    assert "6 of 6 children are lost" in end["stderr"]
    assert end["best"]["code"] == PROGRAM


def test_changes_outside_of_the_evolve_block_are_reverted_where_that_is_set(tmp_path):
    def answer(request, number):
        outside = change("LIMIT = 10", "LIMIT = 11")
        return write([f"{outside}\n{change('    x = 3', '    x = 2')}", outside, change("# EVOLVE-BLOCK-END", "")])

    _, rows, _ = evolve(tmp_path, answer, 3, enforce_evolve_blocks=True)
    assert rows[0]["code"] == PROGRAM.replace("x = 3", "x = 2")
    assert rows[1]["error"] == "all changes are outside of the EVOLVE-BLOCK markers"
    assert rows[2]["error"].startswith("EVOLVE-BLOCK markers: ")


def test_early_stopping_ends_a_run_and_a_resumed_one(tmp_path):
    def answer(request, number):
        return write([f"```python\ndef search():\n    return {5 + number + k}\n```" for k in range(3)])

    settings = {"diff_based_evolution": False, "early_stopping_patience": 4}
    _, rows, seen = evolve(tmp_path, answer, 30, **settings)
    assert "Each answer is a complete program" in user_message(seen[0])
    assert len(rows) == 6  # the first child is the best of all; four later ones end the completion
    assert evolve(tmp_path, answer, 30, **settings)[2] == []


def test_a_lost_child_does_not_put_off_early_stopping(tmp_path):
    """All scores are below 0: a lost child that counted 0 would be the best."""

    def answer(request, number):
        programs = [f"```python\ndef search():\n    return {5 + number + k}\n```" for k in range(3)]
        return write([*programs[:2], "", programs[2]])

    settings = {"diff_based_evolution": False, "early_stopping_patience": 2}
    _, rows, _ = evolve(tmp_path, answer, 40, answers=4, **settings)
    assert [row["metrics"] is None for row in rows] == [False, False, True, False]


def test_a_description_of_changes_is_kept(tmp_path):
    def answer(request, number):
        assert "# Changes Description" in user_message(request)
        described = change("nothing so far", f"smaller, {number}")
        return write([f"{described}\n{change('    x = 3', '    x = 2')}", change("    x = 3", "    x = 1")])

    prompt = {"programs_as_changes_description": True, "initial_changes_description": "nothing so far"}
    _, rows, _ = evolve(tmp_path, answer, 2, answers=2, prompt=prompt)
    assert (rows[0]["error"], rows[0]["description"]) == (None, "smaller, 0")
    assert rows[1]["error"] == "the answer does not update the description of changes"


def test_programs_that_cannot_be_scored_are_lost_and_do_not_count_0(tmp_path):
    bodies = ["raise KeyError('no')", "import os; os._exit(0)", "while True: pass", "return float('nan')", "return 2.0"]

    def answer(request, number):
        text = write([f"```python\ndef search():\n    {body}\n```" for body in bodies])
        return text if number == 0 else text.replace("2.0", "1.5")

    began = time.monotonic()
    end, rows, _ = evolve(tmp_path, answer, 10, answers=5, diff_based_evolution=False)
    assert time.monotonic() - began < 90
    reasons = ["evaluate failed", "the process that evaluated it died", "evaluate did not end in time"]
    assert end["lost"] == dict.fromkeys([*reasons, "combined_score is not finite"], 2)
    assert "'no'" in rows[0]["error"]
    assert [row["metrics"] for row in rows[:4]] == [None] * 4
    scores = {program["metrics"]["combined_score"] for program in end["programs"]}
    assert -1.5 in scores
    assert scores <= {-3, -2, -1.5}  # the map of elites may drop some
    assert end["best"]["metrics"]["combined_score"] == -1.5


def test_a_first_program_without_a_score_is_a_parent_and_not_in_the_database(tmp_path):
    (tmp_path / "initial_program.py").write_text("def search():\n    return undefined\n")
    end, rows, _ = evolve(
        tmp_path,
        lambda request, number: write([change("    return undefined", f"    return {k}") for k in (4, 5)]),
        2,
        answers=2,
    )
    assert [row["error"] for row in rows] == [None, None]
    assert {program["code"].split()[-1] for program in end["programs"]} <= {"4", "5"}
    assert "the first program has no score" in end["stderr"]
    assert end["best"]["metrics"]["combined_score"] == -4


def test_children_after_the_checkpoint_are_neither_lost_nor_requested_again(tmp_path):
    def answer(request, number):
        return write([f"```python\ndef search():\n    return {10 * number + k}.5\n```" for k in (1, 2)])

    settings = {"diff_based_evolution": False, "answers": 2}
    _, before, _ = evolve(tmp_path, answer, 4, **settings)
    for checkpoint in (
        tmp_path / "out" / "checkpoints"
    ).iterdir():  # as if the run had been killed before it was written
        checkpoint.rename(tmp_path / checkpoint.name)
    with open(tmp_path / "out" / "children.jsonl", "a") as log:
        log.write(
            json.dumps({**before[-1], "iteration": 5, "completion": 2, "place": 0}) + "\n"
        )  # half of a completion
    end, rows, seen = evolve(tmp_path, answer, 6, **settings)
    assert len(seen) == 1
    assert rows[:4] == before
    assert [row["iteration"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert {row["id"] for row in before} & {program["id"] for program in end["programs"]}


def test_an_endpoint_that_never_answers_ends_the_run_with_one_error(tmp_path):
    run, seen = evolve(tmp_path, lambda request, number: (401, b"{}"), 9, check=False)
    assert "OpenEvolve got no completion from http://127.0.0.1" in run.stderr
    assert "401" in run.stderr
    assert len(seen) == 1
    assert not (tmp_path / "out" / "children.jsonl").exists()


@pytest.mark.parametrize(
    "name", ["function_minimization", "k_module_problem", pytest.param("signal_processing", marks=pytest.mark.slow)]
)
def test_an_example_of_openevolve_runs_as_it_is(name, tmp_path):
    if not EXAMPLES.is_dir():
        pytest.skip("shared/data/evolve/openevolve_examples is not here")
    code = (EXAMPLES / name / "initial_program.py").read_text()

    def answer(request, number):
        text = user_message(request)
        assert "Give 3 different answers" in text
        notes = [f"# version {number}.{k}" for k in range(3)]
        if "SEARCH" in text:
            return write([change("# EVOLVE-BLOCK-END", f"{note}\n# EVOLVE-BLOCK-END") for note in notes])
        return write([f"```python\n{code}\n{note}\n```" for note in notes])

    end, rows, seen = evolve(tmp_path, answer, 6, example=EXAMPLES / name)
    assert len(seen) == 2
    assert end["lost"] == {}
    assert all(row["id"] and row["metrics"] and "# version" in row["code"] for row in rows)
    assert all(row["code"].count("EVOLVE-BLOCK-START") == code.count("EVOLVE-BLOCK-START") for row in rows)
