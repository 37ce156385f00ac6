"""Scoring in worker processes, in parallel, with a time limit for each generation.

All code of a task or of a user's reward runs in a worker. A generation whose scoring raises, hangs or kills its worker
is recorded as failed, and the search continues: the worker is killed and another one started. With 0 processes all is
scored in this process, without a limit: for tasks whose scoring is known to be quick.

A worker sends whether its task scores `in_batches` once it is loaded. It then receives lists of `ScoringRequest` and
sends a `ScoredGeneration` for each request, in order: of a task that scores in batches, once the whole list is scored.
Where such a batch kills its worker, or takes longer than four generations may, its generations are scored again, each
alone, so that only those fail that are to blame.
"""

import multiprocessing
import os
import pickle
import signal
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from multiprocessing import connection
from typing import Any

from vpo.search.scorer import GoalScorer, ScoredGeneration, ScoringRequest, TaskSource
from vpo.util.errors import InputError
from vpo.util.jobs import watch_parent

LOADING_SECONDS = 60.0  # for a worker to load the task
CHUNK = 32  # generations sent to a worker at a time
BATCH_LIMITS = 4  # a batch may take so many times the limit of a generation, before each is scored alone


def check_limits(processes: int, limit: float) -> None:
    """Refuse a number of processes or a time limit that cannot be used."""
    if processes < 0:
        raise InputError(f"processes must be 0 or more, not {processes}")
    if not 0 < limit < float("inf"):
        raise InputError(f"limit must be greater than 0 and finite, not {limit}")


class ScoringPool:
    """Scores generations in worker processes, or in this process where there are none."""

    def __init__(self, source: TaskSource, processes: int, limit: float, problems: Sequence[Any] | None = None) -> None:
        """Start the workers.

        Args:
            source: what the workers load.
            processes: how many workers; 0 to score in this process.
            limit: seconds for one generation.
            problems: those of the source, where they are loaded already: to generate them again may take long.
        """
        check_limits(processes, limit)
        self.source, self.limit = source, limit
        self.pickled_problems = _pickled(problems)
        self.scorer = source.load(self.pickled_problems) if processes == 0 else None
        self.workers = [self._start_worker() for _ in range(processes)]
        self._alone: set[int] = set()  # requests of a batch that failed

    def score(self, requests: Iterable[ScoringRequest]) -> Iterator[ScoredGeneration]:
        """Yield one result for each request, in the order in which they are done."""
        if self.scorer is not None:
            yield from _score(self.scorer, list(requests))
            return
        waiting = deque(requests)
        self._alone.clear()
        while waiting or any(worker.pending for worker in self.workers):
            self._hand_out(waiting)
            busy = [worker for worker in self.workers if worker.pending]
            for worker in _with_messages(busy):
                try:
                    result = worker.receive()
                except (EOFError, OSError):
                    result = self._replace(worker, "the process that scored it died", waiting)
                if result is not None:
                    yield result
            for worker in list(self.workers):  # one that died was replaced above, and has no pipe any more
                if worker.is_overdue() and (result := self._replace(worker, self._overdue, waiting)):
                    yield result

    def close(self) -> None:
        """Kill the workers."""
        for worker in self.workers:
            worker.kill()
        self.workers = []

    def _start_worker(self) -> "_Worker":
        return _Worker(self.source, self.pickled_problems, self.limit)

    @property
    def _overdue(self) -> str:
        return f"not scored within {self.limit:g} s"

    def _hand_out(self, waiting: deque[ScoringRequest]) -> None:
        """Send each idle worker its share of the waiting requests."""
        for worker in self.workers:
            if waiting and not worker.pending:
                share = min(CHUNK, -(-len(waiting) // len(self.workers)))
                if waiting[0].number in self._alone:
                    share = 1
                worker.send([waiting.popleft() for _ in range(share)])

    def _replace(self, worker: "_Worker", failure: str, waiting: deque[ScoringRequest]) -> ScoredGeneration | None:
        """Kill a worker and start another one.

        Its current request fails, its other requests wait again. Of a batch all wait again, each to be scored alone.
        """
        worker.kill()
        if not worker.ready:
            raise InputError(
                f"the processes that score could not load task {self.source.task} in {LOADING_SECONDS:g} s"
            )
        self.workers[self.workers.index(worker)] = self._start_worker()
        if worker.in_batches and len(worker.pending) > 1:
            self._alone.update(request.number for request in worker.pending)
            waiting.extendleft(reversed(worker.pending))
            return None
        current, *others = worker.pending
        waiting.extendleft(reversed(others))
        return ScoredGeneration(current.number, failure=failure)


class _Worker:
    """A process that scores.

    Attributes:
        ready: whether it has loaded the task.
        in_batches: whether it scores all that it received together; known once it is ready.
        pending: requests that it received and has not answered; it works on the first, or on all.
        deadline: when it must have sent its next message.
    """

    def __init__(self, source: TaskSource, pickled_problems: bytes | None, limit: float) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, remote_end = context.Pipe()
        arguments = (source, pickled_problems, remote_end)
        self.process = context.Process(target=run_worker, args=arguments, daemon=True)
        self.process.start()
        remote_end.close()
        self.limit = limit
        self.ready = False
        self.in_batches = False
        self.pending: deque[ScoringRequest] = deque()
        self.deadline = time.monotonic() + LOADING_SECONDS

    def send(self, requests: list[ScoringRequest]) -> None:
        self.pending.extend(requests)
        if self.ready:
            self._begin()
        with suppress(OSError):  # it died while it was idle: `receive` will raise
            self.pipe.send(requests)

    def receive(self) -> ScoredGeneration | None:
        """The next result; None where the worker only says that it is ready. Raises EOFError where it died."""
        message: ScoredGeneration | bool = self.pipe.recv()
        if isinstance(message, bool):
            self.ready, self.in_batches = True, message
            self._begin()
            return None
        self.pending.popleft()
        if not self.in_batches:
            self._begin()
        return message

    def _begin(self) -> None:
        """Set the deadline of the next message: a batch comes as a whole."""
        self.deadline = time.monotonic() + self.limit * (min(len(self.pending), BATCH_LIMITS) if self.in_batches else 1)

    def is_overdue(self) -> bool:
        return bool(self.pending) and time.monotonic() >= self.deadline and not self.pipe.poll()

    def kill(self) -> None:
        """Kill the process with all processes that it started."""
        with suppress(ProcessLookupError, PermissionError):  # it has no process group of its own yet
            os.killpg(self.process.pid or 0, signal.SIGKILL)
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _with_messages(workers: Sequence[_Worker]) -> list[_Worker]:
    """Wait for a message or for the first deadline; return the workers that sent something or died."""
    soonest = min(worker.deadline for worker in workers)
    ready = connection.wait([worker.pipe for worker in workers], timeout=max(0.0, soonest - time.monotonic()))
    return [worker for worker in workers if worker.pipe in ready]


def _pickled(problems: Sequence[Any] | None) -> bytes | None:
    """Problems as another process can take them; None where it must load them itself."""
    try:
        return None if problems is None else pickle.dumps(list(problems))
    except (pickle.PicklingError, TypeError, AttributeError):  # of a class in a file of the user's, for example
        return None


def run_worker(source: TaskSource, pickled_problems: bytes | None, pipe: Any) -> None:
    """The main function of a worker; it returns when the pipe is closed, and is killed when its parent ends."""
    os.setsid()  # so that it can be killed with all that a scorer starts
    watch_parent(lambda: os.killpg(0, signal.SIGKILL))
    scorer = source.load(pickled_problems)
    pipe.send(scorer.in_batches)
    while True:
        try:
            requests = pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return
        for result in _score(scorer, requests):
            pipe.send(result)


def _score(scorer: GoalScorer, requests: Sequence[ScoringRequest]) -> Iterator[ScoredGeneration]:
    """One result for each request, in order."""
    if scorer.in_batches:
        yield from scorer.score(requests)
    else:
        for request in requests:
            yield from scorer.score([request])
