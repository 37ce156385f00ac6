"""Commands whose processes all end with this process, even if it is killed: see `supervisor.py`."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from vpo.util import supervisor
from vpo.util.signals import handling

# A terminal's end would end a command without any clean-up.
FORWARDED_AS = {signal.SIGINT: signal.SIGINT, signal.SIGTERM: signal.SIGTERM, signal.SIGHUP: signal.SIGTERM}
WAIT = 0.5  # seconds


def start(
    command: Sequence[str], *, cwd: Path, env: Mapping[str, str] | None = None, keep: Sequence[int] = ()
) -> "subprocess.Popen[bytes]":
    """Start a command under a supervisor, which takes its signals and has its exit code.

    It has a session of its own, so that Ctrl-C in a terminal reaches it through this process alone.

    Args:
        command: a program and its arguments.
        cwd: the folder that it runs in.
        env: its environment; by default that of this process.
        keep: descriptors that stay open until its last process has ended, such as of a lock.
    """
    supervised = [sys.executable, "-I", "-S", supervisor.__file__, str(os.getpid()), *command]
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, supervisor.WATCHED)  # which it inherits
    try:
        return subprocess.Popen(supervised, cwd=cwd, env=env, pass_fds=keep, start_new_session=True)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def run(command: Sequence[str], *, cwd: Path, keep: Sequence[int] = ()) -> int:
    """Run a command under a supervisor, and pass on the signals that this process gets; its exit code."""
    process: subprocess.Popen[bytes] | None = None
    early: list[signal.Signals] = []  # signals from before the command could get them

    def forward(number: int, _: Any) -> None:
        as_number = FORWARDED_AS[signal.Signals(number)]
        early.append(as_number) if process is None else process.send_signal(as_number)

    # `nohup` ignores SIGHUP, and shells let their background jobs ignore SIGINT: they stay ignored.
    numbers = [number for number in FORWARDED_AS if signal.getsignal(number) is not signal.SIG_IGN]
    with handling(numbers, forward):
        process = start(command, cwd=cwd, keep=keep)
        for number in early:
            process.send_signal(number)
        while True:
            # Where another thread of this process got a signal, the handler runs only once this wait ends.
            with suppress(subprocess.TimeoutExpired):
                return process.wait(WAIT)
