"""The task evaluator: metrics as objectives, answers as programs, its files and settings."""

import importlib.util
import json
import os
import time

import pytest

pytest.importorskip("openevolve")

from tests.tasks.evaluators import (
    EVALUATOR,
    PROGRAM,
    REWRITES,
    change,
    fenced,
    resolved,
    scores,
    write_project,
)
from vpo.sandbox.wall import wall_problem
from vpo.tasks import get
from vpo.tasks.answers import write
from vpo.tasks.evaluator import EvaluatorTask
from vpo.tasks.evaluator.metrics import Scale, default_objectives, read_scales
from vpo.tasks.evaluator.task import WholeProgram
from vpo.util.errors import InputError

pytestmark = pytest.mark.skipif(bool(wall_problem()), reason="the wall does not work on this machine (vpo doctor)")
DIFFS = {**REWRITES, "diff_based_evolution": True}


@pytest.fixture
def project(tmp_path):
    return write_project(tmp_path / "project")


# Metrics


def test_metrics_of_the_start_are_objectives():
    metrics = {"validity": 1.0, "eval_time": 0.2, "error": 0.0, "combined_score": 0.5, "execution_time": 3.0}
    assert default_objectives(metrics) == ("combined_score", "validity")


def test_combined_score_decides_and_else_the_mean(tmp_path):
    task = get("evaluator", evaluator=write_project(tmp_path / "mean"))
    assert (task.names, task.weights) == (("x", "y"), (0.5, 0.5))
    assert scores(task, fenced("return {'x': -3, 'y': 40.5, 'more': 1}")) == [(-3.0, 40.5)]
    combined = PROGRAM.replace('"y": 1 - x', '"combined_score": 2 * x')
    task = get("evaluator", evaluator=write_project(tmp_path / "combined", program=combined))
    assert (task.names, task.weights) == (("combined_score", "x"), (1.0, 0.0))
    task = get("evaluator", evaluator=write_project(tmp_path / "combined"), objectives="x")
    assert (task.names, task.weights) == (("x",), (1.0,))


def test_scales_map_metrics_to_the_unit_interval(project):
    task = get("evaluator", evaluator=project, scale="x=0:2,y=10:0")
    answers = [fenced(f"return {{'x': {x}, 'y': {y}}}") for x, y in ((1, 4), (3, -1), (-1, 20))]
    assert scores(task, *answers) == [(0.5, 0.6), (1.0, 1.0), (0.0, 0.0)]
    assert not task.unbounded
    assert get("evaluator", evaluator=project, scale="x=0:2").unbounded
    assert read_scales("a=b=-1:1e3") == {"a=b": Scale(-1.0, 1000.0)}
    assert "Less is better of y" in task.question(task.problems()[0])[-1]["content"]


def test_results_of_openevolve_and_nested_ones_are_read(tmp_path):
    nested = "{'metrics': {'x': 1, 'ok': True, 'name': 'n'}, 'artifacts': {'note': 'nested'}}"
    result = "__import__('openevolve').evaluation_result.EvaluationResult({'x': 2}, {'note': b'bytes', 'more': [1]})"
    beside = "{'x': 3, 'artifacts': {'note': {'a': 1}}}"
    evaluator = EVALUATOR.replace("import importlib.util", "import importlib.util, numpy, openevolve.evaluation_result")
    task = get("evaluator", evaluator=write_project(tmp_path / "p", evaluator=evaluator), objectives="x")
    numbers = fenced("import numpy; return {'x': numpy.float32(4)}")
    assert scores(
        task, fenced(f"return {nested}"), fenced(f"return {result}"), fenced(f"return {beside}"), numbers
    ) == [
        (1.0,),
        (2.0,),
        (3.0,),
        (4.0,),
    ]
    evaluations = list(task._evaluated.values())
    assert evaluations[0].metrics == {"x": 1.0, "ok": 1.0}
    notes = [{"name": "n", "note": "nested"}, {"note": "bytes", "more": "[1]"}, {"note": "{'a': 1}"}, {}]
    assert [each.artifacts for each in evaluations] == notes


# Answers


def test_changes_apply_to_the_parent_or_to_the_start(tmp_path):
    task = get("evaluator", evaluator=write_project(tmp_path / "p", config=DIFFS))
    child = resolved(task, f"First\n{change('    x = 0.5', '    x = 0.25')}")
    assert child == PROGRAM.replace("x = 0.5", "x = 0.25")
    assert resolved(task, change("    x = 0.25", "    x = 2"), child) == PROGRAM.replace("x = 0.5", "x = 2")
    assert scores(task, child, change("    x = 0.5", "    x = 3"), WholeProgram(PROGRAM)) == [
        (0.25, 0.75),
        (3.0, -2.0),
        (0.5, 0.5),
    ]
    for answer, reason in (
        (change("    x = 9", "    x = 2"), "no SEARCH block matches"),
        ("x = 2", "has no SEARCH/REPLACE block"),
        (change("    x = 0.5", "    x = 0.5"), "change nothing"),
        (f"{change('    x = 0.5', 'y')}\n=======", "malformed"),
        (change("    x = 0.5", "#" * 20_000), "code too long"),
    ):
        with pytest.raises(ValueError, match=reason):
            resolved(task, answer)
        assert scores(task, answer) == [(0.0, 0.0)]  # as an answer that gives no program, in training


@pytest.mark.parametrize(
    "text",
    [
        "<<<<<<< SEARCH\n" * 20_000,
        "<<<<<<< SEARCH\n" * 5000 + "=======\n" * 20_000,
        ">>>>>>> REPLACE\n" * 5000 + "<<<<<<< SEARCH\n" * 5000 + "=======\n" * 5000,
        change("x", "y") * 5000,
        "```python\n" * 20_000,
        "```" * 50_000,
        " " * 300_000,
    ],
)
@pytest.mark.parametrize("config", [DIFFS, REWRITES])
def test_a_hostile_answer_is_read_at_once(text, config, tmp_path):
    task = get("evaluator", evaluator=write_project(tmp_path / "p", config={**config, "max_code_length": 1000}))
    began = time.process_time()
    with pytest.raises(ValueError, match=r"SEARCH|code"):
        resolved(task, text)
    task.parse(write([text, text]), 2)
    assert time.process_time() - began < 3


@pytest.mark.parametrize("config", [None, {**DIFFS, "enforce_evolve_blocks": True}, DIFFS])
def test_evolve_blocks_are_enforced_as_the_config_says(config, tmp_path):
    task = get("evaluator", evaluator=write_project(tmp_path / "p", config=config))
    both = f"{change('LIMIT = 10', 'LIMIT = 11')}\n{change('    x = 0.5', '    x = 0.25')}"
    changed = PROGRAM.replace("x = 0.5", "x = 0.25")
    assert "Change only what is between EVOLVE-BLOCK-START" in task.question(task.problems()[0])[-1]["content"]
    if config is DIFFS:  # as in OpenEvolve
        assert resolved(task, both) == changed.replace("LIMIT = 10", "LIMIT = 11")
    else:
        assert resolved(task, both) == changed
        with pytest.raises(ValueError, match="all changes are outside of the EVOLVE-BLOCK markers"):
            resolved(task, change("LIMIT = 10", "LIMIT = 11"))


def test_programs_with_fences_are_kept_whole(project):
    fence = "```"
    task = get("evaluator", evaluator=project)
    (problem,) = task.problems()
    program = resolved(task, fenced("return {'x': 1, 'y': 2}")) + f"\nTEXT = '''\n{fence}python\nx\n{fence}\n'''\n"
    shown = task.in_set(problem, program)
    assert shown.startswith("````python\n")
    assert program.strip() in shown
    assert scores(task, WholeProgram(program)) == [(1.0, 2.0)]


def test_equal_programs_have_one_normal_form(project):
    task = get("evaluator", evaluator=project)
    one, other = fenced("return {'x': 1, 'y': 2}"), fenced("# a note\n    return {'x': 1,  'y': 2}")
    assert task.normal_form(resolved(task, one)) == task.normal_form(resolved(task, other))
    assert task.normal_form(resolved(task, one)) != task.normal_form(WholeProgram(PROGRAM))


def test_a_prompt_has_the_start_with_its_metrics_and_what_its_evaluator_says(tmp_path):
    said = PROGRAM.replace("1 - x}", "1 - x, 'run_time': 3, 'hint': 'look ' * 400}")
    task = get("evaluator", evaluator=write_project(tmp_path / "p", program=said))
    system, user = task.ask(task.problems()[0], 3)
    assert system == {"role": "system", "content": "Improve."}
    for part in (said.strip(), "x 0.5, y 0.5", "For information: run_time 3", "- hint: look look", "<answer_3>"):
        assert part in user["content"]
    assert "combined_score" not in user["content"]
    assert len(user["content"]) < 2500


# The start program


def test_the_evaluation_of_the_start_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("vpo.tasks.evaluator.start._EVALUATED", {})
    program = PROGRAM.replace("x = 0.5", "import random; x = random.random()")
    folder = write_project(tmp_path / "p", program=program)
    before = get("evaluator", evaluator=folder)
    monkeypatch.setattr("vpo.tasks.evaluator.start._EVALUATED", {})  # as another process
    assert get("evaluator", evaluator=folder).began == before.began
    (kept,) = (tmp_path / "cache").rglob("*.json")
    kept.write_text(json.dumps({"metrics": 3}))
    monkeypatch.setattr("vpo.tasks.evaluator.start._EVALUATED", {})
    assert get("evaluator", evaluator=folder).began.metrics.keys() == {"x", "y"}
    (tmp_path / "p" / "evaluator.py").write_text(EVALUATOR + "# changed\n")
    after = get("evaluator", evaluator=folder)
    assert after.described() != before.described()
    assert after.began != before.began


def test_a_start_without_metrics_needs_objectives(tmp_path):
    folder = write_project(tmp_path / "p", program="def metrics():\n    raise OSError('no')\n")
    with pytest.raises(InputError, match="the start program has no metrics \\(evaluate raised OSError: no"):
        get("evaluator", evaluator=folder)
    task = get("evaluator", evaluator=folder, objectives="x,y")
    assert "It could not be evaluated: evaluate raised OSError" in task.question(task.problems()[0])[-1]["content"]
    assert scores(task, fenced("return {'x': 1, 'y': 2}")) == [(1.0, 2.0)]


def test_training_needs_scores_in_the_unit_interval(tmp_path):
    folder = write_project(tmp_path / "p", program=PROGRAM.replace("x = 0.5", "x = 2.5"))
    with pytest.raises(InputError, match=r"x of the start program is 2.5, .* --set scale=x=LOW:HIGH"):
        get("evaluator", evaluator=folder).probe()
    get("evaluator", evaluator=folder, scale="x=0:5,y=-9:1").probe()
    get("evaluator", evaluator=write_project(tmp_path / "q")).probe()


# Files and settings


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scale": "x=1"}, "scale must be written NAME=LOW:HIGH"),
        ({"scale": "x=1:1"}, "with two different numbers, not 'x=1:1'"),
        ({"scale": "z=0:1"}, "scale names 'z', and there are x, y"),
        ({"objectives": "x,z"}, "objectives names 'z', and there are x, y"),
        ({"objectives": "x,x"}, "objectives must be different names"),
        ({"seconds": -1.0}, "seconds must be 0 or more"),
        ({"memory_mb": 0}, "memory_mb must be 1 or more"),
        ({"parallel": -1}, "parallel must be 0 or more"),
        ({"config": "none.yaml"}, "no such file: none.yaml"),
        ({"start": "none.py"}, "no such file: .*none.py \\(start\\)"),
    ],
)
def test_bad_settings_are_refused(settings, message, project):
    with pytest.raises(InputError, match=message):
        get("evaluator", evaluator=project, **settings)


def test_bad_files_are_refused(tmp_path):
    def refused(message, **project):
        with pytest.raises(InputError, match=message):
            get("evaluator", evaluator=write_project(tmp_path / "p", **project))

    refused(
        "the evaluator cannot be loaded: ModuleNotFoundError: No module named 'nonesuch'", evaluator="import nonesuch"
    )
    refused("the evaluator cannot be loaded: AttributeError", evaluator="x = 1")
    refused("not a config of OpenEvolve", config={"max_code_length": "many"})
    (tmp_path / "p" / "initial_program.txt").write_text("x")
    refused("start must be given: .* has 2 files", config=REWRITES)
    with pytest.raises(InputError, match="no such file"):
        get("evaluator", evaluator=str(tmp_path / "none"), start="x.py")
    with pytest.raises(InputError, match="start must be given"):
        get("evaluator", evaluator=str(tmp_path / "p" / "evaluator.py"))


def test_a_folder_that_programs_should_not_see_is_refused(tmp_path, monkeypatch):
    home = write_project(tmp_path / "home")
    monkeypatch.setenv("HOME", home)
    with pytest.raises(InputError, match="evaluator must be in a folder of its own"):
        get("evaluator", evaluator=home)
    monkeypatch.setenv("HOME", f"{home}/inner/user")
    with pytest.raises(InputError, match="evaluator must be in a folder of its own"):
        get("evaluator", evaluator=home)


def test_without_openevolve_one_line_says_so(project, monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "openevolve" else real(name, *more)
    )
    with pytest.raises(InputError, match="task evaluator needs the package openevolve: pip install"):
        EvaluatorTask(evaluator=project)


def test_keys_of_a_config_need_not_be_there(tmp_path):
    assert "NO_SUCH_KEY" not in os.environ
    config = {**REWRITES, "llm": {"api_key": "${NO_SUCH_KEY}", "models": [{"name": "m"}]}}
    assert get("evaluator", evaluator=write_project(tmp_path / "p", config=config)).names == ("x", "y")
