"""The tables of the page as Markdown."""

from collections.abc import Mapping, Sequence
from typing import Any

from vpo.core.intervals import Interval
from vpo.evaluation.number_text import interval_text, number_text


def markdown(tables: Sequence[Mapping[str, Any]]) -> str:
    """Tables, as `vpo.report.page_tables` makes them, each under its title."""
    return "\n\n".join(f"### {table['title']}\n\n{_table(table['head'], table['rows'])}" for table in tables) + "\n"


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = [head, ["---"] * len(head), *([_cell(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(cell: Any) -> str:
    if cell is None:
        return "–"
    if isinstance(cell, float):
        return number_text(cell, ".4f")
    if isinstance(cell, int):
        return f"{cell:,}"
    if not isinstance(cell, Mapping):
        return str(cell)
    interval = Interval(cell["mean"], cell["low"], cell["high"])
    return interval_text(interval, ".4f") + (" *" if cell["certain"] else "")
