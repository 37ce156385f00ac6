"""Text for terminals."""

from collections.abc import Sequence


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the rows with their columns aligned; a row of one cell is a title and sets no width."""
    wide = [row for row in rows if len(row) > 1]
    widths = [max(len(row[column]) for row in wide) for column in range(len(wide[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip() for row in rows]
