"""The task evaluator: metrics as objectives, answers as programs, and what hostile programs return."""

import importlib.util
import json
import os
import time

import pytest

pytest.importorskip("openevolve")

from tests.tasks.evaluators import EVALUATOR, PROGRAM, REWRITES, change, fenced, write_project
from vpo.sandbox import wall
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


def scores(task, *answers):
    (problem,) = task.problems()
    return task.score_all([problem] * len(answers), list(answers))


def resolved(task, answer, parent=None):
    return task.resolve(task.problems()[0], answer, parent)


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


HOSTILE = {
    "return {'x': float('nan'), 'y': 1}": "x is nan, not a number of a usable size",
    "return {'x': 1, 'y': float('-inf')}": "y is -inf",
    "return {'x': 1e200, 'y': 1}": "x is 1e+200",
    "return {'x': 10**4000, 'y': 1}": "evaluate returned no x",
    "return {'x': 1}": "evaluate returned no y",
    "return {'y': 1, 'error': 'it went wrong'}": "evaluate returned no x: it went wrong",
    "return {'x': '1', 'y': 1}": "evaluate returned no x",
    "return {'x': None, 'y': [1]}": "evaluate returned no x",
    "return [1, 2]": "evaluate returned list, not a dict of metrics",
    "return None": "evaluate returned NoneType, not a dict",
    "return {}": "evaluate returned no x",
    "raise KeyError('no such')": "evaluate raised KeyError: 'no such'",
    "raise SystemExit(0)": "evaluate raised SystemExit",
    "return undefined": "name 'undefined' is not defined",
    "while True: pass": "evaluate: not done within 2 s",
    "import os; os._exit(0)": "evaluate: its process ended early (exit code 0)",
    "import os; os.kill(os.getpid(), 9)": "evaluate: its process ended early",
    "import os\n    while True: os.fork()": "evaluate: more than 128 processes",
    "return {'x': 1, 'y': 1, 'text': 'x' * 10**9}": "",
    "return {'x': 1, 'y': 1, 'artifacts': {str(n): 'x' * 10**6 for n in range(100)}}": "",
    "print('x' * 10**8)\n    return {'x': 1, 'y': 1}": "",
    "import sys; sys.stderr.write('x' * 10**7)\n    return {'x': 1, 'y': 1}": "",
    "import os\n    for n in range(3, 99):\n        try: os.write(n, b'no JSON' + b'[' * 99999 + bytes([10]))\n"
    "        except OSError: pass\n    return {'x': 1, 'y': 1}": "evaluate: its result cannot be read",
    "import threading\n    threading.Thread(target=lambda: [None for _ in iter(int, 1)]).start()\n"
    "    return {'x': 1, 'y': 1}": "",
}


def test_a_hostile_program_costs_itself_alone(project):
    task = get("evaluator", evaluator=project, memory_mb=4000)
    (problem,) = task.problems()
    programs = [resolved(task, fenced(body)) for body in HOSTILE]
    fine = resolved(task, fenced("return {'x': 7, 'y': 8}"))
    vectors = task.score_all([problem] * (len(programs) + 2), [fine, *programs, fine])
    assert vectors[0] == vectors[-1] == (7.0, 8.0)
    for program, vector, reason in zip(programs, vectors[1:-1], HOSTILE.values(), strict=True):
        if reason:
            assert vector is None
            assert reason in task.why_unscored(problem, program)
        else:
            assert vector == (1.0, 1.0)
        assert sum(map(len, task._evaluated[program].artifacts.values())) < 200_000


def test_what_an_evaluator_says_is_short_and_can_be_written(project):
    task = get("evaluator", evaluator=project)
    (problem,) = task.problems()
    forged = """
    import json, os
    for name in range(3, 20):
        try:
            os.write(name, (json.dumps(%r) + chr(10)).encode())
        except OSError:
            pass
    return {'x': 1, 'y': 1}"""
    long = {"metrics": {"x": 1, "y": 1, "z" * 10**5: 2}, "artifacts": {f"{n}" * 10**5: "a" * 10**5 for n in range(99)}}
    answers = [
        fenced("return {'x': 9, 'y': 9, chr(0xd800): 1, 'artifacts': {chr(0xd801): chr(0xd802)}}"),
        fenced(forged.strip() % long),
        fenced(forged.strip() % {"failure": "\ud800" * 10**5}),
    ]
    vectors = scores(task, *answers)
    known = [(answer, vector) for answer, vector in zip(answers, vectors, strict=True) if vector is not None]
    assert len(known) >= 1
    said = task.feedback_all([problem] * len(known), *map(list, zip(*known, strict=True)))
    said += [task.why_unscored(problem, answer) for answer in answers]
    for text in said:
        text.encode()
        assert len(text) < 20_000


def test_an_evaluator_that_spoils_its_first_line_is_refused(tmp_path):
    evaluator = (
        "import os\nfor n in range(3, 20):\n    try: os.write(n, b'[1]\\n')\n    except OSError: pass\n" + EVALUATOR
    )
    with pytest.raises(InputError, match="the start program has no metrics") as error:
        get("evaluator", evaluator=write_project(tmp_path / "p", evaluator=evaluator))
    assert "\n" not in str(error.value)


def test_further_paths_can_be_read(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "numbers.txt").write_text("7")
    evaluator = (
        f"X = float(open({str(tmp_path / 'data' / 'numbers.txt')!r}).read())\ndef evaluate(path): return {{'x': X}}\n"
    )
    folder = write_project(tmp_path / "p", evaluator=evaluator)
    with pytest.raises(InputError, match="FileNotFoundError"):
        get("evaluator", evaluator=folder)
    assert get("evaluator", evaluator=folder, readable=str(tmp_path / "data")).began.metrics == {"x": 7.0}
    with pytest.raises(InputError, match="readable names /nowhere, which is not there"):
        get("evaluator", evaluator=folder, readable="/nowhere")


@pytest.mark.parametrize("changed", ["data.txt", "package/module.py"])
def test_files_beside_the_evaluator_count(changed, tmp_path):
    folder = write_project(tmp_path / "p")
    path = tmp_path / "p" / changed
    path.parent.mkdir(exist_ok=True)
    path.write_text("1")
    before = get("evaluator", evaluator=folder).described()
    path.write_text("2")
    assert get("evaluator", evaluator=folder).described() != before


def test_a_home_behind_a_link_is_refused(tmp_path, monkeypatch):
    write_project(tmp_path / "home")
    (tmp_path / "link").symlink_to(tmp_path / "home")
    monkeypatch.setenv("HOME", str(tmp_path / "link"))
    for folder in ("home", "link"):
        with pytest.raises(InputError, match="evaluator must be in a folder of its own"):
            get("evaluator", evaluator=str(tmp_path / folder))


def test_a_program_is_behind_the_wall(project, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("hidden")
    reads = fenced(f"return {{'x': 1, 'y': 1, 'text': open({str(secret)!r}).read()}}")
    writes = fenced(f"open({str(tmp_path / 'new')!r}, 'w')\n    return {{'x': 1, 'y': 1}}")
    beside = fenced(f"open({project + '/evaluator.py'!r}, 'a')\n    return {{'x': 1, 'y': 1}}")
    task = get("evaluator", evaluator=project)
    (problem,) = task.problems()
    programs = [resolved(task, each) for each in (reads, writes, beside)]
    assert task.score_all([problem] * 3, programs) == [None, (1.0, 1.0), None]
    assert not (tmp_path / "new").exists()  # its own /tmp has the file
    reasons = [task.why_unscored(problem, each) for each in programs]
    assert "FileNotFoundError" in reasons[0]
    assert "Read-only file system" in reasons[2]


def test_without_the_wall_only_unsafe_runs(project, tmp_path, monkeypatch):
    monkeypatch.setattr(wall, "wall_problem", lambda: "bwrap is not installed")
    with pytest.raises(InputError, match="cannot be isolated on this machine"):
        get("evaluator", evaluator=project)
    task = get("evaluator", evaluator=project, unsafe=True)
    writes = fenced(f"open({str(tmp_path / 'new')!r}, 'w')\n    return {{'x': 1, 'y': 1}}")
    assert scores(task, writes, fenced("while True: pass")) == [(1.0, 1.0), None]
    assert (tmp_path / "new").exists()


def test_an_evaluator_may_use_what_lies_beside_it_and_start_processes(tmp_path):
    evaluator = """
import os, subprocess, sys, tempfile
from helper import LIMIT

def evaluate(program_path):
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file, open("log.txt", "w") as log:
        file.write(f"import runpy; print(runpy.run_path({program_path!r})['metrics']()['x'])")
        file.flush()
        log.write("works")
        done = subprocess.run([sys.executable, file.name], capture_output=True, text=True, check=True)
    data = open(os.path.join(os.path.dirname(__file__), "data.txt")).read()
    return {"x": float(done.stdout) * LIMIT, "size": len(data)}
"""
    folder = write_project(tmp_path / "p", evaluator=evaluator)
    (tmp_path / "p" / "helper.py").write_text("LIMIT = 4")
    (tmp_path / "p" / "data.txt").write_text("12345")
    task = get("evaluator", evaluator=folder)
    assert scores(task, WholeProgram(PROGRAM)) == [(2.0, 5.0)]


def test_an_evaluator_may_be_a_link_to_another_folder(tmp_path):
    write_project(tmp_path / "there")
    here = write_project(tmp_path / "here")
    (tmp_path / "here" / "evaluator.py").unlink()
    (tmp_path / "here" / "evaluator.py").symlink_to("../there/evaluator.py")
    assert get("evaluator", evaluator=here).began.metrics == {"x": 0.5, "y": 0.5}


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
