"""From imported answers to the rows of a pool: scores are checked and scaled, generations counted."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from vpo.evaluation.importers import table
from vpo.evaluation.importers.answers import ImportedAnswer, Notes
from vpo.evaluation.importers.formats import FORMATS, TABLE, detect, files_of
from vpo.evaluation.importers.source import Source
from vpo.evaluation.importers.table import ColumnMap
from vpo.evaluation.pools import write_pool
from vpo.util.errors import InputError, nearest, one_line
from vpo.util.files import storable
from vpo.util.numbers import finite
from vpo.util.progress import progress
from vpo.util.row_files import Row
from vpo.util.text import counted

UNIT = (0.0, 1.0)


@dataclass(frozen=True)
class Choices:
    """What to import of the scores.

    Attributes:
        objectives: to keep; None for all.
        ranges: objective → the scores that become 0 and 1; the first may be the larger where less is better.
        skip_unscored: leave out answers without a score, instead of refusing them.
    """

    objectives: Sequence[str] | None = None
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    skip_unscored: bool = False


@dataclass
class ImportCounts:
    """What was imported."""

    format: str
    files: int = 0
    answers: int = 0
    skipped: int = 0
    solved: int | None = None  # None where the format does not say
    problems: set[str] = field(default_factory=set)
    totals: Counter[str] = field(default_factory=Counter)  # objective → sum of its scores
    scored: Counter[str] = field(default_factory=Counter)  # objective → answers that have it
    left_out: dict[str, None] = field(default_factory=dict)  # scores that must be named, in their order
    notes: Notes = field(default_factory=Counter)

    def add(self, row: Row) -> None:
        """Count a row of the pool."""
        self.answers += 1
        self.problems.add(str(row["problem"]))
        self.totals.update(row["scores"])
        self.scored.update(row["scores"].keys())
        if "solved" in row:
            self.solved = (self.solved or 0) + row["solved"]

    def data(self) -> dict[str, Any]:
        """For JSON."""
        notes = [f"{count} {text}" for text, count in self.notes.items()]
        if self.left_out:
            notes.append(f"not imported unless --objectives names them: {', '.join(self.left_out)}")
        return {
            "format": self.format,
            "files": self.files,
            "problems": len(self.problems),
            "answers": self.answers,
            "skipped": self.skipped,
            "solved": None if self.solved is None else self.solved / self.answers,
            "mean": {name: total / self.scored[name] for name, total in self.totals.items()},
            "notes": notes,
        }


def import_pool(
    path: str | Path, out: str | Path, *, format: str | None = None, mapping: ColumnMap | None = None, choices: Choices
) -> ImportCounts:
    """Read a file or folder of some format, and write a pool.

    Args:
        path: to import.
        out: the pool, which appears whole or not at all.
        format: a name of `FORMATS` or "table"; None to detect it.
        mapping: of the columns of a table.
        choices: what to import of the scores.
    """
    source = Source(path)
    source.check_out(out)
    if mapping is not None and format not in (None, TABLE):
        raise InputError(f"map is for tables, and from is {format}, whose columns are known")
    if format is None:
        format = detect(source) if mapping is None else TABLE
    counts = ImportCounts(format)
    if format == TABLE:
        paths = source.tables if mapping is not None else table.files(source) or source.tables
        answers = table.read(source, paths, mapping or ColumnMap({}))
    else:
        paths = files_of(source, format)
        answers = FORMATS[format].read(source, paths, counts.notes)
    counts.files = len(paths)
    rows = _rows(progress(answers, f"importing {source.path.name}"), choices, counts)
    if not rows:
        left_out = f": {counted(counts.skipped, 'answer')} without a score left out" if counts.skipped else ""
        raise InputError(f"{path}: a pool must hold 1 or more answers, and this has none{left_out}")
    for row in rows:
        counts.add(row)
    write_pool(out, _without_some_tokens(rows, counts))
    return counts


def _without_some_tokens(rows: list[Row], counts: ImportCounts) -> list[Row]:
    """Drop the tokens where some rows lack them: a pool has those of all or of none."""
    lacking = sum("tokens" not in row for row in rows)
    if not 0 < lacking < len(rows):
        return rows
    counts.notes["answers have no tokens, so the pool has none"] += lacking
    return [{name: value for name, value in row.items() if name != "tokens"} for row in rows]


def _rows(answers: Iterable[ImportedAnswer], choices: Choices, counts: ImportCounts) -> list[Row]:
    """The rows of a pool. Where an answer is skipped, so is its whole generation: a pool would count it as zeros."""
    generations: Counter[str] = Counter()  # of each problem
    rows: dict[tuple[str, Any], list[Row]] = {}
    unscored: set[tuple[str, Any]] = set()
    for answer in map(_storable, answers):
        problem = str(answer.problem)
        generations[problem] += answer.position == 1  # a completion begins
        earlier = max(0, generations[problem] - 1)
        key = problem, earlier if answer.generation is None else _generation(answer)
        try:
            row = _row(answer, key[1], _scores(answer, choices))
        except _UnscoredError as error:
            if not choices.skip_unscored:
                raise InputError(f"{error}; leave out answers without a score with --skip-unscored") from None
            unscored.add(key)
            row = {}
        rows.setdefault(key, []).append(row)
        if choices.objectives is None:
            counts.left_out.update(dict.fromkeys(answer.further))
    counts.skipped = sum(len(rows[key]) for key in unscored)
    return [row for key, several in rows.items() if key not in unscored for row in several]


def _storable(answer: ImportedAnswer) -> ImportedAnswer:
    """The answer with texts and names that UTF-8 can encode."""
    changes: dict[str, Any] = {}
    for name in ("problem", "generation", "answer", "completion"):
        if isinstance(text := getattr(answer, name), str):
            changes[name] = storable(text)
    for name in ("scores", "further", "target"):
        if numbers := getattr(answer, name):
            changes[name] = {storable(objective): number for objective, number in numbers.items()}
    return replace(answer, **changes)


def _generation(answer: ImportedAnswer) -> str | int:
    if isinstance(answer.generation, bool) or not isinstance(answer.generation, str | int):
        raise InputError(f"{answer.where}: generation must be text or an integer, not {answer.generation!r}")
    return answer.generation


def _row(answer: ImportedAnswer, generation: Any, scores: Mapping[str, float]) -> Row:
    optional = {
        **{name: getattr(answer, name) for name in ("answer", "completion", "tokens")},
        "target": _target(answer, scores),
    }
    return {
        "problem": answer.problem,
        "generation": generation,
        "position": answer.position,
        "scores": scores,
        **({} if answer.solved is None else {"solved": _truth(answer)}),
        **{name: value for name, value in optional.items() if value is not None},
    }


class _UnscoredError(Exception):
    """An answer has a score that is null or NaN."""


def _scores(answer: ImportedAnswer, choices: Choices) -> dict[str, float]:
    """The chosen scores of an answer, in [0, 1]."""
    if not answer.scores:
        why = f" ({answer.failure})" if answer.failure else ""
        raise _UnscoredError(f"{answer.where}: the answer has no scores{why}")
    known = {**answer.further, **answer.scores}
    names = answer.scores if choices.objectives is None else choices.objectives
    for name in (*names, *choices.ranges):
        if name not in known:
            raise InputError(f"{answer.where}: the answer has no score {name!r}: {nearest(name, known)}")
    return {name: _score(name, known[name], choices.ranges.get(name), answer.where) for name in names}


def _score(name: str, value: Any, bounds: tuple[float, float] | None, where: str) -> float:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        raise _UnscoredError(f"{where}: scores[{name!r}] must be a number, not {value}")
    number = finite(value)
    if number is None:
        shown = one_line(repr(value))
        raise InputError(f"{where}: scores[{name!r}] must be a number, not {shown}; choose others with --objectives")
    low, high = bounds or UNIT
    if not min(low, high) <= number <= max(low, high):
        hint = "" if bounds else f": scale it with --range {name}=LOW..HIGH, or choose others with --objectives"
        raise InputError(f"{where}: scores[{name!r}] must lie in {low:g}..{high:g}, not {number:g}{hint}")
    return (number - low) / (high - low)


def _target(answer: ImportedAnswer, scores: Mapping[str, float]) -> dict[str, float] | None:
    """The weights that a file states for these scores; None where it states none, or none that is a weighting."""
    target = answer.target or {}
    known = {name: target[name] for name in scores if name in target}
    usable = len(known) == len(scores) and min(known.values()) >= 0 and max(known.values()) > 0
    return known if usable else None


def _truth(answer: ImportedAnswer) -> bool:
    """Whether an answer is solved: true, false, 0 or 1."""
    if answer.solved not in (True, False):
        raise InputError(f"{answer.where}: solved must be true or false, not {answer.solved!r}")
    return bool(answer.solved)
