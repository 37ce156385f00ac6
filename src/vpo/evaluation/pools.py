"""Pools: files of scored answers, one row per answer, JSONL or Parquet. Anyone's model can write them.

==============  ==========================================================================================
field           meaning
==============  ==========================================================================================
``problem``     id of the problem, text or an integer
``generation``  id of the completion for that problem, text or an integer
``position``    of the answer in that completion, from 1
``scores``      objective → number; the same objectives for every answer of a problem
``solved``      optional: whether the answer solves the problem, in every row or in none
``tokens``      optional: tokens of the whole generation, in every row or in none
``answer``      optional: the text, or null
``completion``  optional: the text of the whole generation, in one of its rows; kept for people, and not measured
``answers``     optional: m, how many answers the prompt asked for; else the highest position of the generation
``target``      optional: w*, objective → weight, in every row or in none: the weighting that the pool is measured under
==============  ==========================================================================================

An answer that is missing from a set counts as a row of zeros, whether its row is absent or has zeros, so that pools
of n·m answers compare. Other fields are allowed and ignored. A file ends in .jsonl, .jsonl.gz or .parquet; in Parquet
a null score is an objective that the row does not have.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from vpo.core.targets import weights_for
from vpo.core.types import Floats
from vpo.evaluation.pool_rows import FieldsPresent, check_row, without_null_scores
from vpo.util.errors import InputError
from vpo.util.progress import progress
from vpo.util.row_files import Row, read_rows, write_rows

Booleans: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True)
class ProblemPool:
    """The answers for one problem, by generation in the order of the file, and by position.

    Attributes:
        problem: its id.
        objectives: names of the D objectives.
        set_sizes_N: m of each generation.
        scores_nD: score vectors; zeros for missing answers.
        solved_n: whether each answer solves the problem, or None.
        tokens_N: tokens of each generation, or None.
        answers: the texts, None for missing ones, or None if the pool has no texts.
        missing: how many answers had no row.
        target: w*, of sum 1, that the rows state, or None.
    """

    problem: str
    objectives: tuple[str, ...]
    set_sizes_N: tuple[int, ...]
    scores_nD: Floats
    solved_n: Booleans | None
    tokens_N: Floats | None
    answers: tuple[str | None, ...] | None
    missing: int
    target: Mapping[str, float] | None = None

    def scores_of(self, objectives: Sequence[str]) -> Floats:
        """The scores with their columns in an order of objectives, (n, len(objectives)): pools differ in theirs."""
        scores_nD: Floats = self.scores_nD[:, [self.objectives.index(name) for name in objectives]]
        return scores_nD


@dataclass(frozen=True)
class Pool:
    """The answers for many problems.

    Attributes:
        path: of the file.
        problems: id → the answers for that problem.
    """

    path: str
    problems: Mapping[str, ProblemPool]

    @cached_property
    def objectives(self) -> tuple[str, ...] | None:
        """Names of the objectives, or None where they differ between problems."""
        different = {problem.objectives for problem in self.problems.values()}
        return different.pop() if len(different) == 1 else None

    @property
    def states_target(self) -> bool:
        """Whether the rows state w*."""
        return all(problem.target is not None for problem in self.problems.values())

    @cached_property
    def target(self) -> Mapping[str, float] | None:
        """The w* that the rows state; None where they state none, or the uniform one for problems that differ."""
        first = next(iter(self.problems.values())).target
        return first if all(problem.target == first for problem in self.problems.values()) else None

    @cached_property
    def set_size(self) -> int | None:
        """M, the answers per generation, or None for a mixed pool."""
        different = {size for problem in self.problems.values() for size in problem.set_sizes_N}
        return different.pop() if len(different) == 1 else None


def read_pool(path: str | Path) -> Pool:
    """Read a pool of scored answers, refusing the first row that is wrong, with its file and line.

    Args:
        path: a file that ends in .jsonl, .jsonl.gz or .parquet, one row per answer.
    """
    path = Path(path)
    parquet = path.suffix == ".parquet"
    rows = read_rows(path, without=["completion"])
    return pool_of_rows(path, ((line, without_null_scores(row) if parquet else row) for line, row in rows))


def pool_of_rows(path: Path, rows: Iterable[tuple[int, Any]]) -> Pool:
    """Build a pool from the rows of a file, each with the number of its line."""
    builder = _PoolBuilder()
    for line, row in progress(rows, f"reading {path.name}"):
        try:
            builder.add(row, line)
        except InputError as error:
            raise InputError(f"{path}:{line}: {error}") from None
    if not builder.problems:
        raise InputError(f"{path}: a pool must hold 1 or more rows, and this file has none")
    pool = Pool(str(path), {name: problem.build() for name, problem in builder.problems.items()})
    _check_target(pool)
    return pool


def _check_target(pool: Pool) -> None:
    """Refuse weightings that differ between problems, unless each is the uniform one."""
    if pool.target is not None or not pool.states_target:
        return
    for problem in pool.problems.values():
        weights_D = weights_for(problem.target, problem.objectives)
        if np.ptp(weights_D) > 1e-9:
            raise InputError(
                f"{pool.path}: target must be the same in every row, or uniform where problems differ in their "
                f"objectives; problem {problem.problem!r} has another than the first one"
            )


def write_pool(path: str | Path, rows: Iterable[Row]) -> None:
    """Write rows as a pool, in the format of the file's ending. The file appears whole or not at all.

    Rows that `read_pool` would refuse are refused here, with their number.

    Args:
        path: a file that ends in .jsonl, .jsonl.gz or .parquet.
        rows: one per answer, with `problem`, `generation`, `position` and `scores`.
    """
    write_rows(Path(path), _checked_rows(rows), maps=["scores", "target"])


def _checked_rows(rows: Iterable[Row]) -> Iterator[Row]:
    builder = _PoolBuilder()
    for number, row in enumerate(rows, start=1):
        try:
            yield {**row, **builder.add(row, number)}
        except InputError as error:
            raise InputError(f"row {number}: {error}") from None
    if not builder.problems:
        raise InputError("a pool must hold 1 or more rows, not 0")


class _PoolBuilder:
    """Checks rows, separately and against those before them, and groups them by problem."""

    def __init__(self) -> None:
        self.problems: dict[str, _ProblemBuilder] = {}
        self.present = FieldsPresent("solved", "tokens", "target")
        self.orders: dict[frozenset[str], tuple[str, ...]] = {}  # objectives → the order in which they came first

    def add(self, value: Any, line: int) -> Row:
        """Add a row, and return the fields of it that a pool has."""
        row = check_row(value)
        self.present.check(row, line)
        if row["problem"] not in self.problems:
            names = self.orders.setdefault(frozenset(row["scores"]), tuple(row["scores"]))
            self.problems[row["problem"]] = _ProblemBuilder(row["problem"], names, row.get("target"))
        self.problems[row["problem"]].add(row, line)
        return row


class _ProblemBuilder:
    """The rows of one problem, by generation and position."""

    def __init__(self, problem: str, objectives: tuple[str, ...], target: Mapping[str, float] | None) -> None:
        self.problem = problem
        self.objectives = objectives
        self.target = target
        self.sets: dict[str, dict[int, Row]] = {}
        self.lines: dict[tuple[str, int], int] = {}

    def add(self, row: Row, line: int) -> None:
        """Add a row, refusing one that contradicts an earlier one."""
        generation, position = row["generation"], row["position"]
        if row["scores"].keys() != set(self.objectives):
            raise InputError(
                f"scores must have the objectives of the problem's earlier rows, "
                f"{', '.join(self.objectives)}, not {', '.join(row['scores'])}"
            )
        answers = self.sets.setdefault(generation, {})
        if position in answers:
            raise InputError(
                f"position {position} of generation {generation!r} is in line "
                f"{self.lines[generation, position]} already"
            )
        earlier = next(iter(answers.values()), row)
        if row.get("target") != self.target:
            raise InputError(
                f"target must be the same in every row of the problem, {self.target}, not {row.get('target')}"
            )
        for field in ("tokens", "answers"):
            if row.get(field) != earlier.get(field):
                raise InputError(
                    f"{field} must be the same in every row of generation {generation!r}, "
                    f"{earlier.get(field)}, not {row.get(field)}"
                )
        answers[position] = row
        self.lines[generation, position] = line

    def build(self) -> ProblemPool:
        """The answers as arrays, with zeros for the missing ones."""
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
            target=self.target,
        )
