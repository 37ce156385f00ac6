"""Compares final answers: numbers and words directly, others by math-verify in processes with a time limit.

Hostile LaTeX hangs parsers. A comparison that exceeds the limit, or that kills its process twice, counts as not equal,
since the answer caused it. Where no process can be started, the result is unknown.
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
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, cast

from vpo.tasks.math.answers import final_answer
from vpo.tasks.math.formulas import computable, copied
from vpo.tasks.math.numbers import equal_numbers
from vpo.tasks.math.plain import compare_plain, for_algebra, repeated_lists
from vpo.util.packages import check_installed

LIMIT = 5.0  # seconds for a comparison, which takes milliseconds
START_SECONDS = 60.0  # for a process to start, which takes one
SCRIPT = Path(__file__).with_name("math_verify_process.py")


def require_math_verify(task: str) -> None:
    """Refuse early where math-verify is missing: it is only imported in other processes."""
    check_installed("math_verify", f"task {task}", extra="math")


def equal_all(pairs: Sequence[tuple[str, str | None]]) -> list[bool | None]:
    """Whether each answer equals its gold answer; False for a missing answer, None where it is unknown."""
    equal = {pair: False if pair[1] is None else compare_plain(pair[0], pair[1]) for pair in pairs}
    algebra = [(gold, answer) for (gold, answer), known in equal.items() if known is None and answer is not None]
    for pair in algebra.copy():
        if (lists := repeated_lists(*pair)) is not None:
            equal[pair] = _equal_lists(*lists)
            algebra.remove(pair)
    if algebra:
        equal.update((pair, False) for pair in algebra)
        algebra = [pair for pair in algebra if computable(pair[1])]
        texts = [(for_algebra(gold), for_algebra(answer)) for gold, answer in algebra]
        equal.update(zip(algebra, _shared(os.getpid()).equal(texts) if texts else [], strict=True))
    return [equal[pair] for pair in pairs]


def _equal_lists(golds: Sequence[str], answers: Sequence[str]) -> bool | None:
    """Whether two lists of one length have the same elements as often, in any order."""
    equal = iter(equal_all([(gold, answer) for gold in golds for answer in answers]))
    unused, unknown = list(range(len(answers))), False
    for _ in golds:
        row = [next(equal) for _ in answers]
        unknown |= None in row
        same = next((index for index in unused if row[index]), None)
        if same is None:
            return None if unknown else False
        unused.remove(same)
    return True


def grade_final_answers(
    golds: Sequence[str], answers: Sequence[str | None], questions: Sequence[str]
) -> list[tuple[str | None, bool | None]]:
    """The final answer of each text, None where there is none, and whether it equals the gold one.

    Args:
        golds: the right final answers.
        answers: whole solutions.
        questions: of the problems; a formula that is copied from its question is wrong.
    """
    finals = [None if answer is None else final_answer(answer) for answer in answers]
    pairs = [
        (gold, None if final and copied(question, gold, final) else final)
        for gold, final, question in zip(golds, finals, questions, strict=True)
    ]
    return list(zip(finals, equal_all(pairs), strict=True))


def grade_final_numbers(golds: Sequence[str], answers: Sequence[str | None]) -> list[tuple[str | None, bool]]:
    """The number that each text ends in, None where there is none, and whether it equals the gold one."""
    finals = [None if answer is None else final_answer(answer, number=True) for answer in answers]
    return [
        (final, final is not None and equal_numbers(gold, final)) for gold, final in zip(golds, finals, strict=True)
    ]


@cache
def _shared(process: int) -> "Checker":
    """The checker of one process: its pipes must not be shared with a forked one."""
    checker = Checker()
    atexit.register(checker.close)
    return checker


class Checker:
    """math-verify in several processes, started on demand, and again after one was killed."""

    def __init__(self, *, limit: float = LIMIT, processes: int | None = None, script: Path = SCRIPT) -> None:
        """Make a checker.

        Args:
            limit: seconds for a comparison.
            processes: the most processes; by default one a core, up to four.
            script: the file that they run.
        """
        self.limit, self.script = limit, script
        self.processes = processes or min(4, os.cpu_count() or 1)
        self.idle: SimpleQueue[_Process] = SimpleQueue()

    def equal(self, pairs: Sequence[tuple[str, str]]) -> list[bool | None]:
        """Whether gold and answer of each pair are equal, None where no process could be started."""
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
                equal = process.compare(pair, self.limit)
            except TimeoutError:
                process.kill()
                return False
            except (EOFError, OSError):
                process.kill()
                continue
            self.idle.put(process)
            return equal
        return False


class _Process:
    """One process that compares answers."""

    def __init__(self, script: Path) -> None:
        # -P: nothing is imported from the script's folder.
        command = [sys.executable, "-P", str(script)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )

    @classmethod
    def start(cls, script: Path) -> "_Process | None":
        """A process that is ready, or None where it cannot be started."""
        try:
            process = cls(script)
        except OSError:
            return None
        try:
            process._line(START_SECONDS)
        except (TimeoutError, EOFError):
            process.kill()
            return None
        return process

    def compare(self, pair: tuple[str, str], limit: float) -> bool:
        """Whether a pair is equal; TimeoutError after `limit` seconds."""
        stdin = cast(IO[bytes], self.process.stdin)
        stdin.write(json.dumps(pair).encode() + b"\n")
        stdin.flush()
        return json.loads(self._line(limit)) is True

    def kill(self) -> None:
        """Kill the process."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(OSError):  # the last input was never read
                cast(IO[bytes], pipe).close()

    def _line(self, limit: float) -> bytes:
        """The next line that the process writes."""
        stdout = cast(IO[bytes], self.process.stdout).fileno()
        deadline, line = time.monotonic() + limit, b""
        while not line.endswith(b"\n"):
            if not select.select([stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise TimeoutError
            data = os.read(stdout, 4096)
            if not data:
                raise EOFError
            line += data
        return line
