"""Files of ratings, read as a pool: each row has several numbers, and a column that names its problem.

The ratings of a row are in columns of their own, or in one column `scores`, name → number. They are scaled to [0, 1]
by their range in the file, so that a scale of 1 to 5 weighs no more than one of 0 to 1; higher must be better.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from vpo.core.types import Floats
from vpo.evaluation.pools import Pool, ProblemPool, pool_of_rows
from vpo.util.errors import InputError, nearest
from vpo.util.row_files import read_rows


@dataclass(frozen=True)
class Ratings:
    """The pool, and for each objective the ratings that became 0 and 1."""

    pool: Pool
    ranges: Mapping[str, tuple[float, float]]


def read_ratings(path: str | Path, *, group_by: str, objectives: Sequence[str] | None = None) -> Ratings:
    """Read a file of ratings, refusing the first row that is wrong, with its file and line.

    Args:
        path: ends in .jsonl, .jsonl.gz or .parquet.
        group_by: the column whose value is the same in all answers to a problem.
        objectives: the ratings to read; by default all of column `scores`.
    """
    path = Path(path)
    pool = pool_of_rows(path, _as_answers(path, group_by, objectives))
    names = pool.objectives or ()  # the same in every row, by what `_ratings` refuses
    every_nD = np.vstack([problem.scores_nD for problem in pool.problems.values()])
    low_D, high_D = every_nD.min(axis=0), every_nD.max(axis=0)
    scaled = {name: _scaled(problem, low_D, high_D) for name, problem in pool.problems.items()}
    ranges = zip(names, zip(low_D.tolist(), high_D.tolist(), strict=True), strict=True)
    return Ratings(Pool(pool.path, scaled), dict(ranges))


def _scaled(problem: ProblemPool, low_D: Floats, high_D: Floats) -> ProblemPool:
    """Scale scores to [0, 1] by their range; 0 where there is none."""
    width_D = np.where(high_D > low_D, high_D - low_D, 1.0)
    return replace(problem, scores_nD=(problem.scores_nD - low_D) / width_D)


def _as_answers(path: Path, group_by: str, objectives: Sequence[str] | None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Read the rows as those of a pool, each a generation of one answer."""
    for line, row in read_rows(path):
        try:
            if not isinstance(row, Mapping):
                raise InputError("a row must be an object")
            if row.get(group_by) is None:
                raise InputError(f"the row has no {group_by!r} to group by: {nearest(group_by, row)}")
            objectives = objectives or _named(row)
            scores = {name: _rating(row, name) for name in objectives}
        except InputError as error:
            raise InputError(f"{path}:{line}: {error}") from None
        yield line, {"problem": row[group_by], "generation": line, "position": 1, "scores": scores}


def _named(row: Mapping[str, Any]) -> tuple[str, ...]:
    scores = row.get("scores")
    if not isinstance(scores, Mapping):
        raise InputError(
            f"the row has no column 'scores', so its ratings must be named (--objectives); it has {', '.join(row)}"
        )
    return tuple(scores)


def _rating(row: Mapping[str, Any], name: str) -> Any:
    scores = row.get("scores")
    known = {**scores, **row} if isinstance(scores, Mapping) else row
    if name not in known:
        raise InputError(f"the row has no rating {name!r}: {nearest(name, known)}")
    return known[name]
