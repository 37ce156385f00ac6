"""The wall around whole processes: each attack works without it (the positive control), and not behind it."""

import os
import platform
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from vpo.sandbox import process_limits, wall
from vpo.sandbox.wall import WalledProcess, WallError, WallLimits, wall_problem
from vpo.util.errors import InputError

pytestmark = pytest.mark.skipif(bool(wall_problem()), reason="the wall does not work on this machine (vpo doctor)")

LIMITS = WallLimits(memory_mb=300, disk_mb=20, processes=30, line_bytes=1000)


def say(code, *, walled=True, readable=(), seconds=20.0, limits=LIMITS):
    """The first line that a program says."""
    program = [sys.executable, "-c", f"import os, sys\n{code}"]
    with WalledProcess(program, list(readable), limits, walled=walled) as process:
        return process.line(seconds).decode()


def attempt(code):
    """A program that says what an expression gives, or what it raises."""
    return (
        f"try:\n    print({code}, flush=True)\nexcept Exception as error:\n    print(type(error).__name__, flush=True)"
    )


@pytest.fixture
def listening():
    """The port of a server on this machine."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_files_of_the_machine_cannot_be_read(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("hidden")
    code = attempt(f"open({str(secret)!r}).read()")
    assert say(code, walled=False) == "hidden"
    assert say(code) == "FileNotFoundError"
    assert say(code, readable=[str(tmp_path)]) == "hidden"
    home = attempt("[each for each in os.listdir(os.path.dirname(os.__file__)) if each == 'os.py']")
    assert say(home) == "['os.py']"
    here = say(attempt(f"os.listdir({str(Path.cwd())!r})"))
    assert here in ("FileNotFoundError", f"[{Path(sys.prefix).name!r}]")  # Python's environment may be in this folder
    assert say(attempt("open('/etc/passwd').read()")) == "FileNotFoundError"


def test_nothing_of_the_machine_can_be_written(tmp_path):
    def write(path):
        return attempt(f"open({path!r}, 'a').write('x')")

    file = str(tmp_path / "file")
    assert say(write(file), walled=False) == "1"
    assert say(write(file), readable=[str(tmp_path)]) == "OSError"
    for path in ("/file", "/usr/file", f"{sys.prefix}/file", "/dev/file", "/proc/sys/kernel/core_pattern"):
        assert say(write(path)) in ("OSError", "PermissionError"), path
    assert say(write("/tmp/file")) == say(write("file")) == "1"
    assert not Path("/tmp/work").exists()


def test_there_is_no_network(listening):
    code = attempt(f"__import__('socket').create_connection(('127.0.0.1', {listening}), 5).getpeername()[1]")
    assert say(code, walled=False) == str(listening)
    assert say(code) in ("ConnectionRefusedError", "OSError")


def test_the_environment_is_not_seen(monkeypatch):
    monkeypatch.setenv("VPO_SECRET", "hidden")
    assert say("print(os.environ.get('VPO_SECRET'), flush=True)") == "None"


def test_rights_cannot_be_gained():
    newer = "__import__('ctypes').CDLL(None).unshare(0x10000000)"  # CLONE_NEWUSER
    assert say(attempt(newer)) == "-1"
    assert say(attempt("os.getuid()")) == "65534"
    assert say(attempt("os.setuid(0)")) in ("OSError", "PermissionError")


def test_keys_of_the_session_are_out_of_reach():
    calls = "__import__('ctypes').CDLL(None, use_errno=True)"
    if platform.machine() != "x86_64":
        pytest.skip("numbers of system calls of x86_64")
    read = attempt(f"{calls}.syscall(250, 6, -3, 0, 0)")  # KEYCTL_DESCRIBE of the session's keyring
    assert say(read) == "-1"
    assert say(attempt(f"{calls}.syscall(248, b'user', b'vpo-test', b'x', 1, -3)")) == "-1"
    assert say(attempt("os.memfd_create('x')")) == "PermissionError"


@pytest.mark.parametrize(
    "code",
    [
        "import mmap\nheld = mmap.mmap(-1, 500 << 20)\nfor at in range(0, len(held), 4096): held[at] = 1",
        "import ctypes, threading\ndef fill():\n    held = []\n    while True: held.append(b'1' * 10**7)\n"
        "threading.Thread(target=fill).start()\nctypes.CDLL(None).syscall(60, 0)",
    ],
    ids=["shared", "by a thread after the first has ended"],
)
def test_memory_of_other_kinds_counts(code):
    with pytest.raises(WallError, match="more than 300 MB of memory"):
        say(f"{code}\nimport time; time.sleep(60)", seconds=20.0)


def test_packages_subprocesses_and_temporary_files_work():
    code = """
import multiprocessing, subprocess, tempfile
import numpy
with tempfile.NamedTemporaryFile('w') as file, multiprocessing.Pool(2) as pool:
    file.write('x')
    inner = subprocess.run([sys.executable, '-c', 'print(6)'], capture_output=True, text=True)
    shell = subprocess.run('echo 7', shell=True, capture_output=True, text=True)
    print(int(numpy.ones(3).sum()), pool.map(abs, [-4, -5]), inner.stdout.strip(), shell.stdout.strip(), flush=True)
"""
    assert say(code) == "3 [4, 5] 6 7"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("while True:\n    os.fork()", "more than 30 processes"),
        ("import subprocess\nwhile True:\n    subprocess.Popen(['sleep', '99'])", "more than 30 processes"),
        ("x = []\nwhile True:\n    x.append(b'1' * 10**7)", "more than 300 MB of memory"),
        ("while True:\n    pass", "not done within 2 s"),
        ("print('x' * 10**6, flush=True)\nwhile True:\n    pass", "its result is longer than 1,000 bytes"),
        ("while True:\n    sys.stderr.write('x' * 10**6)", "not done within 2 s"),
        ("os.close(1)\nwhile True:\n    pass", "not done within 2 s"),
        ("sys.stderr.write('gone wrong'); sys.exit(3)", "exit code 3.*gone wrong"),
        ("import signal\nos.kill(os.getppid(), signal.SIGKILL)\nos.kill(-1, signal.SIGKILL)", "not done|ended early"),
        ("import ctypes\nctypes.string_at(0)", "ended early"),
    ],
)
def test_what_goes_wrong_is_told_and_leaves_nothing(code, message):
    marker = f"marker-{os.getpid()}"
    with pytest.raises(WallError, match=message):
        say(f"# {marker}\n{code}", seconds=2.0)
    assert marker not in processes()


def test_the_kernel_bounds_the_number_of_processes(monkeypatch):
    monkeypatch.setattr(wall, "TASKS", 1)
    code = """
import time
count = 0
try:
    while os.fork():
        count += 1
    time.sleep(60)
except BlockingIOError:
    print(count, flush=True)
"""
    assert 20 <= int(say(code)) <= LIMITS.processes


def test_without_control_groups_a_fork_bomb_starves_nobody(monkeypatch):
    monkeypatch.setattr(process_limits, "PIDS", ())
    began = time.monotonic()
    with pytest.raises(WallError, match="more than 30 processes"):
        say("while True:\n    os.fork()", seconds=30.0)
    assert time.monotonic() - began < 20


def test_a_process_that_has_ended_has_no_family_and_no_memory():
    with subprocess.Popen(["true"]) as process:
        process.wait()
    assert wall._tasks(process.pid) == []
    assert list(wall._family(process.pid, 9)) == [process.pid]
    assert wall._memory(process.pid) == (0, 0)


def test_neighbours_live_on():
    waits = "import time; time.sleep(1); print('fine', flush=True)"
    with WalledProcess([sys.executable, "-c", waits], [], LIMITS) as other:
        with pytest.raises(WallError):
            say("import signal\nos.kill(-1, signal.SIGKILL)\nwhile True:\n    os.fork()", seconds=1.0)
        assert other.line(20) == b"fine"


def test_the_disk_is_limited():
    assert say(attempt("open('/tmp/large', 'wb').write(bytes(50 * 2**20))")) == "OSError"
    assert say(attempt("open('/dev/shm/large', 'wb').write(bytes(50 * 2**20))")) == "OSError"


def test_what_was_started_ends_with_it():
    code = "import subprocess\nsubprocess.Popen(['sleep', '98765'], start_new_session=True)\nprint('x', flush=True)"
    assert say(code) == "x"
    assert "98765" not in processes()


def test_it_ends_with_a_caller_that_is_killed():
    caller = """
import sys
from vpo.sandbox.wall import WalledProcess, WallLimits
code = "print(1, flush=True)\\nimport time\\nwhile True: time.sleep(12345.678)"
with WalledProcess([sys.executable, "-c", code], [], WallLimits()) as process:
    print(process.line(30), flush=True)
    process.line(600)
"""
    with subprocess.Popen([sys.executable, "-c", caller], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert "12345.678" in processes()
        process.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 10
    while "12345.678" in processes() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert "12345.678" not in processes()


def test_another_thread_can_stop_it():
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    began = time.monotonic()
    with (
        WalledProcess([sys.executable, "-c", "while True: pass"], [], LIMITS, stop=stop) as process,
        pytest.raises(WallError, match="stopped"),
    ):
        process.line(60)
    assert time.monotonic() - began < 20


def test_without_bubblewrap_only_unsafe_runs(monkeypatch):
    monkeypatch.setattr(wall, "wall_problem", lambda: "bwrap is not installed")
    with pytest.raises(InputError, match=r"bwrap is not installed.*install bubblewrap.*--set unsafe=true"):
        wall.has_wall(unsafe=False)
    assert wall.has_wall(unsafe=True) is False
    assert say("print(os.getcwd(), flush=True)", walled=False).startswith("/tmp/")


def processes():
    """The command lines of all processes of this machine."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes().decode("utf-8", "replace"))
        except OSError:  # it has ended
            continue
    return "\n".join(lines)
