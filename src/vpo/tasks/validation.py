"""Grades a task's own gold answers, without a model: each must score what the task expects of it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vpo.tasks import answers as answer_format
from vpo.tasks.batches import in_batches

if TYPE_CHECKING:
    from vpo.tasks.task import P, Task, Vector


@dataclass(frozen=True)
class Flaw:
    """A gold answer that does not score as it should, and why."""

    problem: str
    reason: str
    answer: str | None


def validate(task: "Task[P]", problems: "Iterable[P]") -> Iterator[Flaw | None]:
    """Yield one result for each problem: None where the gold answer scores as it should.

    The answer is written into a completion and parsed as a model's would be: alone, and as the last of three.
    """
    for batch in in_batches(problems):
        yield from _grade(task, batch)


def _grade(task: "Task[P]", problems: "Sequence[P]") -> list[Flaw | None]:
    golds = [task.gold(problem) for problem in problems]
    readers: dict[str, Callable[[Task[P], str], str | None]] = {
        "a single answer": _parse_single,
        "one of a set": _parse_set,
    }
    reasons: list[list[str]] = [[] for _ in problems]
    for form, parse in readers.items():
        answers = [None if gold is None else parse(task, gold) for gold in golds]
        vectors = task.score_all(problems, answers)
        solved = task.solved_all(problems, answers, vectors)
        for index, problem in enumerate(problems):
            if reason := _shortfall(task, problem, answers[index], vectors[index], solved[index]):
                reasons[index].append(f"as {form}: {reason}")
    return [_flaw(problem.id, gold, texts) for problem, gold, texts in zip(problems, golds, reasons, strict=True)]


def _flaw(problem: str, gold: str | None, reasons: Sequence[str]) -> Flaw | None:
    if gold is None:
        return Flaw(problem, "there is no gold answer", None)
    return Flaw(problem, "; ".join(reasons), gold) if reasons else None


def _parse_single(task: "Task[P]", gold: str) -> str | None:
    return task.parse(answer_format.write([gold]) if task.wraps_single else gold, 1)[0]


def _parse_set(task: "Task[P]", gold: str) -> str | None:
    return task.parse(task.form.write([gold] * 3), 3)[-1]


def _shortfall(task: "Task[P]", problem: "P", answer: str | None, vector: "Vector | None", solved: bool | None) -> str:
    """How an answer falls short of the expected scores, as text; empty where it does not."""
    if answer is None:
        return "it is not parsed from a completion"
    if vector is None or solved is None:
        return "its score is unknown"
    expected = task.expected(problem)
    scores = zip(task.names_of(problem), vector, expected, strict=True)
    lacking = [f"{name} is {score:.3g}, not {due:.3g}" for name, score, due in scores if score < due - 1e-9]
    if not lacking and not solved and task.solved(expected):
        return "it does not solve the problem"
    return ", ".join(lacking)
