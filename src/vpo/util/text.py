"""Text for terminals and messages."""

from collections.abc import Sequence


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines with the columns of the rows aligned. A row of one cell is a title: it sets no width."""
    tabular = [row for row in rows if len(row) > 1]
    widths = [max(len(row[column]) for row in tabular) for column in range(len(tabular[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip() for row in rows]


def excerpt(text: str, longest: int = 400) -> str:
    """A text of a model in one line: its beginning and its end, with control characters escaped."""
    if not text.strip():
        return "(empty)"
    shown = text
    if len(text) > longest:
        half = longest // 2
        shown = f"{text[:half]} … {len(text) - 2 * half:,} characters … {text[-half:]}"
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in shown)


def duration(seconds: float) -> str:
    """A time span in the two units that matter, such as "45 s", "12 min", "3 h 20 min" or "2 d 5 h"."""
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{minutes} min"
    hours = round(seconds / 3600)
    return f"{minutes // 60} h {minutes % 60:02} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"


def listed(words: Sequence[str]) -> str:
    """Words in a sentence, such as "a, b and c"; empty for none."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def counted(count: int, noun: str) -> str:
    """A number with its noun, such as "1 sample" or "1,200 samples"."""
    return f"{count:,} {plural(count, noun)}"


def plural(count: int, noun: str) -> str:
    """A noun as it stands after a number, whose plural ends in s."""
    return noun if count == 1 else f"{noun}s"
