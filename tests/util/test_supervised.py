"""Commands under a supervisor: no process of theirs outlives the one that started them, however that ends."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import vpo
from vpo.util import supervised

SOURCE = Path(vpo.__file__).parents[1]
# Started as a command, it writes its process id; then it starts another in a session of its own, which does, too.
TREE = """
import os, signal, subprocess, sys, time
folder, ignores = sys.argv[1], sys.argv[2] == "ignores"
if ignores:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
sleep = "import os, sys, time; open(sys.argv[1], 'w').write(f'{os.getpid()}\\\\n'); time.sleep(300)"
subprocess.Popen([sys.executable, "-S", "-c", sleep, f"{folder}/left"], start_new_session=True)
while not os.path.exists(f"{folder}/left"):
    time.sleep(0.01)
open(f"{folder}/command", "w").write(f"{os.getpid()}\\n")
time.sleep(300)
"""
# Runs that command as `vpo train` runs verl, and prints how it ended.
RUNS = """
import sys
from pathlib import Path
from vpo.util import supervised
print(supervised.run([sys.executable, "-S", "-c", *sys.argv[1:]], cwd=Path.cwd()))
"""


@pytest.fixture(autouse=True)
def default_signals():
    """`nohup` lets the tests ignore some of these signals."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def until(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def pid_in(path):
    until(lambda: path.is_file() and path.read_text().endswith("\n"))
    return int(path.read_text())


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def started(folder, ignores="heeds"):
    command = [sys.executable, "-c", RUNS, TREE, str(folder), ignores]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    with open(folder / "output", "w") as output:  # no pipe: what is left would hold it open
        return subprocess.Popen(command, stdout=output, env=environment)


@pytest.mark.parametrize("ignores", ["heeds", "ignores"])
def test_all_processes_end_when_the_starter_is_killed(tmp_path, ignores):
    process = started(tmp_path, ignores)
    pids = [pid_in(tmp_path / "left"), pid_in(tmp_path / "command")]
    process.kill()
    process.wait()
    until(lambda: not any(map(is_alive, pids)))


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGTERM, -signal.SIGTERM), (signal.SIGHUP, -signal.SIGTERM), (signal.SIGINT, -signal.SIGINT)],
)
def test_a_signal_to_the_starter_ends_the_command_and_what_it_left(tmp_path, number, code):
    process = started(tmp_path)
    pids = [pid_in(tmp_path / "left"), pid_in(tmp_path / "command")]
    process.send_signal(number)
    assert process.wait(60) == 0
    assert (tmp_path / "output").read_text() == f"{-supervised.FORWARDED_AS[number]}\n"
    assert not any(map(is_alive, pids))  # they ended before the starter went on


def test_the_command_is_killed_with_its_supervisor(tmp_path):
    process = started(tmp_path)
    pids = [pid_in(tmp_path / "left"), pid_in(tmp_path / "command")]
    (supervisor,) = subprocess.run(
        ["ps", "-o", "ppid=", "-p", str(pids[1])], capture_output=True, text=True, check=True
    ).stdout.split()
    os.kill(int(supervisor), signal.SIGKILL)
    assert process.wait(60) == 0
    assert (tmp_path / "output").read_text() == f"{-signal.SIGKILL}\n"
    until(lambda: not is_alive(pids[1]))
    os.kill(pids[0], signal.SIGKILL)  # a supervisor that is killed cannot end it


@pytest.mark.parametrize("number", supervised.FORWARDED_AS)
def test_a_signal_while_the_command_is_started_is_not_lost(tmp_path, number, monkeypatch):
    real = subprocess.Popen

    def interrupted(*arguments, **settings):
        process = real(*arguments, **settings)
        os.kill(os.getpid(), number)  # as if it came right after the fork
        return process

    monkeypatch.setattr(supervised.subprocess, "Popen", interrupted)
    began = time.monotonic()
    code = supervised.run(["sleep", "300"], cwd=tmp_path)
    assert code == -supervised.FORWARDED_AS[number]
    assert time.monotonic() - began < 60


@pytest.mark.parametrize("number", supervised.FORWARDED_AS)
def test_a_signal_that_another_thread_gets_is_not_lost(tmp_path, number):
    command = ["sh", "-c", "echo $$ > command; exec sleep 100"]

    def send():
        pid_in(tmp_path / "command")
        time.sleep(0.2)  # until the main thread waits for the command
        signal.pthread_kill(threading.get_ident(), number)

    thread = threading.Thread(target=send)
    thread.start()
    assert supervised.run(command, cwd=tmp_path) == -supervised.FORWARDED_AS[number]
    thread.join()


def test_a_signal_that_the_starter_ignores_stays_ignored(tmp_path):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as `nohup` does
    try:
        hang_up = f"import os, signal; os.kill({os.getpid()}, signal.SIGHUP)"
        assert supervised.run([sys.executable, "-c", f"{hang_up}; raise SystemExit(7)"], cwd=tmp_path) == 7
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("code", [0, 3, 255])
def test_the_exit_code_is_the_command_s(tmp_path, code):
    assert supervised.run([sys.executable, "-S", "-c", f"raise SystemExit({code})"], cwd=tmp_path) == code


def test_the_signals_of_the_command_are_not_blocked(tmp_path):
    shown = f"grep -E '^Sig(Blk|Ign)' /proc/self/status > {tmp_path}/signals"
    assert supervised.run(["sh", "-c", shown], cwd=tmp_path) == 0
    blocked, ignored = (int(line.split()[1], 16) for line in (tmp_path / "signals").read_text().splitlines())
    assert blocked == 0
    assert not ignored >> (signal.SIGPIPE - 1) & 1


def test_a_program_that_does_not_exist_is_named(tmp_path, capfd):
    assert supervised.run(["/nowhere/python", "-m", "x"], cwd=tmp_path) == 127
    assert capfd.readouterr().err == "/nowhere/python: No such file or directory\n"
