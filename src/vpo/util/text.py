"""Text for terminals."""

from collections.abc import Sequence


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines with the columns of the rows aligned. A row of one cell is a title: it sets no width."""
    tabular = [row for row in rows if len(row) > 1]
    widths = [max(len(row[column]) for row in tabular) for column in range(len(tabular[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip() for row in rows]
