"""From anybody's completions to a pool: parse the answers, score each, one row an answer."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vpo.answers import duplicates
from vpo.errors import InputError
from vpo.progress import progress
from vpo.row_files import read_rows
from vpo.tasks import Task


@dataclass
class Tally:
    """What became of the completions, counted while they are scored."""

    completions: int = 0
    answers: int = 0
    missing: int = 0
    repeated: int = 0
    solved: int = 0
    totals: Counter[str] = field(default_factory=Counter)

    def data(self) -> dict[str, Any]:
        """Return the counts as shares and means."""
        return {
            "completions": self.completions,
            "answers": self.answers,
            "parsed": 1 - self.missing / self.answers,
            "repeated": self.repeated / self.answers,
            "solved": self.solved / self.answers,
            "mean": {name: total / self.answers for name, total in self.totals.items()},
        }


def score_completions(
    task: Task[Any], path: str | Path, *, split: str, answers: int, tally: Tally
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a pool from a file of completions.

    Args:
        task: whose problems were asked.
        path: a file with a row for each completion: `problem` (its id, or its place in the split from 0),
            `completion`, and optionally `generation`, `tokens`, and `answers` where it differs from row to row.
        split: of the problems.
        answers: m, how many answers a completion was asked for.
        tally: counts what is read.
    """
    problems = {problem.id: problem for problem in task.problems(split)}
    ids = list(problems)
    seen: Counter[str] = Counter()
    for line, row in progress(read_rows(Path(path)), f"scoring {path}"):
        try:
            name, completion, asked = _completion(row, ids, answers)
        except InputError as error:
            raise InputError(f"{path}:{line}: {error}") from None
        generation = row["generation"] if row.get("generation") is not None else seen[name]
        seen[name] += 1
        yield from _rows(task, problems[name], completion, asked, {"generation": generation, **_tokens(row)}, tally)
    if not tally.completions:
        raise InputError(f"{path}: the file must hold 1 or more completions, and has none")


def _rows(
    task: Task[Any], problem: Any, completion: str, asked: int, more: Mapping[str, Any], tally: Tally
) -> Iterator[dict[str, Any]]:
    found = task.parse(completion, asked)
    vectors = task.score_many([problem] * asked, found)
    repeated = duplicates(found, task.normal_form)
    tally.completions += 1
    tally.answers += asked
    tally.missing += found.count(None)
    tally.repeated += sum(repeated)
    for position, (answer, vector) in enumerate(zip(found, vectors.tolist(), strict=True), start=1):
        scores = dict(zip(task.names, vector, strict=True))
        solved = task.solved(vector)
        tally.solved += solved
        tally.totals.update(scores)
        row = {"problem": problem.id, "position": position, "scores": scores, "solved": solved, "answer": answer}
        yield {**row, "answers": asked, **more}


def _completion(row: Any, ids: list[str], answers: int) -> tuple[str, str, int]:
    """Return the problem's id, the text and m of a row, refusing what is absent or wrong."""
    if not isinstance(row, Mapping):
        raise InputError("a row must be an object with problem and completion")
    problem, completion, asked = row.get("problem"), row.get("completion"), row.get("answers")
    if isinstance(problem, int) and not isinstance(problem, bool):
        if not 0 <= problem < len(ids):
            raise InputError(f"problem must lie in 0..{len(ids) - 1}, the places of the split, not {problem}")
        problem = ids[problem]
    if problem not in set(ids):
        raise InputError(f"problem must be an id or a place of the split's {len(ids)} problems, not {problem!r}")
    if not isinstance(completion, str):
        raise InputError(f"completion must be text, not {type(completion).__name__}")
    if asked is not None and (not isinstance(asked, int) or asked < 1):
        raise InputError(f"answers must be a whole number from 1, not {asked!r}")
    return problem, completion, answers if asked is None else asked


def _tokens(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"tokens": row["tokens"]} if row.get("tokens") is not None else {}
