"""No source of an answer holds the process that scores it, grows it, or raises in it."""

import ast
import json
import subprocess
import sys

import pytest
from benchmarks.heartbeat import Heartbeat

from tests.tasks import code_rows
from tests.tasks.watched import only, task_on
from vpo.tasks.code.answers import LONGEST, fenced

STANDSTILL = 0.05  # seconds
GROWTH = 64.0  # megabytes
CARRIED = 1 / 4  # share of these that parsing here has at least: a faster machine stands still for less
ADD = "def add(a, b):\n    return a + b\n"
LENGTH = LONGEST - 1000


def repeated(part: str, *, before: str = "", after: str = "") -> str:
    """A source that is as long as an answer may be."""
    return before + part * (LENGTH // len(part)) + after


# Name → a hostile source, and an honest one of the same shape.
SOURCES = {
    "dotted import": (repeated("a.", before="import ", after="a"), f"import os.path, xml.etree.ElementTree\n{ADD}"),
    "fields of a text": (repeated("{a}", before="x = f'", after="'"), f"x = 1\ny = f'{{x}}{{x}}{{x}}'\n{ADD}"),
    "statements": (repeated("a;"), f"a = 1;{'a;' * 100}\n{ADD}"),
    "targets": (repeated("x = ", after="1"), f"{'x = ' * 50}1\n{ADD}"),
    "keys": (repeated("1:1,", before="x = {", after="}"), f"x = {{{'1:1,' * 100}}}\n{ADD}"),
    "digits": ("x = 0x" + "f" * 5000, f"x = 0x{'f' * 1000}\n{ADD}"),
    "all digits": (repeated("f", before="x = 0x"), f"x = 0x{'f' * 4000}\n{ADD}"),
    "decimal digits": (repeated("1", before="x = "), f"x = {'1' * 4000}\n{ADD}"),
    "attributes": (repeated(".a", before="a"), f"import os\nos.path.join.__name__.upper().lower\n{ADD}"),
    "sums": (repeated("1+", after="1"), f"x = {'1+' * 50}1\n{ADD}"),
    "brackets": (repeated("["), f"x = {'[' * 50}{']' * 50}\n{ADD}"),
    "escapes": (repeated("x='\\z'\n"), f"x='\\z'\n{ADD}"),
    "decorators": (repeated("@a\n", after="def f(): pass"), f"from functools import cache\n@cache\n{ADD}"),
}
# Their parsing is no burden, though it raises.
LIGHT = {"targets", "digits", "all digits", "decimal digits", "attributes", "sums", "brackets", "escapes"}

each_source = pytest.mark.parametrize("name", SOURCES)


@pytest.fixture(scope="module")
def adding(tmp_path_factory):
    task = task_on(tmp_path_factory.mktemp("rows"), [code_rows.mbppplus_row()])
    problem = only(task)
    assert all(task.score(problem, fenced(ADD)))  # what is started once is started
    task.normal_form(ADD)
    return task, problem


@each_source
def test_the_process_that_scores_does_not_carry(adding, name):
    task, problem = adding
    answers = [fenced(SOURCES[name][0]), fenced(ADD)]
    with Heartbeat() as heartbeat:
        hostile, honest = task.score_all([problem, problem], answers)
        forms = [task.normal_form(answer) for answer in answers]
    assert hostile is not None
    assert honest is not None
    assert (sum(hostile), sum(honest)) == (0, len(problem.checks))
    assert forms[1] is not None
    assert forms[0] != forms[1]
    assert heartbeat.standstill < STANDSTILL
    assert heartbeat.growth < GROWTH


@each_source
def test_an_honest_source_of_the_same_shape_passes(adding, name):
    task, problem = adding
    answer = fenced(SOURCES[name][1])
    assert sum(task.score(problem, answer)) == len(problem.checks)
    assert task.normal_form(answer) is not None
    assert task.normal_form(answer) == task.normal_form(f"# a comment\n{answer[10:-3]}")


PARSER = """
import ast, json, sys
from benchmarks.heartbeat import Heartbeat
source = json.load(sys.stdin)
with Heartbeat() as heartbeat:
    ast.dump(ast.parse(source))
print(json.dumps([heartbeat.standstill, heartbeat.growth]))
"""


@pytest.mark.parametrize("name", [name for name in SOURCES if name not in LIGHT])
def test_a_process_that_parses_carries(name):
    command = [sys.executable, "-c", PARSER]
    source = json.dumps(SOURCES[name][0])
    done = subprocess.run(command, input=source, capture_output=True, text=True, check=True, timeout=300)
    standstill, growth = json.loads(done.stdout)
    assert standstill > CARRIED * STANDSTILL or growth > CARRIED * GROWTH


@pytest.mark.parametrize("name", ["digits", "all digits"])
def test_the_text_of_a_tree_raises(name):
    with pytest.raises(ValueError, match="digits"):
        ast.dump(ast.parse(SOURCES[name][0]))
