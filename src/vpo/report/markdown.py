"""The tables of the page as Markdown."""

from collections.abc import Mapping, Sequence
from typing import Any


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
        return _number(cell)
    if isinstance(cell, int):
        return f"{cell:,}"
    if not isinstance(cell, Mapping):
        return str(cell)
    bounds = "" if cell["low"] is None else f" [{_number(cell['low'])}, {_number(cell['high'])}]"
    return f"{_number(cell['mean'])}{bounds}" + (" *" if cell["certain"] else "")


def _number(value: float) -> str:
    return f"{value:.4f}".replace("-", "−")
