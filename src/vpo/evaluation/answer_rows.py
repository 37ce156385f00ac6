"""The answers of a pool row by row, to choose from: which there are, which are copies, and how they score."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from vpo.core.types import Floats
from vpo.evaluation.eval_folder import POOL, Evaluation, read_evaluation
from vpo.evaluation.pool_rows import check_row, without_null_scores
from vpo.util.grouping import group_by
from vpo.util.row_files import Row, read_rows

# An answer within a pool: its problem, generation and position.
AnswerKey: TypeAlias = tuple[str, str, int]


@dataclass(frozen=True)
class AnswerPool:
    """A pool with its rows.

    Attributes:
        evaluation: the pool, and how it was sampled where that is known.
        problems: id → the rows of its answers, in the order of the file.
    """

    evaluation: Evaluation
    problems: Mapping[str, tuple[Row, ...]]


def read_answers(path: str | Path) -> AnswerPool:
    """Read a pool file, or the pool of a folder that `vpo eval` wrote, refusing what `read_pool` refuses."""
    evaluation = read_evaluation(path)
    file = Path(path) if evaluation.folder is None else evaluation.folder / POOL
    rows = (check_row(without_null_scores(row)) for _, row in read_rows(file, without=["completion"]))
    by_problem = group_by(rows, lambda row: str(row["problem"]))
    return AnswerPool(evaluation, {name: tuple(some) for name, some in by_problem.items()})


def key_of(row: Row) -> AnswerKey:
    """The problem, generation and position of a row."""
    return row["problem"], row["generation"], row["position"]


def scores_of(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Floats:
    """Score vectors, name → number, as an array with its columns in an order of names, (n, len(names))."""
    return np.asarray([[row[name] for name in names] for row in rows], dtype=np.float64)


def words(text: str) -> str:
    """A text with single spaces: answers that are the same so are copies."""
    return " ".join(text.split())


def choosable(rows: Sequence[Row]) -> list[int]:
    """The indices of the rows that can be chosen: those with a text, or all where none has one."""
    return [index for index, row in enumerate(rows) if "answer" in row] or list(range(len(rows)))


def copies(rows: Sequence[Row]) -> list[list[int]]:
    """The indices of the rows of each different answer that can be chosen. A row without a text is like no other."""
    return list(group_by(choosable(rows), lambda index: _identity(rows[index], index)).values())


def _identity(row: Row, index: int) -> str | int:
    return words(row["answer"]) if "answer" in row else index
