"""Scoring in processes of their own, several at once, each answer within a time limit.

A scorer that raises, hangs or dies costs the generation that it had in hand, which is recorded as failed; the search
goes on. With no processes everything is scored here, without a limit: for tasks whose scoring is known to be quick.
"""

import multiprocessing
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import connection
from typing import Any, TypeAlias

from vpo.errors import InputError
from vpo.tasks import Task, get

# The scores of each answer of a generation, or why there are none.
Verdict: TypeAlias = list[tuple[float, ...]] | str
STARTING = 60.0  # seconds for a process to load a task
CHUNK = 32  # generations that a process is given at a time


@dataclass(frozen=True)
class Source:
    """Where a task and its problems come from, so that another process can load them too."""

    task: str
    settings: dict[str, Any]
    split: str
    count: int | None

    def load(self) -> tuple[Task[Any], dict[str, Any]]:
        """Return the task, and its problems by name."""
        task: Task[Any] = get(self.task, **self.settings)
        return task, {problem.id: problem for problem in task.problems(self.split, count=self.count)}


@dataclass(frozen=True)
class Item:
    """Answers to score: the number that the caller knows them by, the name of their problem, and the texts."""

    number: int
    problem: str
    answers: Sequence[str | None]


@dataclass
class _Worker:
    process: Any
    pipe: Any
    deadline: float
    ready: bool = False
    hand: deque[Item] = field(default_factory=deque)  # what it was given and has not answered


def check_limits(processes: int, limit: float) -> None:
    """Refuse numbers that mean nothing."""
    if processes < 0:
        raise InputError(f"processes must be 0 or more, not {processes}")
    if not 0 < limit < float("inf"):
        raise InputError(f"limit must be greater than 0 and finite, not {limit}")


class Judge:
    """Scores generations, in some processes or in this one."""

    def __init__(self, source: Source, processes: int, limit: float) -> None:
        """Take where the task comes from, how many processes (0 for none), and the seconds for one generation."""
        check_limits(processes, limit)
        self.source, self.limit = source, limit
        self.context = multiprocessing.get_context("spawn")
        self.loaded = source.load() if processes == 0 else None
        self.workers = [self._start() for _ in range(processes)]

    def score(self, items: Iterable[Item]) -> Iterator[tuple[Item, Verdict]]:
        """Yield the verdict on each item, in any order."""
        waiting = deque(items)
        if self.loaded is not None:
            for item in waiting:
                yield item, verdict(*self.loaded, item)
            return
        while waiting or any(worker.hand for worker in self.workers):
            for worker in self.workers:
                if waiting and not worker.hand:
                    self._hand_out(worker, waiting)
            busy = {worker.pipe: worker for worker in self.workers if worker.hand}
            soonest = min(worker.deadline for worker in busy.values())
            for ready in connection.wait(list(busy), timeout=max(0.0, soonest - time.monotonic())):
                worker = busy[ready]
                try:
                    found = worker.pipe.recv()
                except (EOFError, OSError):
                    yield from self._lost(worker, "the process that scored it died", waiting)
                    continue
                worker.deadline = time.monotonic() + self.limit
                if worker.ready:
                    yield worker.hand.popleft(), found
                worker.ready = True
            for worker in busy.values():
                if worker.hand and time.monotonic() >= worker.deadline and not worker.pipe.poll():
                    yield from self._lost(worker, f"not scored within {self.limit:g} s", waiting)

    def close(self) -> None:
        """End the processes."""
        for worker in self.workers:
            worker.process.kill()
            worker.process.join()
            worker.pipe.close()
        self.workers = []

    def _lost(self, worker: _Worker, reason: str, waiting: deque[Item]) -> Iterator[tuple[Item, Verdict]]:
        """Give up what a process had in hand first, give the rest to others, and start another in its place."""
        worker.process.kill()
        worker.process.join()
        worker.pipe.close()
        if not worker.ready:
            raise InputError(f"the processes that score could not load task {self.source.task} in {STARTING:g} s")
        item, *rest = worker.hand
        worker.hand.clear()
        waiting.extendleft(reversed(rest))
        self.workers[self.workers.index(worker)] = self._start()
        yield item, reason

    def _hand_out(self, worker: _Worker, waiting: deque[Item]) -> None:
        """Give a process its share of what is waiting."""
        share = min(CHUNK, -(-len(waiting) // len(self.workers)))
        chunk = [waiting.popleft() for _ in range(share)]
        worker.hand.extend(chunk)
        if worker.ready:
            worker.deadline = time.monotonic() + self.limit
        with suppress(OSError):  # it died while it had nothing to do; `recv` finds that out
            worker.pipe.send(chunk)

    def _start(self) -> _Worker:
        ours, theirs = self.context.Pipe()
        process = self.context.Process(target=serve, args=(self.source, theirs), daemon=True)
        process.start()
        theirs.close()
        return _Worker(process, ours, time.monotonic() + STARTING)


def serve(source: Source, pipe: Any) -> None:
    """Score what comes through a pipe, until it is closed: the life of a process."""
    task, problems = source.load()
    pipe.send("ready")
    while True:
        try:
            chunk = pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return
        for item in chunk:
            pipe.send(verdict(task, problems, item))


def verdict(task: Task[Any], problems: dict[str, Any], item: Item) -> Verdict:
    """Return the scores of the answers of a generation, or what was raised."""
    try:
        scores_MD = task.score_many([problems[item.problem]] * len(item.answers), list(item.answers))
        return [tuple(map(float, row)) for row in scores_MD]
    except Exception as error:  # whatever a task of a user's raises
        return f"{type(error).__name__}: {error}"[:300]
