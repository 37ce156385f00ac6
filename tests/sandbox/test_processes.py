"""Failures of the sandbox itself, and what its processes leave behind."""

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

from tests.sandbox.harmless import LIMITS, reasons
from tests.sandbox.world import processes_with
from vpo.sandbox import (
    ISOLATIONS,
    Case,
    Limits,
    Program,
    Sandbox,
    Status,
    isolation,
    judging,
    processes,
    unavailable_reason,
)
from vpo.sandbox.isolation import ENVIRONMENT, NAMESPACES, Bubblewrap
from vpo.sandbox.judging import Job, judge
from vpo.sandbox.zygote import Zygote

SLOW_SECOND = "import time\ndef f(x):\n    time.sleep(0.4 * (x == 1))\n    return x\n"
PR_SET_CHILD_SUBREAPER = 36  # of linux/prctl.h


@pytest.fixture(scope="module")
def zygote():
    with Zygote() as zygote:
        yield zygote


def judged_here(box, program, cases, zygote):
    """The verdicts of a program that is trusted, judged in this process."""
    return [result.verdict for result in judge(Job(program, cases, box.limits, box.isolation), zygote)]


def at_second_test(monkeypatch, do):
    """Call a function with each process that begins the second test."""
    real = processes.SandboxedProcess._send

    def send(sandboxed, number, data):
        sent = real(sandboxed, number, data)
        if number == 1:
            do(sandboxed)
        return sent

    monkeypatch.setattr(processes.SandboxedProcess, "_send", send)


@pytest.mark.parametrize(("kills", "status"), [(1, "passed"), (9, "infrastructure error")])
def test_a_killed_sandbox_is_started_again(box, zygote, monkeypatch, kills, status):
    if box.isolation.name == "none":
        pytest.skip("as under Landlock")
    begun = []

    def kill(sandboxed):
        begun.append(sandboxed)
        if len(begun) <= kills:
            spaces = sandboxed.namespaces
            os.kill(spaces.process.pid if spaces else sandboxed.clock.pid, signal.SIGKILL)

    at_second_test(monkeypatch, kill)
    verdicts = judged_here(box, Program(SLOW_SECOND, "f"), [Case((x,), x) for x in range(3)], zygote)
    assert reasons(verdicts) == ["passed", status, status]
    assert len(begun) == min(kills + 1, judging.ATTEMPTS)


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
box = Sandbox(limits=Limits(test_seconds=20), isolation="{box.isolation.name}")
print("begins", flush=True)
box.grade(Program({source!r}, "f"), [Case((1,), 2)])
"""
    grader = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert grader.stdout is not None
    grader.stdout.readline()
    deadline = time.monotonic() + 20
    seen = 0  # the first may be one that only sets up the others
    while seen < 2 and time.monotonic() < deadline:
        time.sleep(0.3 if source == SLEEPING else 1.0)
        seen = seen + 1 if processes_with(token, 0) else 0
    assert seen == 2
    grader.kill()
    grader.communicate()
    assert processes_with(token) == []


@pytest.mark.parametrize("call", ["memfd_create", "open", "write"])
def test_too_many_open_files_are_an_error_and_leak_nothing(box, zygote, monkeypatch, call):
    number = 0
    real = getattr(os, call)

    def failing(*arguments):
        nonlocal number
        number += 1
        if number % 2 == 0 or call == "open":
            raise OSError(24, "too many open files")
        return real(*arguments)

    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(processes.os, call, failing)
    (verdict,) = judged_here(box, Program("def f(x): return x", "f"), [Case((1,), 1)], zygote)
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


def test_processor_time_used_up_is_no_infrastructure_error(box, zygote, monkeypatch):
    monkeypatch.setattr(Limits, "processor_seconds", 1)
    source = "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\ndef f(x):\n    while True: pass\n"
    with Sandbox(
        limits=replace(LIMITS, test_seconds=9.0, seconds=9.0), isolation=box.isolation.name, unsafe=True
    ) as long:
        (verdict,) = judged_here(long, Program(source, "f"), [Case((1,), 1)], zygote)
    assert verdict.status is Status.FAILED
    assert verdict.reason in ("timeout", "memory")


def test_a_program_has_no_capabilities(box, zygote, monkeypatch):
    if box.isolation.name == "none":
        pytest.skip("without isolation they stay")
    seen = []
    at_second_test(monkeypatch, lambda process: seen.append(Path(f"/proc/{process.clock.pid}/status").read_text()))
    judged_here(box, Program(SLOW_SECOND, "f"), [Case((x,), x) for x in range(2)], zygote)
    facts = dict(line.split(":", 1) for line in seen[0].splitlines())
    assert int(facts["CapEff"], 16) == int(facts["CapPrm"], 16) == 0
    assert facts["Seccomp"].strip() == "2"
    assert facts["NoNewPrivs"].strip() == "1"


def test_a_program_in_namespaces_is_in_none_of_this_process(zygote, monkeypatch):
    if problem := unavailable_reason(ISOLATIONS["bubblewrap"]):
        pytest.skip(f"bubblewrap does not work here: {problem}")
    seen = []

    def look(sandboxed):
        seen.append({name: os.stat(f"/proc/{sandboxed.clock.pid}/ns/{name}").st_ino for name in NAMESPACES})

    at_second_test(monkeypatch, look)
    with Sandbox(isolation="bubblewrap") as box:
        judged_here(box, Program(SLOW_SECOND, "f"), [Case((x,), x) for x in range(2)], zygote)
    assert all(seen[0][name] != os.stat(f"/proc/self/ns/{name}").st_ino for name in NAMESPACES)


def test_a_program_has_only_its_own_files_open(box):
    source = """
import os
def f(x):
    kinds = []
    for number in range(256):
        try: kinds.append((os.fstat(number).st_mode >> 12, number < 3))
        except OSError: pass
    return kinds
"""
    character, socket, regular = 0o2, 0o14, 0o10
    opened = [(character, True)] * 3 + [(socket, False), (regular, False), (character, False)]
    (verdict,) = box.grade(Program(source, "f"), [Case((1,), opened, compare="set")])
    assert verdict.passed, verdict


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


class Orphaning(Bubblewrap):
    """Starts a process that keeps the connection open, and is killed, as bwrap may be while it starts."""

    def command(self, limits):
        return ["/bin/sh", "-c", "sleep 61.375 & kill -9 $$"]


def test_processes_of_a_killed_start_are_ended_and_not_waited_for(zygote, monkeypatch):
    monkeypatch.setattr(isolation, "START_SECONDS", 600.0)
    (result,) = judge(Job(Program("print()"), [Case("", "")], LIMITS, Orphaning()), zygote)
    assert result.verdict.status is Status.ERROR
    deadline = time.monotonic() + 30  # it is killed, and ends when it is scheduled
    while any(b"61.375" in _read(path) for path in Path("/proc").glob("[0-9]*/cmdline")):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _read(path):
    with suppress(OSError):
        return path.read_bytes()
    return b""
