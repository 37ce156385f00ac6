"""Files of ratings, read as pools: each row has several numbers, and a column that names its problem.

The ratings of a row are in columns of their own, or in one column `scores`, name → number. They are scaled to [0, 1]
by their range over all files that are read together, so that a scale of 1 to 5 weighs no more than one of 0 to 1;
higher must be better.
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
    """A pool for each file, and for each objective the ratings that became 0 and 1."""

    pools: tuple[Pool, ...]
    ranges: Mapping[str, tuple[float, float]]


def read_ratings(*paths: str | Path, group_by: str, objectives: Sequence[str] | None = None) -> Ratings:
    """Read files of ratings, refusing the first row that is wrong, with its file and line.

    Args:
        paths: each ends in .jsonl, .jsonl.gz or .parquet.
        group_by: the column whose value is the same in all answers to a problem.
        objectives: the ratings to read; by default all of column `scores`.
    """
    pools = [pool_of_rows(path, _as_answers(path, group_by, objectives)) for path in map(Path, paths)]
    names = pools[0].objectives or ()  # the same in every row of a file, by what `_rating` refuses
    for pool in pools[1:]:
        if set(pool.objectives or ()) != set(names):
            raise InputError(
                f"{pool.path} must have the ratings of {pools[0].path}, {', '.join(names)}, "
                f"not {', '.join(pool.objectives or ())}; choose with --objectives"
            )
    problems = [problem for pool in pools for problem in pool.problems.values()]
    every_nD = np.vstack([problem.scores_of(names) for problem in problems])
    low_D, high_D = every_nD.min(axis=0), every_nD.max(axis=0)
    scaled = [
        Pool(pool.path, {name: _scaled(problem, names, low_D, high_D) for name, problem in pool.problems.items()})
        for pool in pools
    ]
    ranges = zip(names, zip(low_D.tolist(), high_D.tolist(), strict=True), strict=True)
    return Ratings(tuple(scaled), dict(ranges))


def _scaled(problem: ProblemPool, names: tuple[str, ...], low_D: Floats, high_D: Floats) -> ProblemPool:
    """Scale scores to [0, 1] by their range; 0 where there is none."""
    width_D = np.where(high_D > low_D, high_D - low_D, 1.0)
    return replace(problem, objectives=names, scores_nD=(problem.scores_of(names) - low_D) / width_D)


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
