"""From anybody's completions to a pool: parse the answers, score each, one row an answer."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from vpo.evaluation.pools import MOST_ANSWERS, check_given, check_whole
from vpo.tasks import Task, Vector
from vpo.tasks.answers import duplicates
from vpo.tasks.task import in_blocks
from vpo.util.errors import InputError
from vpo.util.files import storable
from vpo.util.progress import progress
from vpo.util.row_files import read_rows


@dataclass
class Tally:
    """What became of the completions, counted while they are scored, and the target.

    Completions whose scores cannot be known are in no other count than their own.
    """

    completions: int = 0
    unknown: int = 0
    answers: int = 0
    missing: int = 0
    unreadable: int = 0
    repeated: int = 0
    solved: int = 0
    totals: Counter[str] = field(default_factory=Counter)
    scored: Counter[str] = field(default_factory=Counter)  # how many answers have the objective
    target: dict[str, float] | None = None

    def data(self) -> dict[str, Any]:
        """Return the counts as shares and means."""
        if not self.answers:
            raise InputError(f"the scores of all {self.completions} completions are unknown: see vpo doctor")
        return {
            "completions": self.completions,
            "unknown": self.unknown,
            "answers": self.answers,
            "given": 1 - self.missing / self.answers,
            "readable": 1 - (self.missing + self.unreadable) / self.answers,
            "repeated": self.repeated / self.answers,
            "solved": self.solved / self.answers,
            "mean": {name: total / self.scored[name] for name, total in self.totals.items()},
            "target": self.target,
        }


@dataclass(frozen=True)
class Completion:
    """A completion to score.

    Attributes:
        problem: that was asked.
        text: what was written.
        answers: m, how many it was asked for.
        more: fields to add to its rows, such as its generation.
    """

    problem: Any
    text: str
    answers: int
    more: Mapping[str, Any]


def score_completions(
    task: Task[Any], path: str | Path, *, split: str, answers: int, tally: Tally
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a pool from a file of completions.

    Args:
        task: whose problems were asked.
        path: a file with a row for each completion: `problem` (its id, or its place in the split from 0),
            `completion`, and optionally, in every row or in none, `generation` and `tokens`; and `answers` where it
            differs from row to row.
        split: of the problems.
        answers: m, how many answers a completion was asked for.
        tally: counts what is read.
    """
    check_whole(answers, "answers", MOST_ANSWERS)
    problems = list(task.problems(split))
    tally.target = task.target
    yield from scored_rows(task, _read(path, problems, answers), tally)
    if not tally.completions:
        raise InputError(f"{path}: the file must hold 1 or more completions, and has none")


def _read(path: str | Path, problems: Sequence[Any], answers: int) -> Iterator[Completion]:
    """Yield the completions of a file."""
    by_id = {problem.id: problem for problem in problems}
    given: dict[str, tuple[bool, int]] = {}
    seen: Counter[str] = Counter()
    for line, row in progress(read_rows(Path(path)), f"scoring {path}"):
        try:
            if not isinstance(row, Mapping):
                raise InputError("a row must be an object with problem and completion")
            row = {name: value for name, value in row.items() if value is not None}
            check_given(row, ("generation", "tokens"), given, line)
            problem, completion = _problem(row.get("problem"), problems, by_id), row.get("completion")
            if not isinstance(completion, str):
                raise InputError(f"completion must be text, not {type(completion).__name__}")
            asked = check_whole(row.get("answers", answers), "answers", MOST_ANSWERS)
            more = {"generation": row.get("generation", seen[problem.id])}
            if not isinstance(more["generation"], str | int):
                raise InputError(f"generation must be text or a whole number, not {more['generation']!r}")
            if "tokens" in row:
                more["tokens"] = check_whole(row["tokens"], "tokens")
        except InputError as error:
            raise InputError(f"{path}:{line}: {error}") from None
        seen[problem.id] += 1
        yield Completion(problem, completion, asked, more)


def scored_rows(task: Task[Any], completions: Iterable[Completion], tally: Tally) -> Iterator[dict[str, Any]]:
    """Yield the rows of completions, some of which are scored at once.

    A completion with an answer whose score cannot be known is left out whole: a pool counts missing answers as zeros.
    """
    for some in in_blocks(completions):
        parsed = [task.parse(each.text, each.answers) for each in some]
        problems = [each.problem for each in some for _ in range(each.answers)]
        answers = [answer for found in parsed for answer in found]
        vectors = [vector for found in task.score_sets([each.problem for each in some], parsed) for vector in found]
        outcomes = iter(zip(vectors, task.solved_all(problems, answers, vectors), strict=True))
        for each, found in zip(some, parsed, strict=True):
            tally.completions += 1
            pairs = islice(outcomes, each.answers)
            known = [(vector, solved) for vector, solved in pairs if vector is not None and solved is not None]
            if len(known) == each.answers:
                yield from _rows(task, each, found, known, tally)
            else:
                tally.unknown += 1


def _rows(
    task: Task[Any],
    completion: Completion,
    found: Sequence[str | None],
    outcomes: Sequence[tuple[Vector, bool]],
    tally: Tally,
) -> Iterator[dict[str, Any]]:
    """Yield the rows of one completion."""
    problem, asked = completion.problem, completion.answers
    names = task.names_of(problem)
    tally.answers += asked
    tally.missing += found.count(None)
    forms = {answer: task.normal_form(answer) for answer in found if answer is not None}
    tally.unreadable += sum(answer is not None and forms[answer] is None for answer in found)
    tally.repeated += sum(duplicates(found, forms.__getitem__))
    for position, (answer, (vector, solved)) in enumerate(zip(found, outcomes, strict=True), start=1):
        scores = dict(zip(names, map(float, vector), strict=True))
        tally.solved += solved
        tally.totals.update(scores)
        tally.scored.update(names)
        text = None if answer is None else storable(answer)
        row = {"problem": problem.id, "position": position, "scores": scores, "solved": solved, "answer": text}
        yield {**row, "answers": asked, **completion.more}


def _problem(name: Any, problems: Sequence[Any], by_id: Mapping[str, Any]) -> Any:
    """Return a problem by its id or its place in the split."""
    if isinstance(name, str) and name in by_id:
        return by_id[name]
    if isinstance(name, int) and not isinstance(name, bool) and 0 <= name < len(problems):
        return problems[name]
    raise InputError(f"problem must be an id, or a place in 0..{len(problems) - 1} of the split, not {name!r}")
