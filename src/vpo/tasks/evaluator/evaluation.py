"""Evaluates programs, several in parallel, each in a process of its own behind a wall.

A program and its evaluator share that process, so a program can forge its own metrics, and nothing else. Whatever it
does, what comes out is an `Evaluation`: metrics, or the reason why there are none.
"""

import json
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vpo.sandbox.wall import START_SECONDS, WalledProcess, WallError, WallLimits
from vpo.tasks.evaluator import worker
from vpo.util.errors import one_line
from vpo.util.files import storable

WORKER = Path(worker.__file__)
UNLOADED = "the evaluator cannot be loaded"
METRICS, ARTIFACTS, TEXT = 1000, 30, 4100  # the most that are kept, and characters of an artifact
VIRTUAL = 4  # address space for a byte of memory that may be used: libraries reserve more than they use


@dataclass(frozen=True)
class Evaluation:
    """What `evaluate` returned for a program.

    Attributes:
        metrics: by name; they may be any floats.
        artifacts: further texts of the evaluator, shortened.
        failure: why there are no metrics; empty where there are.
    """

    metrics: dict[str, float] = field(default_factory=dict)
    artifacts: dict[str, str] = field(default_factory=dict)
    failure: str = ""


@dataclass(frozen=True)
class Evaluator:
    """A file with `evaluate`.

    Attributes:
        file: its absolute path. What lies in its folder can be read by it, and by programs.
        suffix: of the files of programs.
        seconds: for one program.
        limits: of its process.
        parallel: how many programs are evaluated at a time.
        walled: whether behind the wall.
        readable: further files and folders that may be read.
    """

    file: str
    suffix: str
    seconds: float
    limits: WallLimits
    parallel: int
    walled: bool
    readable: tuple[str, ...] = ()

    def evaluate_all(self, programs: Sequence[str]) -> list[Evaluation]:
        """The evaluation of each program; equal ones are evaluated once."""
        distinct = list(dict.fromkeys(programs))
        stop = threading.Event()
        executor = ThreadPoolExecutor(max_workers=self.parallel, thread_name_prefix="evaluation")
        try:
            results = dict(zip(distinct, executor.map(lambda each: self.evaluate(each, stop), distinct), strict=True))
        finally:
            stop.set()  # after an interruption
            executor.shutdown(cancel_futures=True)
        return [results[each] for each in programs]

    def evaluate(self, program: str, stop: threading.Event | None = None) -> Evaluation:
        """The evaluation of one program."""
        request = {
            "evaluator": self.file,
            "program": storable(program),
            "suffix": self.suffix,
            "address_space": VIRTUAL * self.limits.memory_mb << 20,
        }
        file = Path(self.file)
        readable = [str(file.parent), str(file.resolve().parent), *self.readable, str(WORKER)]
        command = [sys.executable, str(WORKER)]
        with WalledProcess(command, readable, self.limits, walled=self.walled, stop=stop) as process:
            process.send(json.dumps(request).encode())
            try:
                loaded = _evaluation(process.line(START_SECONDS))
                if loaded.failure:
                    return Evaluation(failure=f"{UNLOADED}: {loaded.failure}")
                return _evaluation(process.line(self.seconds))
            except WallError as error:
                artifacts = {"stderr": process.errors[-1000:]} if process.errors else {}
                return Evaluation(artifacts=artifacts, failure=f"evaluate: {error}")


def _evaluation(line: bytes) -> Evaluation:
    """What the process said, which the program may have forged."""
    try:
        said: Any = json.loads(line)
        metrics = {_clean(name, 100): float(value) for name, value in said.get("metrics", {}).items()}
        artifacts = {_clean(name, 100): _clean(text, TEXT) for name, text in said.get("artifacts", {}).items()}
        few = dict(list(metrics.items())[:METRICS]), dict(list(artifacts.items())[:ARTIFACTS])
        return Evaluation(*few, one_line(_clean(said.get("failure", ""), 400)))
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        return Evaluation(failure="evaluate: its result cannot be read")


def _clean(text: object, most: int) -> str:
    """A text that UTF-8 can encode, of limited length."""
    return storable(str(text)[:most])[:most]
