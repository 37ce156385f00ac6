"""Final answers compared: at once where that is plain to see, else by math-verify in processes with a time limit.

Hostile LaTeX hangs parsers. A comparison that takes longer than the limit, or that kills its process twice, is decided:
the text did it, and it is not equal. Where no process can be started, nothing is known.
"""

import atexit
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, cast

from vpo.tasks.math.answers import compared, final_answer
from vpo.util.errors import InputError

LIMIT = 5.0  # seconds for a comparison, which takes milliseconds
STARTING = 60.0  # seconds for a process to start, which takes one
SCRIPT = Path(__file__).with_name("comparing.py")


def need_checker(task: str) -> None:
    """Refuse to go on without math-verify."""
    if find_spec("math_verify") is None:
        raise InputError(f"task {task} needs the package math-verify: pip install 'vpo[math]'")


def equal_all(pairs: Sequence[tuple[str, str | None]]) -> list[bool | None]:
    """Return whether each answer equals its gold answer; None where nothing is known. A missing answer does not."""
    found = {pair: False if pair[1] is None else compared(pair[0], pair[1]) for pair in pairs}
    asked = [(gold, answer) for (gold, answer), equal in found.items() if equal is None and answer is not None]
    if asked:
        found.update(zip(asked, _shared(os.getpid()).equal(asked), strict=True))
    return [found[pair] for pair in pairs]


def final_answers(golds: Sequence[str], answers: Sequence[str | None]) -> list[tuple[str | None, bool | None]]:
    """Return the final answer of each text, None where there is none, and whether it equals the gold one."""
    finals = [None if answer is None else final_answer(answer) for answer in answers]
    return list(zip(finals, equal_all(list(zip(golds, finals, strict=True))), strict=True))


@cache
def _shared(process: int) -> "Checker":
    """Return the checker of a process: pipes must not be shared with one that was forked."""
    checker = Checker()
    atexit.register(checker.close)
    return checker


class Checker:
    """math-verify in some processes, which are started as they are needed, and again after one had to be killed."""

    def __init__(self, *, limit: float = LIMIT, processes: int | None = None, script: Path = SCRIPT) -> None:
        """Make a checker.

        Args:
            limit: seconds for a comparison.
            processes: how many at most; by default one a core, up to four.
            script: what they run.
        """
        self.limit, self.script = limit, script
        self.processes = processes or min(4, os.cpu_count() or 1)
        self.idle: SimpleQueue[_Process] = SimpleQueue()

    def equal(self, pairs: Sequence[tuple[str, str]]) -> list[bool | None]:
        """Return whether gold and answer of each pair are equal, None where no process could tell."""
        if len(pairs) == 1:
            return [self._one(pairs[0])]
        with ThreadPoolExecutor(min(self.processes, len(pairs))) as threads:
            return list(threads.map(self._one, pairs))

    def close(self) -> None:
        """End the processes."""
        while not self.idle.empty():
            self.idle.get().kill()

    def _one(self, pair: tuple[str, str]) -> bool | None:
        for _ in range(2):  # one that died may have been killed from outside
            try:
                process = self.idle.get_nowait()
            except Empty:
                started = _Process.start(self.script)
                if started is None:
                    return None
                process = started
            try:
                found = process.ask(pair, self.limit)
            except TimeoutError:
                process.kill()
                return False
            except (EOFError, OSError):
                process.kill()
                continue
            self.idle.put(process)
            return found
        return False


class _Process:
    """One process that compares."""

    def __init__(self, script: Path) -> None:
        # -P: the script's folder is no place to import from.
        command = [sys.executable, "-P", str(script)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )

    @classmethod
    def start(cls, script: Path) -> "_Process | None":
        """Return a process that is ready, or None where it cannot be had."""
        try:
            process = cls(script)
        except OSError:
            return None
        try:
            process._line(STARTING)
        except (TimeoutError, EOFError):
            process.kill()
            return None
        return process

    def ask(self, pair: tuple[str, str], limit: float) -> bool:
        """Return whether a pair is equal, within a limit."""
        stdin = cast(IO[bytes], self.process.stdin)
        stdin.write(json.dumps(pair).encode() + b"\n")
        stdin.flush()
        return json.loads(self._line(limit)) is True

    def kill(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(OSError):  # what was written last found no reader
                cast(IO[bytes], pipe).close()

    def _line(self, limit: float) -> bytes:
        """Return the next line that the process writes."""
        stdout = cast(IO[bytes], self.process.stdout).fileno()
        deadline, found = time.monotonic() + limit, b""
        while not found.endswith(b"\n"):
            if not select.select([stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise TimeoutError
            read = os.read(stdout, 4096)
            if not read:
                raise EOFError
            found += read
        return found
