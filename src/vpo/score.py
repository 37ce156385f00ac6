"""From anybody's completions to a pool: parse the answers, score each, one row an answer."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vpo.answers import duplicates
from vpo.errors import InputError
from vpo.pools import MOST_ANSWERS, check_given, check_whole
from vpo.progress import progress
from vpo.row_files import read_rows
from vpo.tasks import Task


@dataclass
class Tally:
    """What became of the completions, counted while they are scored, and the task's own target."""

    completions: int = 0
    answers: int = 0
    missing: int = 0
    unreadable: int = 0
    repeated: int = 0
    solved: int = 0
    totals: Counter[str] = field(default_factory=Counter)
    target: dict[str, float] = field(default_factory=dict)

    def data(self) -> dict[str, Any]:
        """Return the counts as shares and means."""
        return {
            "completions": self.completions,
            "answers": self.answers,
            "given": 1 - self.missing / self.answers,
            "readable": 1 - (self.missing + self.unreadable) / self.answers,
            "repeated": self.repeated / self.answers,
            "solved": self.solved / self.answers,
            "mean": {name: total / self.answers for name, total in self.totals.items()},
            "target": self.target,
        }


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
    by_id = {problem.id: problem for problem in problems}
    tally.target = dict(zip(task.names, task.weights, strict=True))
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
        yield from scored_rows(task, problem, completion, asked, more, tally)
    if not tally.completions:
        raise InputError(f"{path}: the file must hold 1 or more completions, and has none")


def scored_rows(
    task: Task[Any], problem: Any, completion: str, asked: int, more: Mapping[str, Any], tally: Tally
) -> Iterator[dict[str, Any]]:
    """Yield the rows of one completion of a number of answers; `more` are fields to add, such as its generation."""
    found = task.parse(completion, asked)
    vectors = task.score_many([problem] * asked, found)
    tally.completions += 1
    tally.answers += asked
    tally.missing += found.count(None)
    forms = {answer: task.normal_form(answer) for answer in found if answer is not None}
    tally.unreadable += sum(answer is not None and forms[answer] is None for answer in found)
    tally.repeated += sum(duplicates(found, forms.__getitem__))
    for position, (answer, vector) in enumerate(zip(found, vectors.tolist(), strict=True), start=1):
        scores = dict(zip(task.names, vector, strict=True))
        solved = task.solved(vector)
        tally.solved += solved
        tally.totals.update(scores)
        text = None if answer is None else answer.encode("utf-8", "backslashreplace").decode()  # lone surrogates
        row = {"problem": problem.id, "position": position, "scores": scores, "solved": solved, "answer": text}
        yield {**row, "answers": asked, **more}


def _problem(name: Any, problems: list[Any], by_id: Mapping[str, Any]) -> Any:
    """Return a problem by its id or its place in the split."""
    if isinstance(name, str) and name in by_id:
        return by_id[name]
    if isinstance(name, int) and not isinstance(name, bool) and 0 <= name < len(problems):
        return problems[name]
    raise InputError(f"problem must be an id, or a place in 0..{len(problems) - 1} of the split, not {name!r}")
