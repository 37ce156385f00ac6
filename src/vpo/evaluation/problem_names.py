"""Which problem a row of completions means: by its id, by the number in its id, or by an index that says so.

- `problem` is an id. An integer, or text of digits, is the id of that number: ``11`` is the problem ``11``, and where
  all ids of the split are one prefix and a number, the one with that number: ``Mbpp/11``, ``test-11``. It is never an
  index.
- `index`, where a row has no `problem`, is the index of the problem in the split, from 0.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from vpo.util.errors import InputError

NUMBERED = re.compile(r"(.*?)([0-9]+)", re.DOTALL)


class ProblemNames:
    """Finds the problems of a split."""

    def __init__(self, problems: Iterable[Any]) -> None:
        """Read the ids; problems whose ids are the same text are refused."""
        self._problems = list(problems)
        self._by_id = {str(problem.id): problem for problem in self._problems}
        if len(self._by_id) < len(self._problems):
            raise InputError("two problems of the split have the same id")
        self._by_number = _by_number(self._by_id)
        self._example = next(iter(self._by_id), "")

    def find(self, row: Mapping[str, Any]) -> Any:
        """The problem of a row, by its field `problem`, or by `index` where it has no `problem`."""
        if "problem" in row:
            return self._of_id(row["problem"])
        if "index" in row:
            return self._at(row["index"])
        raise InputError(f"the row has no problem, an id such as {self._example!r}, and no index, from 0")

    def _of_id(self, name: Any) -> Any:
        number = _integer(name)
        text = name if isinstance(name, str) else str(number)
        if text in self._by_id and (isinstance(name, str) or number is not None):
            return self._by_id[text]
        if number in self._by_number:
            return self._by_number[number]
        raise InputError(
            f"problem must be an id of the split, such as {self._example!r}, not {name!r}; for an index in the split, "
            "give index in place of problem"
        )

    def _at(self, index: Any) -> Any:
        number = _integer(index)
        if number is None or isinstance(index, str) or not 0 <= number < len(self._problems):
            raise InputError(f"index must be an integer in 0..{len(self._problems) - 1} of the split, not {index!r}")
        return self._problems[number]


def _by_number(by_id: Mapping[str, Any]) -> dict[int | None, Any]:
    """Problems by the numbers at the ends of their ids; none where the ids have different prefixes, or lack numbers."""
    matches = [NUMBERED.fullmatch(name) for name in by_id]
    parts = [(match[1], int(match[2])) for match in matches if match and len(match[2]) < 19]
    numbers = {number for _, number in parts}
    if len(numbers) < len(by_id) or len({prefix for prefix, _ in parts}) != 1:
        return {}
    return {number: problem for (_, number), problem in zip(parts, by_id.values(), strict=True)}


def _integer(value: Any) -> int | None:
    """An integer, 11.0 as Parquet may have it, or text of digits, as an integer; None for anything else."""
    if isinstance(value, str):
        return int(value) if value.isascii() and value.isdigit() and len(value) < 19 else None
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
        return None
    return int(value)
