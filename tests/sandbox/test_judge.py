"""The judge: what programs write and return wears down neither the caller nor the next test, and neighbours do not."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from tests.sandbox.harmless import LIMITS, reasons
from vpo.sandbox import Case, Limits, Program, Sandbox, Status, judging
from vpo.sandbox.isolation import ENVIRONMENT
from vpo.sandbox.judging import Job, judge
from vpo.sandbox.zygote import Zygote
from vpo.tasks.code.answers import program_form

LARGE = Limits(test_seconds=20.0, seconds=120.0, memory_mb=1024, output_bytes=16_000_000)


@contextmanager
def caller_is_spared():
    """The caller spends little time of its own in the block, and little memory."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak is measured from here on
    before, began = memory("VmRSS"), time.process_time()
    yield
    assert time.process_time() - began < 0.5
    assert memory("VmHWM") - before < 64_000


def memory(name):
    """Kilobytes, from this process's status."""
    facts = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(facts[name].split()[0])


# Each returns a value for x == 1 that is expensive to read.
VALUES = {
    "sets of sets of one hash": """
class F(frozenset):
    __hash__ = object.__hash__
class H(int):
    __hash__ = object.__hash__
def value():
    level = [H(k * (2**61 - 1)) for k in range(99)]
    for _ in range(2):
        level = [F([*level, H(k)]) for k in range(99)]
    return level
""",
    "line ends": "def value(): return '\\n' * 15_000_000\n",
    "nested lists": """
def value():
    values = []
    for _ in range(190):
        values = [values]
    return [values] * 8_000
""",
    "a wide character": "def value(): return '\\U0001f600' + 'x' * 15_000_000\n",
    "empty lists": "def value(): return [[]] * 1_500_000\n",
    "digits": "def value(): return [10**4000] * 3000\n",
}


@pytest.mark.parametrize("name", VALUES)
def test_values_that_are_expensive_to_read_fail_alone(name):
    source = VALUES[name] + "\ndef f(x):\n    return value() if x == 1 else x\n"
    with Sandbox(limits=LARGE) as box, caller_is_spared():
        verdicts = box.grade(Program(source, "f"), [Case((x,), x) for x in range(3)])
    assert [verdict.status for verdict in verdicts] == [Status.PASSED, Status.FAILED, Status.PASSED], verdicts


def test_texts_of_very_many_lines_fail_quickly():
    with Sandbox(limits=LARGE) as box, caller_is_spared():
        verdicts = box.grade(Program("print('\\n' * 15_000_000 + input())"), [Case("1", "1"), Case("2", "2")])
    assert reasons(verdicts) == ["wrong answer"] * 2


def test_an_output_as_large_as_the_expected_one_passes():
    with Sandbox(limits=LARGE) as box:
        numbers = list(range(300_000))
        lists = box.grade(Program("def f(n): return [float(k) for k in range(n)]", "f"), [Case((300_000,), numbers)])
        texts = box.grade(Program("print('1.00  \\n' * int(input()))"), [Case("300000", "1.0\n" * 300_000)])
    assert reasons([*lists, *texts]) == ["passed"] * 2


def test_a_judge_that_is_ended_by_an_output_has_failed_its_test_alone():
    """One step of Python that takes far longer than the budget: sets of one hash, each a member of the next."""
    source = """
class F(frozenset):
    __hash__ = object.__hash__
class H(int):
    __hash__ = object.__hash__
def f(x):
    if x != 1: return x
    level = [H(k * (2**61 - 1)) for k in range(12)]
    for depth in range(6):
        level = [F([*level, H(k * (2**61 - 1))]) for k in range(100, 104)]
    return set(level)
"""
    with Sandbox(limits=LARGE) as box, caller_is_spared():
        verdicts = box.grade(Program(source, "f"), [Case((x,), x) for x in range(3)])
    assert [verdict.status for verdict in verdicts] == [Status.PASSED, Status.FAILED, Status.PASSED], verdicts


SOURCES = {
    "dotted import": "import " + ".".join("a" * 49_000),
    "digits": "x = 0x" + "f" * 90_000,
    "decimal digits": "x = " + "1" * 90_000,
    "brackets": "(" * 90_000,
    "minus": "-" * 90_000 + "1",
    "statements": "a;" * 45_000,
    "f-string": "f'" + "{a}" * 30_000 + "'",
    "attributes": "a" + ".a" * 45_000,
    "surrogates": "x = '\ud800'",
}


@pytest.mark.parametrize("name", SOURCES)
def test_sources_that_are_expensive_to_parse_harm_nothing(name):
    with Sandbox() as box, caller_is_spared():
        form = program_form(SOURCES[name])
        assert form is None or len(form) == 64
        verdict = box.grade(Program(SOURCES[name], "f"), [Case((1,), 1)])[0]
    assert verdict.status is Status.FAILED
    assert program_form("x=1  # one") == program_form("x = 1") != program_form("x = 2")


def test_a_reader_of_sources_holds_up_no_new_zygote(monkeypatch):
    with Sandbox(limits=LIMITS) as box:
        job = (Program("def f(x): return x", "f"), [Case((1,), 1)])
        box.grade(*job)
        assert program_form("x = 1")  # a process that inherits the zygote's socket
        monkeypatch.setitem(ENVIRONMENT, "VPO_TEST_ENVIRONMENT", "1")  # another environment, another zygote
        assert box.grade(*job)[0].passed


def test_integers_of_very_many_digits_are_told_apart():
    forms = {program_form(f"x = {digits:#x}") for digits in (1 << 40_000, (1 << 40_000) + 1)}
    assert len(forms) == 2
    assert None not in forms


def judges():
    """Processes that judge: the children of this process's server."""
    found = []
    for server in Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split():
        with suppress(OSError):
            found += map(int, Path(f"/proc/{server}/task/{server}/children").read_text().split())
    return found


@pytest.mark.parametrize("victim", ["judge", "server"])
def test_a_killed_judge_or_server_is_replaced(victim):
    with Sandbox(limits=LARGE) as box:
        box.grade(Program("def f(x): return x", "f"), [Case((1,), 1)])
        known = set(judges())

        def kill():
            deadline = time.monotonic() + 20
            while not (new := set(judges()) - known) and time.monotonic() < deadline:
                time.sleep(0.005)
            time.sleep(0.1)
            for number in new:
                parent = int(Path(f"/proc/{number}/stat").read_text().rpartition(") ")[2].split()[1])
                os.kill(number if victim == "judge" else parent, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        slow = Program("import time\ntime.sleep(1.0)\ndef f(x): return x", "f")
        verdicts = box.grade(slow, [Case((x,), x) for x in range(2)])
        killer.join()
    assert reasons(verdicts) == ["passed"] * 2


def test_a_machine_without_further_threads_or_processes_makes_nothing_raise(box, monkeypatch):
    def refuse(*_, **__):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert reasons(box.grade(Program("def f(x): return x", "f"), [Case((1,), 1)] * 2)) == ["passed"] * 2


def test_a_start_that_fails_for_lack_of_processes_is_tried_again(box, monkeypatch):
    with Zygote() as zygote:
        real, calls = zygote.fork, []

        def fork(files):
            calls.append(files)
            if len(calls) == 1:
                raise BlockingIOError(11, "Resource temporarily unavailable")
            if len(calls) > failures:
                real(files)  # otherwise nothing is forked, and all is closed

        monkeypatch.setattr(zygote, "fork", fork)
        monkeypatch.setattr(judging, "PAUSE", 0.01)
        job = Job(Program("def f(x): return x", "f"), [Case((1,), 1)], box.limits, box.isolation)
        failures = 2
        assert [result.verdict.status for result in judge(job, zygote)] == [Status.PASSED]
        failures, calls = 9, []
        (result,) = judge(job, zygote)
        assert result.verdict.status is Status.ERROR


@contextmanager
def busy(count):
    """Processes that compete for the cores."""
    loops = [subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


COMPUTING = "import time\ndef f(x):\n    while time.process_time() < 0.6: pass\n    return x\n"


def test_a_busy_machine_fails_no_program(box):
    with busy(6 * len(os.sched_getaffinity(0))):
        assert reasons(box.grade(Program(COMPUTING, "f"), [Case((1,), 1)])) == ["passed"]


def test_sleeping_costs_time_as_computing_does(box):
    began = time.monotonic()
    with Sandbox(limits=replace(LIMITS, test_seconds=0.3), isolation=box.isolation.name, unsafe=True) as short:
        verdicts = short.grade(Program("import time\ndef f(x): time.sleep(60)", "f"), [Case((1,), None)] * 2)
    assert reasons(verdicts) == ["timeout"] * 2
    assert time.monotonic() - began < 10  # the wall clock would be 13 s a test


def test_many_threads_are_forbidden(box):
    start = "threading.Thread(target=time.sleep, args=(0.3,)).start()"
    body = f"for _ in range(x): {start}\n    time.sleep(0.2)\n    return x\n"
    source = f"import threading, time\nthreading.stack_size(1 << 16)\ndef f(x):\n    {body}"
    verdicts = box.grade(Program(source, "f"), [Case((5,), 5), Case((30,), 30), Case((6,), 6)])
    assert reasons(verdicts) == ["passed", "forbidden", "passed"]
    assert "more than 16 threads" in verdicts[1].detail


def test_no_thread_outlives_its_test(box):
    start = "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()"
    source = (
        f"import threading, time\ndef f(x):\n    before = threading.active_count()\n    {start}\n    return before\n"
    )
    assert reasons(box.grade(Program(source, "f"), [Case((x,), 1) for x in range(3)])) == ["passed"] * 3


# The number of frames that show the input of another test.
LOOKING = """
import sys
def f(x):
    frame, shown = sys._getframe(), []
    while frame:
        shown.append(repr([value for name, value in frame.f_locals.items() if name != "shown"]))
        frame = frame.f_back
    return sum(f"later {7200 + 61}" in each for each in shown)
"""


def test_an_input_arrives_when_its_turn_comes(box):
    verdicts = box.grade(Program(LOOKING, "f"), [Case(("now",), 0), Case(("later 7261",), 2)])
    assert reasons(verdicts)[0] == "passed", verdicts


def test_standard_input_is_a_file_and_no_pipe(box):
    """A pipe holds less where its user has many of them."""
    source = "import os, stat\nprint(stat.S_ISREG(os.fstat(0).st_mode), len(open(0).read()))"
    assert reasons(box.grade(Program(source), [Case("x" * n, f"True {n}") for n in (0, 3, 300_000)])) == ["passed"] * 3


def test_a_program_cannot_write_to_its_input_or_read_what_it_printed(box):
    if box.isolation.name == "none":
        pytest.skip("without isolation it reopens them")
    source = """
import os
def refused(call, *arguments):
    try: call(*arguments)
    except OSError: return True
print(refused(os.write, 0, b"x"), refused(os.ftruncate, 0, 0), refused(os.read, 1, 9))
"""
    assert reasons(box.grade(Program(source), [Case("x", "True True True")])) == ["passed"]


def test_what_a_test_printed_cannot_be_rewritten_by_the_next(box):
    source = "import os\nif input() == '1': print('wrong')\nelse:\n    os.pwrite(1, b'right\\n', 0); print('right')"
    verdicts = box.grade(Program(source), [Case("1", "right"), Case("2", "right\nright")] * 2)
    assert reasons(verdicts) == ["wrong answer", "passed"] * 2


def test_starts_after_the_first_are_charged(box):
    job = Job(Program("import os\ndef f(x): os._exit(1)", "f"), [Case((1,), 1)] * 4, box.limits, box.isolation)
    with Zygote() as zygote:
        spent = [result.spent for result in judge(job, zygote)]
    assert all(later - earlier >= 0.02 for earlier, later in pairwise(spent)), spent


def test_reading_that_takes_far_longer_than_honest_outputs_is_charged(box, monkeypatch):
    def slow(reading, answer):
        end = time.process_time() + judging.READ_SECONDS / 2 + 0.3
        while time.process_time() < end:
            pass
        return judging.Result(judging.Verdict(Status.PASSED))

    monkeypatch.setattr(judging._Reading, "read", slow)
    limits = replace(LIMITS, seconds=0.5, test_seconds=0.5)
    job = Job(Program("def f(x): return x", "f"), [Case((1,), 1)] * 4, limits, box.isolation)
    with Zygote() as zygote:
        results = list(judge(job, zygote))
    assert reasons([result.verdict for result in results]) == ["passed", "passed", "not run", "not run"]
