"""Harmless programs, the limits that they reach, and failures of the sandbox itself."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.sandbox.world import processes_with
from vpo.sandbox import (
    ISOLATIONS,
    Case,
    Limits,
    Program,
    Sandbox,
    Status,
    grading,
    processes,
    shared,
    unavailable_reason,
)
from vpo.sandbox.isolation import ENVIRONMENT, Bubblewrap, Unisolated
from vpo.util.errors import InputError

LIMITS = Limits(test_seconds=1.0, seconds=4.0, memory_mb=256)
SLOW_SECOND = "import time\ndef f(x):\n    time.sleep(0.4 * (x == 1))\n    return x\n"
PR_SET_CHILD_SUBREAPER = 36  # of linux/prctl.h


@pytest.fixture(params=["bubblewrap", "landlock", "none"])
def box(request):
    if problem := unavailable_reason(ISOLATIONS[request.param]):
        pytest.skip(f"{request.param} does not work here: {problem}")
    with Sandbox(limits=LIMITS, isolation=request.param, workers=2) as box:
        yield box


def reasons(verdicts):
    return [verdict.reason or verdict.status.value for verdict in verdicts]


def test_function_class_and_standard_input(box):
    method = Program("class Solution:\n    def add(self, a, b):\n        return a + b\n", "Solution.add")
    reading = Program("import sys\nprint('and', sum(map(int, sys.stdin)))\n")
    main = Program("if __name__ == '__main__':\n    print(input()[::-1])\n")
    jobs = [
        (Program("def f(x):\n    return {x: (1, [2.5, None])}\n", "f"), [Case(("é\0",), {"é\0": (1, [2.5, None])})]),
        (method, [Case((1, 2), 3), Case(([1], [2]), [1, 2])]),
        (reading, [Case("1\n2\n", "and 3"), Case("5" * 3 + "\n" + "1\n" * 50_000, "and 50555  \n\n")]),
        (main, [Case("abc", "cba")]),
    ]
    assert [reasons(verdicts) for verdicts in box.grade_many(jobs)] == [["passed"] * len(cases) for _, cases in jobs]


def test_results_are_in_order(box):
    jobs = [(Program(f"import time\ntime.sleep({0.1 * (n % 2)})\ndef f(x): return {n}", "f"), [(0,)]) for n in range(6)]
    assert [outputs[0].value for outputs in box.outputs_many(jobs)] == list(range(6))
    assert box.grade_many([]) == []
    assert box.grade(jobs[0][0], []) == []


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("while True: pass", "timeout"),
        ("os._exit(3)", "exception"),
        ("os._exit(0)", "exception"),
        ("raise ValueError(x)", "exception"),
        ("sys.exit(0)", "exception"),
        ("import ctypes; ctypes.string_at(0)", "exception"),
        ("return bytearray(1 << 30)", "memory"),
        ("os.closerange(3, 64); import time; time.sleep(2)", "forbidden"),
        ("return 'x' * 2_000_000", "wrong answer"),
    ],
)
def test_a_test_that_fails_fails_alone(box, bad, reason):
    source = f"import os, sys\ndef f(x):\n    if x == 2:\n        {bad}\n    return x\n"
    verdicts = box.grade(Program(source, "f"), [Case((x,), x) for x in range(5)])
    assert reasons(verdicts) == ["passed", "passed", reason, "passed", "passed"]


def test_too_much_printed_before_an_exit_is_a_wrong_answer(box):
    verdicts = box.grade(Program("import os\nos.write(1, b'x' * 2_000_000)\nos._exit(0)"), [Case("", "5")] * 2)
    assert reasons(verdicts) == ["wrong answer"] * 2


def test_the_end_of_a_program_that_prints(box):
    def graded(source):
        return reasons(box.grade(Program(source), [Case("4\n", "5"), Case("4\n", "5")]))

    assert graded("import os\nos.write(1, b'5\\n')\nos._exit(0)") == ["passed"] * 2
    assert graded("import sys\nprint(5)\nsys.exit()") == ["passed"] * 2
    assert graded("import sys\nprint(5)\nsys.exit(1)") == ["exception"] * 2
    assert graded("import os\nos.write(1, b'5\\n')\nos._exit(1)") == ["exception"] * 2
    assert graded("syntax error") == ["exception"] * 2


def test_time_for_all_tests_is_limited(box):
    with Sandbox(limits=replace(LIMITS, test_seconds=0.3, seconds=0.5), isolation=box.isolation.name) as quick:
        verdicts = quick.grade(Program("while True: pass"), [Case("", "")] * 5)
    assert reasons(verdicts) == ["timeout", "timeout", "not run", "not run", "not run"]
    assert {verdict.status for verdict in verdicts[2:]} == {Status.NOT_RUN}


def test_bad_arguments_are_named():
    with Sandbox(limits=LIMITS, unsafe=True) as box:
        with pytest.raises(InputError, match="input must be text"):
            box.grade(Program("print(1)"), [Case((1,), "1")])
        with pytest.raises(InputError, match="input must hold numbers"):
            box.grade(Program("def f(x): return x", "f"), [Case((object(),), 1)])
        with pytest.raises(InputError, match="compare must be one of"):
            box.grade(Program("def f(x): return x", "f"), [Case((1,), 1, compare="luck")])


def test_without_isolation_it_refuses_unless_unsafe(monkeypatch):
    monkeypatch.setattr(grading, "unavailable_reason", lambda isolation: "it is a Tuesday")
    with pytest.raises(InputError, match="bubblewrap: it is a Tuesday; landlock: it is a Tuesday"):
        Sandbox()
    with pytest.raises(InputError, match="landlock does not work here"):
        Sandbox(isolation="landlock")
    with Sandbox(unsafe=True) as box:
        assert box.isolation.name == "none"


def test_unavailable_reason_is_what_the_failed_start_printed():
    class Broken(Bubblewrap):
        def missing(self):
            return ""

        def _fixed(self):
            return [sys.executable, "-c", "raise SystemExit('no user namespaces here')"]

    assert "no user namespaces here" in unavailable_reason(Broken())


def test_one_sandbox_for_the_same_limits():
    assert shared(LIMITS, unsafe=True) is shared(replace(LIMITS), unsafe=True)
    assert shared(unsafe=True) is not shared(LIMITS, unsafe=True)


def at_second_test(monkeypatch, do):
    """Call a function with each process that begins the second test."""
    real = processes.SandboxedProcess._take_line

    def take_line(sandboxed):
        line = real(sandboxed)
        if line.startswith(b"[0,") or (line == b'["ready"]' and sandboxed.first == 1):
            do(sandboxed.process)
        return line

    monkeypatch.setattr(processes.SandboxedProcess, "_take_line", take_line)


@pytest.mark.parametrize(("kills", "status"), [(1, "passed"), (9, "infrastructure error")])
def test_a_killed_sandbox_is_started_again(box, monkeypatch, kills, status):
    if box.isolation.name == "none":
        pytest.skip("as under Landlock")
    begun = []

    def kill(process):
        begun.append(process)
        if len(begun) <= kills:
            process.send_signal(signal.SIGKILL)

    at_second_test(monkeypatch, kill)
    verdicts = box.grade(Program(SLOW_SECOND, "f"), [Case((x,), x) for x in range(3)])
    assert reasons(verdicts) == ["passed", status, status]
    assert len(begun) == min(kills + 1, processes.ATTEMPTS)


SLEEPING = "import time\ndef f(x):\n    time.sleep(20)\n"
# PR_SET_PDEATHSIG belongs to a thread: a process that calls execve from another thread loses it.
EXECUTING = """
import os, sys, threading, time
def f(x):
    another = [sys.executable, [sys.executable, "-c", "import time; time.sleep(20)"], dict(os.environ)]
    threading.Thread(target=os.execve, args=another).start()
    time.sleep(20)
"""


@pytest.mark.parametrize("source", [SLEEPING, EXECUTING], ids=["sleeps", "becomes another"])
def test_nothing_is_left_when_the_grader_is_killed(box, source):
    if box.isolation.name == "none":
        pytest.skip("without isolation, nothing ends the processes of a killed grader")
    token = f"VPO_TEST_{os.getpid()}_{box.isolation.name}"
    script = f"""
import os, sys
from vpo.sandbox import *
from vpo.sandbox.isolation import ENVIRONMENT
ENVIRONMENT["{token}"] = "1"
print("begins", flush=True)
box = Sandbox(limits=Limits(test_seconds=20), isolation="{box.isolation.name}")
box.grade(Program({source!r}, "f"), [Case((1,), 2)])
"""
    grader = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert grader.stdout is not None
    grader.stdout.readline()
    deadline = time.monotonic() + 20
    while not processes_with(token, 0) and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.3 if source == SLEEPING else 1.0)
    assert processes_with(token, 0)
    grader.kill()
    grader.communicate()
    assert processes_with(token) == []


@pytest.mark.parametrize("call", ["memfd_create", "pipe2", "write"])
def test_too_many_open_files_are_an_error_and_leak_nothing(box, monkeypatch, call):
    number = 0
    real = getattr(os, call)

    def failing(*arguments):
        nonlocal number
        number += 1
        if number % 2 == 0 or call == "pipe2":
            raise OSError(24, "too many open files")
        return real(*arguments)

    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(processes.os, call, failing)
    verdict = box.grade(Program("def f(x): return x", "f"), [Case((1,), 1)])[0]
    monkeypatch.undo()
    assert verdict.status is Status.ERROR
    assert "too many open files" in verdict.detail
    assert len(os.listdir("/proc/self/fd")) == before


def test_many_programs_leave_nothing(box, monkeypatch):
    token = f"VPO_TEST_many_{os.getpid()}"
    monkeypatch.setitem(ENVIRONMENT, token, "1")
    before = len(os.listdir("/proc/self/fd"))
    jobs = [(Program("import os\ndef f(x): return x or os._exit(1)", "f"), [(1,), (0,)])] * 20
    assert all(outputs[0].failure is None and outputs[1].failure for outputs in box.outputs_many(jobs))
    assert len(os.listdir("/proc/self/fd")) == before
    assert processes_with(token) == []


def test_processor_time_used_up_is_no_infrastructure_error(box, monkeypatch):
    monkeypatch.setattr(Limits, "processor_seconds", 1)
    source = "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\ndef f(x):\n    while True: pass\n"
    with Sandbox(limits=replace(LIMITS, test_seconds=9.0, seconds=9.0), isolation=box.isolation.name) as long:
        verdict = long.grade(Program(source, "f"), [Case((1,), 1)])[0]
    assert verdict.status is Status.FAILED
    assert verdict.reason in ("timeout", "memory")


def test_a_program_has_no_capabilities(box, monkeypatch):
    if box.isolation.name != "landlock":
        pytest.skip("bubblewrap drops them itself; without isolation they stay")
    seen = []
    at_second_test(monkeypatch, lambda process: seen.append(Path(f"/proc/{process.pid}/status").read_text()))
    box.grade(Program(SLOW_SECOND, "f"), [Case((x,), x) for x in range(2)])
    facts = dict(line.split(":", 1) for line in seen[0].splitlines())
    assert int(facts["CapEff"], 16) == int(facts["CapPrm"], 16) == 0
    assert facts["Seccomp"].strip() == "2"


# The ways in which programs of contests read and print.
DOUBLE = {
    "input": "print(2 * int(input()))",
    "open(0)": "print(2 * int(open(0).read()))",
    "open(0) by lines": "print(2 * int(open(0).readline()))",
    "open(1)": "open(1, 'w').write(str(2 * int(input())))",
    "closed": "import sys\nprint(2 * int(input()))\nsys.stdout.close()",
    "exit": "print(2 * int(input()))\nexit()",
    "quit": "print(2 * int(input()))\nquit(0)",
    "__stdout__": "import sys\nsys.__stdout__.write(str(2 * int(sys.__stdin__.readline())))",
    "replaced": "import io, sys\nout = sys.stdout\nsys.stdout = io.StringIO()\nprint(2 * int(input()))\n"
    "out.write(sys.stdout.getvalue())",
    "at exit": "import atexit, io, sys\nbuffer = io.StringIO()\nprint = lambda *words: buffer.write(str(*words))\n"
    "atexit.register(lambda: sys.__stdout__.write(buffer.getvalue()))\nprint(2 * int(input()))",
    "os.write": "import os\nos.write(1, str(2 * int(os.read(0, 100))).encode())",
    "buffer": "import sys\nsys.stdout.buffer.write(str(2 * int(sys.stdin.buffer.readline())).encode())",
    "main": "def main():\n    print(2 * int(input()))\nif __name__ == '__main__':\n    main()",
    "thread": "import threading\nthreading.Thread(target=lambda: print(2 * int(input()))).start()",
}


@pytest.mark.parametrize("form", DOUBLE)
def test_every_form_of_reading_and_printing(box, form):
    verdicts = box.grade(Program(DOUBLE[form]), [Case(f"{number}\n", str(2 * number)) for number in range(4)])
    assert [verdict.status for verdict in verdicts] == [Status.PASSED] * 4, verdicts


def test_killed_programs_leave_no_zombies():
    if unavailable_reason(ISOLATIONS["bubblewrap"]):
        pytest.skip("bubblewrap does not work here")
    with (
        Sandbox(limits=replace(LIMITS, test_seconds=0.2), isolation="bubblewrap", workers=4) as sandbox,
        adopted() as orphans,
    ):
        sandbox.grade_many([(Program("while True: pass"), [Case("", "")])] * 12)
        assert orphans() == []


@contextmanager
def adopted():
    """Make this process the parent of its children's orphans; yields a function that names those that it has got."""
    change = partial(ctypes.CDLL(None).prctl, PR_SET_CHILD_SUBREAPER)
    known = children()
    assert change(1, 0, 0, 0) == 0
    try:
        yield lambda: [name for number, name in children().items() if number not in known]
    finally:
        change(0, 0, 0, 0)
        for number in children().keys() - known.keys():
            os.kill(number, signal.SIGKILL)
            os.waitpid(number, 0)


def children():
    """Id → name of each child process of this one, ended or not."""
    names = {}
    for path in Path("/proc").glob("[0-9]*/status"):
        with suppress(OSError):  # it has ended
            facts = dict(line.split(":\t", 1) for line in path.read_text().splitlines() if ":\t" in line)
            if int(facts["PPid"]) == os.getpid():
                names[int(facts["Pid"])] = facts["Name"]
    return names


class Orphaning(Unisolated):
    """Starts a process that keeps the channel open, and is killed, as bwrap may be while it starts."""

    def command(self, channel, seccomp, limits):
        return ["/bin/sh", "-c", "sleep 61.375 & kill -9 $$"]


def test_processes_of_a_killed_start_are_ended_and_not_waited_for(monkeypatch):
    monkeypatch.setattr(processes, "START_SECONDS", 600.0)
    (output,) = processes.run_program(Program("print()"), [""], LIMITS, Orphaning())
    assert output.failure.status is Status.ERROR
    deadline = time.monotonic() + 30  # it is killed, and ends when it is scheduled
    while any(b"61.375" in _read(path) for path in Path("/proc").glob("[0-9]*/cmdline")):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _read(path):
    with suppress(OSError):
        return path.read_bytes()
    return b""
