"""The task evaluator against hostile programs and evaluators, and what they can reach of the machine."""

import pytest

pytest.importorskip("openevolve")

from tests.tasks.evaluators import EVALUATOR, PROGRAM, fenced, resolved, scores, write_project
from vpo.sandbox import wall
from vpo.sandbox.wall import wall_problem
from vpo.tasks import get
from vpo.tasks.evaluator.task import WholeProgram
from vpo.util.errors import InputError

pytestmark = pytest.mark.skipif(bool(wall_problem()), reason="the wall does not work on this machine (vpo doctor)")


@pytest.fixture
def project(tmp_path):
    return write_project(tmp_path / "project")


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
