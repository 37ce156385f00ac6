"""Reading and scoring generations in processes of their own, several at once, each generation within a time limit.

All that a task or a user's reward does with a completion is done there. One that raises, hangs or dies costs the
generation that it had in hand, which is recorded as failed; the search goes on. With no processes everything is done
here, without a limit: for tasks whose scoring is known to be quick.
"""

import math
import multiprocessing
import os
import pickle
import signal
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import connection
from typing import Any, TypeAlias

from vpo.search.goals import Goal, goals_of
from vpo.tasks import Task, get
from vpo.util.errors import InputError
from vpo.util.jobs import watch_parent

STARTING = 60.0  # seconds for a process to load a task
CHUNK = 32  # generations that a process is given at a time
MISSING = "the completion has no such answer"
UNKNOWN = "its score cannot be known"


@dataclass(frozen=True)
class TaskSource:
    """Where a task, its problems and the goals come from, so that another process can load them too.

    Attributes:
        task: its name, or a .py file.
        settings: of the task.
        split: of the problems.
        count: how many of them.
        goals: the arguments of `goals_of`.
    """

    task: str
    settings: dict[str, Any]
    split: str
    count: int | None
    goals: Mapping[str, list[str]] = field(default_factory=dict)

    def load(self, packed: bytes | None = None) -> "GoalScorer":
        """Return all that is needed to judge, with problems that were loaded elsewhere, if there are any."""
        task: Task[Any] = get(self.task, **self.settings)
        problems = pickle.loads(packed) if packed else task.problems(self.split, count=self.count)
        by_name = {problem.id: problem for problem in problems}
        return GoalScorer(task, by_name, {goal.name: goal for goal in goals_of(task, **self.goals)})


@dataclass(frozen=True)
class ScoringRequest:
    """A generation to judge.

    Attributes:
        number: by which the caller knows it.
        problem: its name.
        goal: its name.
        text: the completion, or an answer that was cut out of one.
        answers: that it was asked for; 0 for an answer that was cut out.
        known: how many of them were given to it.
    """

    number: int
    problem: str
    goal: str
    text: str
    answers: int
    known: int = 0


@dataclass(frozen=True)
class ScoredAnswer:
    """What became of one answer.

    Attributes:
        answer: its text; None where it is missing.
        form: what two answers share that are the same; None for one that cannot be read.
        scores: its vector; None where it was not scored.
        value: what the goal gives it; 0 where it was not scored.
        solved: whether it is what was looked for.
        failure: why it was not scored, if so.
    """

    answer: str | None
    form: str | None = None
    scores: tuple[float, ...] | None = None
    value: float = 0.0
    solved: bool = False
    failure: str | None = None


# What became of each new answer of a generation, or why nothing did.
Verdict: TypeAlias = list[ScoredAnswer] | str


@dataclass(frozen=True)
class GoalScorer:
    """A task, its problems and goals by name."""

    task: Task[Any]
    problems: Mapping[str, Any]
    goals: Mapping[str, Goal]

    def judge(self, item: ScoringRequest) -> Verdict:
        """Return what became of the answers of a generation, or what was raised."""
        try:
            cut = [item.text] if item.answers == 0 else self.task.parse(item.text, item.answers)
            found = cut[item.known :]
            return [self._one(item, answer) for answer in found]
        except (Exception, SystemExit) as error:  # whatever a task of a user's raises
            return _said(error)

    def _one(self, item: ScoringRequest, answer: str | None) -> ScoredAnswer:
        if answer is None:
            return ScoredAnswer(None, failure=MISSING)
        problem, goal = self.problems[item.problem], self.goals[item.goal]
        try:
            (vector,) = self.task.score_all([problem], [answer])
            if vector is None:
                return ScoredAnswer(answer, failure=UNKNOWN)
            row = list(map(float, vector))
            if not all(map(math.isfinite, row)):
                raise ValueError(f"a score is not a finite number: {row}")
            value = goal.value(problem, answer, row)
            solved = goal.solved(problem, answer, row, value)
            if solved is None:
                return ScoredAnswer(answer, failure=UNKNOWN)
            return ScoredAnswer(answer, _form(self.task, answer), tuple(row), value, solved)
        except (Exception, SystemExit) as error:  # whatever a scorer or a reward of a user's raises
            return ScoredAnswer(answer, failure=_said(error))


def _form(task: Task[Any], answer: str) -> str | None:
    """Return the normal form of an answer as a text, the same in every process."""
    form = task.normal_form(answer)
    return None if form is None else _text(form)


def _text(form: Any) -> str:
    if isinstance(form, set | frozenset):
        return f"{{{', '.join(sorted(map(_text, form)))}}}"
    return f"({', '.join(map(_text, form))})" if isinstance(form, list | tuple) else repr(form)


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:300]


def check_limits(processes: int, limit: float) -> None:
    """Refuse numbers that mean nothing."""
    if processes < 0:
        raise InputError(f"processes must be 0 or more, not {processes}")
    if not 0 < limit < float("inf"):
        raise InputError(f"limit must be greater than 0 and finite, not {limit}")


@dataclass
class _Worker:
    process: Any
    pipe: Any
    deadline: float
    ready: bool = False
    hand: deque[ScoringRequest] = field(default_factory=deque)  # what it was given and has not answered


class ScoringPool:
    """Judges generations, in some processes or in this one."""

    def __init__(self, source: TaskSource, processes: int, limit: float, problems: Sequence[Any] | None = None) -> None:
        """Start the processes.

        Args:
            source: where the task comes from.
            processes: how many; 0 for none.
            limit: seconds for one generation.
            problems: of the source, where they are loaded already: to make them anew may take long.
        """
        check_limits(processes, limit)
        self.source, self.limit = source, limit
        self.problems = _packed(problems)
        self.context = multiprocessing.get_context("spawn")
        self.court = source.load(self.problems) if processes == 0 else None
        self.workers = [self._start() for _ in range(processes)]

    def judge(self, items: Iterable[ScoringRequest]) -> Iterator[tuple[ScoringRequest, Verdict]]:
        """Yield the verdict on each item, in any order."""
        waiting = deque(items)
        if self.court is not None:
            for item in waiting:
                yield item, self.court.judge(item)
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
            _end(worker)
        self.workers = []

    def _lost(
        self, worker: _Worker, reason: str, waiting: deque[ScoringRequest]
    ) -> Iterator[tuple[ScoringRequest, Verdict]]:
        """Give up what a process had in hand first, give the rest to others, and start another in its place."""
        _end(worker)
        if not worker.ready:
            raise InputError(f"the processes that score could not load task {self.source.task} in {STARTING:g} s")
        item, *rest = worker.hand
        worker.hand.clear()
        waiting.extendleft(reversed(rest))
        self.workers[self.workers.index(worker)] = self._start()
        yield item, reason

    def _hand_out(self, worker: _Worker, waiting: deque[ScoringRequest]) -> None:
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
        process = self.context.Process(target=serve, args=(self.source, self.problems, theirs), daemon=True)
        process.start()
        theirs.close()
        return _Worker(process, ours, time.monotonic() + STARTING)


def _end(worker: _Worker) -> None:
    """End a process, and with it what it started."""
    with suppress(ProcessLookupError, PermissionError):  # it has no group of its own yet
        os.killpg(worker.process.pid, signal.SIGKILL)
    worker.process.kill()
    worker.process.join()
    worker.pipe.close()


def _packed(problems: Sequence[Any] | None) -> bytes | None:
    """Return problems as another process can take them; None where it must load them by itself."""
    try:
        return None if problems is None else pickle.dumps(list(problems))
    except (pickle.PicklingError, TypeError, AttributeError):  # of a class in a file of the user's, or of odd things
        return None


def serve(source: TaskSource, problems: bytes | None, pipe: Any) -> None:
    """ScoringPool what comes through a pipe, until it is closed: the life of a process, which ends with its parent."""
    os.setsid()  # so that it can be ended with all that a scorer starts
    watch_parent(lambda: os.killpg(0, signal.SIGKILL))
    court = source.load(problems)
    pipe.send("ready")
    while True:
        try:
            chunk = pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return
        for item in chunk:
            pipe.send(court.judge(item))
