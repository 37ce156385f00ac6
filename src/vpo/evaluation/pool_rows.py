"""The rows of a pool, checked field by field."""

from collections.abc import Mapping
from numbers import Integral
from typing import Any

import numpy as np

from vpo.core.targets import scaled
from vpo.util.errors import InputError
from vpo.util.numbers import finite
from vpo.util.row_files import Row

# A set larger than this is a mistake in the file, and would be filled up with as many zeros.
MOST_ANSWERS = 10_000
NEEDED = ("problem", "generation", "position", "scores")


class FieldsPresent:
    """Refuses an optional field that some rows have and others lack."""

    def __init__(self, *fields: str) -> None:
        """Watch some fields."""
        self._fields = fields
        self._first: tuple[int, frozenset[str]] | None = None  # line and fields of the first row

    def check(self, row: Row, line: int) -> None:
        """Compare a row with the first one."""
        present = frozenset(field for field in self._fields if field in row)
        if self._first is None:
            self._first = (line, present)
        first_line, first_present = self._first
        for field in self._fields:
            if (field in present) != (field in first_present):
                has, lacks = (line, first_line) if field in present else (first_line, line)
                raise InputError(f"{field} must be in every row or in none: line {has} has it, line {lacks} does not")


def check_row(row: Any) -> Row:
    """The fields of a pool that a row has; refuses a required one that is absent, and any of the wrong type."""
    if not isinstance(row, Mapping):
        raise InputError(f"a row must be an object, not {_shown(row)}")
    for field in NEEDED:
        if row.get(field) is None:
            raise InputError(
                f"the row has no {field!r}: each row of a pool has {', '.join(NEEDED)}; `vpo import` makes pools of "
                "other tables"
            )
    checked: dict[str, Any] = {
        "problem": _check_name(row["problem"], "problem"),
        "generation": _check_name(row["generation"], "generation"),
        "position": check_integer(row["position"], "position", MOST_ANSWERS),
        "scores": _check_scores(row["scores"]),
    }
    if row.get("solved") is not None:
        if row["solved"] not in (True, False):
            raise InputError(f"solved must be true or false, not {_shown(row['solved'])}")
        checked["solved"] = bool(row["solved"])
    if row.get("tokens") is not None:
        checked["tokens"] = check_integer(row["tokens"], "tokens")
    if row.get("answer") is not None:
        if not isinstance(row["answer"], str):
            raise InputError(f"answer must be text, not {_shown(row['answer'])}")
        checked["answer"] = row["answer"]
    if not isinstance(row.get("completion", ""), str | None):
        raise InputError(f"completion must be text, not {_shown(row['completion'])}")
    if row.get("answers") is not None:
        checked["answers"] = check_integer(row["answers"], "answers", MOST_ANSWERS)
        if checked["position"] > checked["answers"]:
            raise InputError(f"position must lie in 1..{checked['answers']} (answers), not {checked['position']}")
    if row.get("target") is not None:
        checked["target"] = _check_target(row["target"], checked["scores"])
    return checked


def without_null_scores(row: Row) -> Row:
    """Drop the nulls that a struct column of Parquet has for objectives of other problems."""
    maps = {field: row[field] for field in ("scores", "target") if isinstance(row.get(field), Mapping)}
    known = {field: {name: value for name, value in each.items() if value is not None} for field, each in maps.items()}
    return {**row, **known}


def check_integer(value: Any, field: str, most: int = 10**12) -> int:
    """An integer in 1..most; 3.0 is one, as Parquet may have it."""
    number = _number(value)
    if number is None or isinstance(value, bool | np.bool_) or number != int(number) or not 1 <= number <= most:
        raise InputError(f"{field} must be an integer in 1..{most}, not {_shown(value)}")
    return int(number)


def _check_name(value: Any, field: str) -> str:
    if isinstance(value, bool | np.bool_) or not isinstance(value, str | Integral):
        raise InputError(f"{field} must be text or an integer, not {_shown(value)}")
    return str(value)


def _check_scores(scores: Any) -> dict[str, float]:
    if not isinstance(scores, Mapping) or not scores:
        raise InputError(f"scores must map 1 or more objectives to numbers, not {_shown(scores)}")
    numbers = {name: _number(value) for name, value in scores.items()}
    for name, number in numbers.items():
        if number is None:
            raise InputError(f"scores[{name!r}] must be a finite number, not {_shown(scores[name])}")
    return {str(name): number for name, number in numbers.items() if number is not None}


def _check_target(target: Any, scores: Mapping[str, float]) -> dict[str, float]:
    """A weighting of all objectives of a row, scaled to sum 1; those that it does not name weigh 0."""
    if not isinstance(target, Mapping) or not target:
        raise InputError(f"target must map objectives to weights, not {_shown(target)}")
    weights = {str(name): _number(value) for name, value in target.items()}
    for name, weight in weights.items():
        if name not in scores:
            raise InputError(f"target names {name!r}, and the objectives of the row are {', '.join(scores)}")
        if weight is None or weight < 0:
            raise InputError(f"target[{name!r}] must be a number of 0 or more, not {_shown(target[name])}")
    return scaled({name: weights.get(name) or 0.0 for name in scores})


def _number(value: Any) -> float | None:
    """A finite number as a float, anything else as None; the booleans of numpy are no `Real`."""
    return float(value) if isinstance(value, np.bool_) else finite(value)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
