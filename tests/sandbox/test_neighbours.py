"""Programs that use up what others share with them: cores, pipes, threads; and programs that look ahead."""

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy
import pytest

import vpo
from tests.sandbox.harmless import reasons
from vpo.sandbox import ISOLATIONS, Case, Limits, Program, Sandbox, unavailable_reason

CPU_GROUPS = Path("/sys/fs/cgroup/cpu")
PIPES = 1100  # of 16 pages each: more than the pages that a user's pipes may have
THREADS = 55
USER = 54_321  # a user without any other process
# Hashing releases the interpreter's lock, so that each thread is one more competitor for the cores.
HASHING = f"""
import hashlib, threading, time
data = bytes(1 << 20)
def work():
    while True: hashlib.sha256(data).digest()
def answer(_):
    try:
        for _ in range({THREADS}): threading.Thread(target=work, daemon=True).start()
    except RuntimeError:
        pass
    work()
"""
WORKING = """
import time
def double(n):
    end = time.process_time() + 0.5
    while time.process_time() < end: pass
    return 2 * n
"""


@pytest.fixture(params=["bubblewrap", "landlock"])
def isolation(request):
    if problem := unavailable_reason(ISOLATIONS[request.param]):
        pytest.skip(f"{request.param} does not work here: {problem}")
    return request.param


def test_threads_of_a_neighbour_do_not_take_a_programs_time(isolation):
    # Half of its time is spent working, by the clock of a processor: two cores that 56 threads share are a 28th each.
    limits = Limits(test_seconds=1.0, seconds=3.0)
    cases = [Case((n,), 2 * n) for n in range(2)]
    with Sandbox(limits=limits, isolation=isolation, workers=2) as box:
        jobs = [(Program(HASHING, "answer"), [Case((1,), 5)]), (Program(WORKING, "double"), cases)]
        hashing, working = box.grade_many(jobs)
        alone = box.grade(Program(WORKING.replace("0.5", "1.5"), "double"), cases[:1])
    assert reasons(working) == ["passed"] * 2
    assert reasons(hashing) in (["timeout"], ["forbidden"], ["memory"])
    assert reasons(alone) == ["timeout"]  # its own work counts


@pytest.fixture
def slow_group():
    """A group of processes that together have a sixth of a core."""
    group = CPU_GROUPS / f"vpo-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / "cpu.cfs_period_us").write_text("50000")
        (group / "cpu.cfs_quota_us").write_text("8000")
    except OSError:
        pytest.skip("no group of processes with a share of a core can be made here")
    yield group
    deadline = time.monotonic() + 30
    while (group / "tasks").read_text() and time.monotonic() < deadline:  # what was killed ends soon
        time.sleep(0.05)
    group.rmdir()


IN_GROUP = """
import os, sys
from vpo.sandbox import *
source, isolation, tasks = sys.argv[1:]
with open(tasks, "w") as file:
    file.write(str(os.getpid()))
with Sandbox(limits=Limits(test_seconds=0.6, seconds=3.0), isolation=isolation, workers=1) as box:
    verdict, = box.grade(Program(source, "double"), [Case((1,), 2)])
print(verdict.reason or verdict.status)
"""


def test_the_limit_is_processor_time(isolation, slow_group):
    command = [sys.executable, "-c", IN_GROUP, WORKING.replace("0.5", "0.3"), isolation, str(slow_group / "tasks")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "passed", (done.stdout, done.stderr[-500:])  # by the clock on the wall it takes 2 s


@pytest.mark.parametrize("size", [60_000, 600_000])
def test_standard_input_needs_no_pipe_pages(isolation, size):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2 * PIPES + 500:
        pytest.skip("too few open files are allowed")
    text = "1 " * (size // 2)
    count = Program("import sys\nprint(len(sys.stdin.read().split()))")
    descriptors: list[int] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * PIPES + 500), hard))
    try:
        for _ in range(PIPES):  # they count towards the user's pages, whoever holds them
            descriptors += os.pipe()
        assert _capacity_of_a_new_pipe() < size
        with Sandbox(limits=Limits(test_seconds=4.0), isolation=isolation, workers=1) as box:
            verdicts = box.grade(count, [Case(text, str(size // 2))] * 3)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert reasons(verdicts) == ["passed"] * 3


def _capacity_of_a_new_pipe() -> int:
    """Bytes that a new pipe of a process without privileges holds."""
    script = "import fcntl, os; print(fcntl.fcntl(os.pipe()[0], 1032))"
    command = [sys.executable, "-S", "-c", script]
    if os.geteuid() == 0:
        if (setpriv := shutil.which("setpriv")) is None:
            pytest.skip("setpriv is not installed")
        command = [setpriv, "--bounding-set=-all", "--inh-caps=-all", *command]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


SECRET = "7261835490"
# Everything that the process holds: objects, frames of all threads, and files that are open.
LOOKING = """
import gc, os, sys
def holds(value, secret, seen, depth=0):
    if id(value) in seen or depth > 6:
        return False
    seen.add(id(value))
    if isinstance(value, bytes | bytearray):
        return secret.encode() in value
    if isinstance(value, str):
        return secret in value
    if isinstance(value, dict):
        return any(holds(each, secret, seen, depth + 1) for each in [*list(value), *list(value.values())])
    if isinstance(value, list | tuple | set | frozenset):
        return any(holds(each, secret, seen, depth + 1) for each in list(value))
    return False

def found(secret):
    # The program's own names and constants are put aside.
    seen = {id(found.__globals__)}
    for frame in sys._current_frames().values():
        while frame:
            if frame.f_globals is not found.__globals__ and holds(dict(frame.f_locals), secret, seen):
                return True
            frame = frame.f_back
    for value in gc.get_objects():
        if value is not found.__globals__ and holds(value, secret, seen):
            return True
    for number in range(64):
        try:
            if holds(os.pread(number, 1 << 20, 0), secret, seen):
                return True
        except OSError:
            pass
    return False
"""
HALVES = f"found(''.join({[SECRET[:5], SECRET[5:]]!r}))"  # so that the program itself does not hold it
FUNCTION = f"{LOOKING}\ndef f(x):\n    return {HALVES}\n"
SCRIPT = f"{LOOKING}\nprint({HALVES})\n"


@pytest.mark.parametrize("form", ["function", "script"])
def test_an_input_is_not_there_before_its_turn(isolation, form):
    if form == "function":
        program, inputs, yes = Program(FUNCTION, "f"), [("1",), (SECRET,)], True
    else:
        program, inputs, yes = Program(SCRIPT), ["1\n", f"{SECRET}\n"], "True\n"
    with Sandbox(limits=Limits(test_seconds=10.0, seconds=30.0), isolation=isolation, workers=1) as box:
        outputs = box.outputs_many([(program, inputs)])[0]
    values = [output.value for output in outputs]
    assert values[1] == yes, outputs  # in its own test it is there, so looking works
    assert values[0] != yes
    assert outputs[0].failure is None, outputs


AHEAD = """
import threading, time
result = {}
def solve(x):
    for _ in range(40_000_000): pass
    result[x] = 2 * x
def f(x):
    if x == 1:
        threading.Thread(target=solve, args=(9,), daemon=True).start()
        return 2
    end = time.monotonic() + 0.3
    while x not in result and time.monotonic() < end: time.sleep(0.01)
    return result.get(x, 0)
"""


def test_a_thread_of_one_test_does_not_work_in_the_next(isolation):
    with Sandbox(limits=Limits(test_seconds=0.5, seconds=8.0), isolation=isolation, workers=1) as box:
        verdicts = box.grade(Program(AHEAD, "f"), [Case((1,), 2), *[Case((9,), 18)] * 12])
    assert not any(verdict.passed for verdict in verdicts[1:]), reasons(verdicts)
    assert verdicts[0].passed


SILENT = "import os, time\ndef f(x):\n    os.closerange(3, 64)\n    time.sleep(60)\n"


def test_a_program_that_closes_its_channel_and_sleeps_holds_no_worker(isolation):
    with Sandbox(limits=Limits(test_seconds=1.0, seconds=2.0), isolation=isolation, workers=1) as box:
        verdicts = box.grade(Program(SILENT, "f"), [Case((1,), 2)] * 12)
    assert reasons(verdicts)[:2] == ["forbidden"] * 2
    assert reasons(verdicts)[5:] == ["not run"] * 7


# A program that starts as many threads as its user may have, while others are graded.
GRADER = """
import json, resource, threading, time
resource.setrlimit(resource.RLIMIT_NPROC, (80, 80))
from vpo.sandbox import *
source = '''
import threading, time
def f(x):
    threading.stack_size(65536)
    event = threading.Event()
    try:
        while True: threading.Thread(target=event.wait, daemon=True).start()
    except RuntimeError:
        time.sleep(1.0)
    return x
'''
good = Program("def f(x): return x", "f")
limits = Limits(test_seconds=2.0, seconds=6.0)
with Sandbox(limits=limits, isolation="landlock", workers=6) as box:
    box.grade(good, [Case((1,), 1)])
    hostile = []
    jobs = [(Program(source, "f"), [Case((1,), 2)])] * 3
    others = threading.Thread(target=lambda: hostile.extend(box.grade_many(jobs)))
    others.start()
    time.sleep(0.7)
    verdicts = box.grade_many([(good, [Case((1,), 1)])] * 20)
    others.join()
print(json.dumps([verdict[0].status for verdict in hostile + verdicts]))
"""


def test_threads_of_a_program_do_not_make_the_grader_raise():
    command, environment = _as_another_user()
    done = subprocess.run([*command, GRADER], env=environment, capture_output=True, text=True, timeout=120, cwd="/")
    assert done.returncode == 0, done.stderr[-2000:]
    statuses = json.loads(done.stdout)
    assert "passed" not in statuses[:3]
    assert statuses[3:] == ["passed"] * 20


def _as_another_user() -> tuple[list[str], dict[str, str]]:
    """A command that runs Python as a user with no other process, and its environment; skips where there is none."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("root is needed, to be another user")
    paths = [str(Path(package.__file__ or "").parent.parent) for package in (vpo, numpy)]
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(paths), "OMP_NUM_THREADS": "1"}
    for python in (sys.executable, "/usr/bin/python3"):
        command = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", python, "-c"]
        probe = "from vpo.sandbox import *; print(unavailable_reason(ISOLATIONS['landlock']) or 'works')"
        done = subprocess.run([*command, probe], env=environment, capture_output=True, text=True, cwd="/")
        if done.stdout.strip() == "works":
            return command, environment
    pytest.skip("another user cannot run this installation under Landlock")
