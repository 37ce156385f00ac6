"""Pools: files of scored answers, one row an answer, JSONL or Parquet. Anyone's model can write them.

==============  ==========================================================================================
field           meaning
==============  ==========================================================================================
``problem``     which problem, text or a whole number
``generation``  which completion for that problem, text or a whole number
``position``    which answer of that completion, from 1
``scores``      objective → number; the same objectives for every answer of a problem
``solved``      optional: whether the answer solves the problem, in every row or in none
``tokens``      optional: tokens of the whole generation, in every row or in none
``answer``      optional: the text, or null
``answers``     optional: m, how many answers the generation was asked for; else its highest position
==============  ==========================================================================================

An answer that is missing from a set counts as a row of zeros, written or not, so that pools of n·m answers
compare. Other fields are allowed and not read. A file ends in .jsonl, .jsonl.gz or .parquet; in Parquet a null score
is an objective that the row does not have.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from vpo.core.types import Floats
from vpo.util.errors import InputError
from vpo.util.progress import progress
from vpo.util.row_files import Row, read_rows, write_rows

Booleans: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]

# A set larger than this is a mistake in the file, and would be filled up with as many zeros.
MOST_ANSWERS = 10_000


@dataclass(frozen=True)
class ProblemPool:
    """The answers for one problem, ordered by generation, in the order they came, and position.

    Attributes:
        problem: its name.
        objectives: names of the D objectives.
        set_sizes_N: m of each generation.
        scores_nD: score vectors; zeros for missing answers.
        solved_n: whether each answer solves, or None.
        tokens_N: tokens of each generation, or None.
        answers: the texts, None for missing ones, or None if the pool has no texts.
        missing: how many answers had no row.
    """

    problem: str
    objectives: tuple[str, ...]
    set_sizes_N: tuple[int, ...]
    scores_nD: Floats
    solved_n: Booleans | None
    tokens_N: Floats | None
    answers: tuple[str | None, ...] | None
    missing: int

    def scores_of(self, objectives: Sequence[str]) -> Floats:
        """The scores with their columns in an order of objectives, (n, len(objectives)): pools differ in theirs."""
        scores_nD: Floats = self.scores_nD[:, [self.objectives.index(name) for name in objectives]]
        return scores_nD


@dataclass(frozen=True)
class Pool:
    """The answers for many problems."""

    path: str
    problems: Mapping[str, ProblemPool]

    @cached_property
    def objectives(self) -> tuple[str, ...] | None:
        """The names of the objectives, or None where they differ between problems."""
        different = {problem.objectives for problem in self.problems.values()}
        return different.pop() if len(different) == 1 else None

    @cached_property
    def set_size(self) -> int | None:
        """M, the answers per generation, or None for a mixed pool."""
        different = {size for problem in self.problems.values() for size in problem.set_sizes_N}
        return different.pop() if len(different) == 1 else None


def read_pool(path: str | Path) -> Pool:
    """Read a pool, refusing the first row that is wrong, with its file and line."""
    path = Path(path)
    parquet = path.suffix == ".parquet"
    return gather(path, ((line, _without_nulls(row) if parquet else row) for line, row in read_rows(path)))


def gather(path: Path, rows: Iterable[tuple[int, Any]]) -> Pool:
    """Return the rows of a file, each with the number of its line, as a pool."""
    gathered = _Gathered()
    for line, row in progress(rows, f"reading {path.name}"):
        try:
            gathered.add(row, line)
        except InputError as error:
            raise InputError(f"{path}:{line}: {error}") from None
    if not gathered.builders:
        raise InputError(f"{path}: a pool must hold 1 or more rows, and this file has none")
    return Pool(str(path), {name: builder.build() for name, builder in gathered.builders.items()})


def write_pool(path: str | Path, rows: Iterable[Row]) -> None:
    """Write rows as a pool, in the format of the file's ending. The file appears whole or not at all.

    Rows that `read_pool` would refuse are refused here, with their number.
    """
    write_rows(Path(path), _checked_rows(rows), maps=["scores"])


def _checked_rows(rows: Iterable[Row]) -> Iterator[Row]:
    gathered = _Gathered()
    for number, row in enumerate(rows, start=1):
        try:
            yield {**row, **gathered.add(row, number)}
        except InputError as error:
            raise InputError(f"row {number}: {error}") from None
    if not gathered.builders:
        raise InputError("a pool must hold 1 or more rows, not 0")


class _Gathered:
    """Rows seen so far, by problem."""

    def __init__(self) -> None:
        self.builders: dict[str, _Builder] = {}
        self.given: dict[str, tuple[bool, int]] = {}
        self.orders: dict[frozenset[str], tuple[str, ...]] = {}

    def add(self, value: Any, line: int) -> Row:
        """Take a row in and return its fields, refusing one that is wrong or contradicts an earlier one."""
        row = _checked(value)
        check_given(row, ("solved", "tokens"), self.given, line)
        if row["problem"] not in self.builders:
            names = self.orders.setdefault(frozenset(row["scores"]), tuple(row["scores"]))
            self.builders[row["problem"]] = _Builder(row["problem"], names)
        self.builders[row["problem"]].add(row, line)
        return row


class _Builder:
    """Gathers the rows of one problem."""

    def __init__(self, problem: str, objectives: tuple[str, ...]) -> None:
        self.problem = problem
        self.objectives = objectives
        self.sets: dict[str, dict[int, Row]] = {}
        self.lines: dict[tuple[str, int], int] = {}

    def add(self, row: Row, line: int) -> None:
        """Take a row in, refusing one that contradicts an earlier one."""
        generation, position = row["generation"], row["position"]
        if row["scores"].keys() != set(self.objectives):
            raise InputError(
                f"scores must have the objectives of the problem's earlier rows, "
                f"{', '.join(self.objectives)}, not {', '.join(row['scores'])}"
            )
        answers = self.sets.setdefault(generation, {})
        if position in answers:
            raise InputError(
                f"position {position} of generation {generation!r} stands in line "
                f"{self.lines[generation, position]} already"
            )
        earlier = next(iter(answers.values()), row)
        for field in ("tokens", "answers"):
            if row.get(field) != earlier.get(field):
                raise InputError(
                    f"{field} must be the same in every row of generation {generation!r}, "
                    f"{earlier.get(field)}, not {row.get(field)}"
                )
        answers[position] = row
        self.lines[generation, position] = line

    def build(self) -> ProblemPool:
        """Return the problem's answers as arrays, with zeros for the missing ones."""
        sizes = [next(iter(rows.values())).get("answers", max(rows)) for rows in self.sets.values()]
        slots = [
            rows.get(position)
            for size, rows in zip(sizes, self.sets.values(), strict=True)
            for position in range(1, size + 1)
        ]
        scores = [[row["scores"][name] if row else 0.0 for name in self.objectives] for row in slots]
        texts = [row.get("answer") if row else None for row in slots]
        tokens = [next(iter(rows.values())).get("tokens") for rows in self.sets.values()]
        example = next(row for row in slots if row)
        return ProblemPool(
            problem=self.problem,
            objectives=self.objectives,
            set_sizes_N=tuple(sizes),
            scores_nD=np.asarray(scores, dtype=np.float64),
            solved_n=np.asarray([bool(row and row["solved"]) for row in slots]) if "solved" in example else None,
            tokens_N=np.asarray(tokens, dtype=np.float64) if "tokens" in example else None,
            answers=tuple(texts) if any(text is not None for text in texts) else None,
            missing=sum(row is None for row in slots),
        )


def _checked(row: Any) -> dict[str, Any]:
    """Return the fields of a row that a pool knows, refusing one that is absent or of the wrong kind."""
    if not isinstance(row, Mapping):
        raise InputError(f"a row must be an object, not {_shown(row)}")
    for field in ("problem", "generation", "position", "scores"):
        if row.get(field) is None:
            raise InputError(f"the row has no {field!r}")
    checked: dict[str, Any] = {
        "problem": _name(row["problem"], "problem"),
        "generation": _name(row["generation"], "generation"),
        "position": check_whole(row["position"], "position", MOST_ANSWERS),
        "scores": _scores(row["scores"]),
    }
    if row.get("solved") is not None:
        if row["solved"] not in (True, False):
            raise InputError(f"solved must be true or false, not {_shown(row['solved'])}")
        checked["solved"] = bool(row["solved"])
    if row.get("tokens") is not None:
        checked["tokens"] = check_whole(row["tokens"], "tokens")
    if row.get("answer") is not None:
        if not isinstance(row["answer"], str):
            raise InputError(f"answer must be text, not {_shown(row['answer'])}")
        checked["answer"] = row["answer"]
    if row.get("answers") is not None:
        checked["answers"] = check_whole(row["answers"], "answers", MOST_ANSWERS)
        if checked["position"] > checked["answers"]:
            raise InputError(f"position must lie in 1..{checked['answers']} (answers), not {checked['position']}")
    return checked


def _without_nulls(row: Row) -> Row:
    """Return a row of Parquet without the nulls that a struct column puts in place of other problems' objectives."""
    scores = row.get("scores")
    if not isinstance(scores, Mapping):
        return row
    return {**row, "scores": {name: value for name, value in scores.items() if value is not None}}


def check_given(row: Row, fields: Iterable[str], given: dict[str, tuple[bool, int]], line: int) -> None:
    """Refuse a field that some rows have and others lack; `given` remembers what the first row had."""
    for field in fields:
        present, where = given.setdefault(field, (field in row, line))
        if (field in row) != present:
            has, lacks = (line, where) if field in row else (where, line)
            raise InputError(f"{field} must be in every row or in none: line {has} has it, line {lacks} does not")


def _name(value: Any, field: str) -> str:
    if isinstance(value, bool | np.bool_) or not isinstance(value, str | Integral):
        raise InputError(f"{field} must be text or a whole number, not {_shown(value)}")
    return str(value)


def check_whole(value: Any, field: str, most: int = 10**12) -> int:
    """Return a whole number from 1 up to a bound, refusing anything else; 3.0 is one, as Parquet may have it."""
    number = _number(value)
    if number is None or isinstance(value, bool | np.bool_) or number != int(number) or not 1 <= number <= most:
        raise InputError(f"{field} must be a whole number in 1..{most}, not {_shown(value)}")
    return int(number)


def _scores(scores: Any) -> dict[str, float]:
    if not isinstance(scores, Mapping) or not scores:
        raise InputError(f"scores must map 1 or more objectives to numbers, not {_shown(scores)}")
    numbers = {name: _number(value) for name, value in scores.items()}
    for name, number in numbers.items():
        if number is None:
            raise InputError(f"scores[{name!r}] must be a finite number, not {_shown(scores[name])}")
    return {str(name): number for name, number in numbers.items() if number is not None}


def _number(value: Any) -> float | None:
    """Return a finite number as a float, anything else as None."""
    if not isinstance(value, Real | np.bool_):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
