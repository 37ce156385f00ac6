"""Any table, JSONL or Parquet, one row an answer, by a mapping from the fields of a pool to its columns.

`--map problem=task_id,scores=rewards,answer=completion` names the columns; a field that is not named is the column of
its own name, if there is one. A dot reads inside an object: `scores=metrics.accuracy`. Column `scores` may hold

- a number or a boolean: one objective, named by the column; `scores=` may be repeated for several;
- an object, name → number: its objectives;
- a list of booleans or numbers, one for each test: objectives test_1 … test_D.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vpo.evaluation.importers.answers import ImportedAnswer, problem_name, text_of
from vpo.evaluation.importers.source import Source
from vpo.util.errors import InputError, nearest

FIELDS = ("problem", "scores", "answer", "completion", "generation", "position", "solved", "tokens")
NEEDED = ("problem", "scores")


@dataclass(frozen=True)
class ColumnMap:
    """Columns of a table by the field of a pool; `scores` may have several."""

    columns: Mapping[str, Sequence[str]]

    @classmethod
    def parse(cls, pairs: Sequence[tuple[str, str]]) -> "ColumnMap":
        """Refuse unknown fields, and those but `scores` that are given twice."""
        columns: dict[str, list[str]] = {}
        for field, column in pairs:
            if field not in FIELDS:
                raise InputError(f"map names the field {field!r} of a pool: {nearest(field, FIELDS)}")
            if field in columns and field != "scores":
                raise InputError(f"map must give {field} once, and gives {columns[field][0]!r} and {column!r}")
            columns.setdefault(field, []).append(column)
        return cls(columns)

    def of(self, field: str, row: Mapping[str, Any], where: str) -> list[tuple[str, Any]]:
        """The columns of a field with their values; none for a field that the table does not have."""
        if field in self.columns:
            return [(column, _value(row, column, field, where)) for column in self.columns[field]]
        if field in row:
            return [(field, row[field])]
        if field in NEEDED:
            raise InputError(f"{where}: no column {field!r}: name it with --map {field}=COLUMN; {_columns(row)}")
        return []

    def one(self, field: str, row: Mapping[str, Any], where: str) -> Any:
        """The value of a field that has one column; None where the table does not have it."""
        return next((value for _, value in self.of(field, row, where)), None)


def files(source: Source) -> list[Path]:
    """Files of rows that need no mapping."""
    return source.tables_with(*NEEDED)


def read(source: Source, paths: list[Path], mapping: ColumnMap) -> Iterator[ImportedAnswer]:
    """Each row by the mapping."""
    for path in paths:
        for where, row in source.rows(path):
            problem = mapping.one("problem", row, where)
            if problem is None or isinstance(problem, bool | float):
                raise InputError(f"{where}: the problem must be text, an integer or chat messages, not {problem!r}")
            yield ImportedAnswer(
                where,
                problem if isinstance(problem, int) else problem_name(problem),
                _scores(mapping.of("scores", row, where), where),
                answer=text_of(mapping.one("answer", row, where)),
                completion=text_of(mapping.one("completion", row, where)),
                solved=mapping.one("solved", row, where),
                tokens=mapping.one("tokens", row, where),
                generation=mapping.one("generation", row, where),
                position=1 if (position := mapping.one("position", row, where)) is None else position,
            )


def _scores(columns: Sequence[tuple[str, Any]], where: str) -> dict[str, Any]:
    scores: dict[str, Any] = {}
    for column, value in columns:
        for name, score in _objectives(column, value).items():
            if name in scores:
                raise InputError(f"{where}: two columns of scores have the objective {name!r}")
            scores[name] = score
    return scores


def _objectives(column: str, value: Any) -> dict[str, Any]:
    """The objectives that a value holds."""
    if isinstance(value, Mapping):  # in Parquet, a null is an objective of other rows
        return {str(name): score for name, score in value.items() if score is not None}
    if isinstance(value, list):
        return {f"test_{number}": score for number, score in enumerate(value, start=1)}
    return {column: value}


def _value(row: Mapping[str, Any], column: str, field: str, where: str) -> Any:
    """The value of a column, or inside one: a.b."""
    if column in row:
        return row[column]
    outer, dot, inner = column.partition(".")
    if dot and isinstance(row.get(outer), Mapping):
        return _value(row[outer], inner, field, where)
    raise InputError(f"{where}: no column {column!r} for {field}: {_columns(row)}")


def _columns(row: Mapping[str, Any]) -> str:
    return f"the columns are {', '.join(row)}"
