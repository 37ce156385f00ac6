"""Comparisons as text for a terminal, and as plain data for JSON."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any

from vpo.core.intervals import Interval
from vpo.evaluation.compare import Comparison, MetricRow
from vpo.evaluation.eval_folder import POOL
from vpo.evaluation.metrics import DIVERSITY, MEANINGS, ONE_GENERATION, ORACLE_SHARE, PASS, Budget
from vpo.evaluation.number_text import interval_text, number_text
from vpo.util.files import storable
from vpo.util.row_files import without_suffix
from vpo.util.text import aligned

# Up to this many pools have a column each in a short table; more have a row each.
FEW = 3
# Metrics that a short table leaves out.
DETAILS = {PASS, *DIVERSITY} - {"l1", "coverage"}


def comparison_data(comparison: Comparison) -> dict[str, Any]:
    """The fields of comparison.json."""
    return {
        "pools": [
            {
                "path": pool.path,
                "problems": len(pool.problems),
                "answers_per_generation": pool.set_size,
                "objectives": pool.objectives,
            }
            for pool in comparison.pools
        ],
        "problems": len(comparison.problems),
        "target": comparison.target,
        "pairs": comparison.pairs,
        "measures": [_row_data(row) for row in comparison.rows],
        "notes": comparison.notes,
    }


def _row_data(row: MetricRow) -> dict[str, Any]:
    return {
        **row.metric.data(),
        "values": [value and asdict(value) for value in row.values],
        "differences": [difference and asdict(difference) for difference in row.differences],
    }


def comparison_text(comparison: Comparison, *, brief: bool = False, names: Sequence[str] | None = None) -> str:
    """A comparison as a table. Where every generation has one answer, what repeats the lines by answers is left out.

    Args:
        comparison: to show.
        brief: leave out pass@k and most of diversity; many pools have a row each.
        names: of the pools; by default their files or folders.
    """
    names = names or short_names(comparison)
    rows = [row for row in comparison.rows if not (brief and row.metric.name in DETAILS)]
    if all(pool.set_size == 1 for pool in comparison.pools):
        rows = [
            row for row in rows if row.metric.budget != Budget.GENERATIONS and row.metric.name not in ONE_GENERATION
        ]
    table = _pools_as_rows if brief and len(names) > FEW else _pools_as_columns
    lines = [_summary(comparison), "", *table(comparison, rows, names)]
    return "\n".join([*lines, *(f"note: {note}" for note in comparison.notes)])


def short_names(comparison: Comparison) -> list[str]:
    """The names of the files, or of the folders of runs, where they tell the pools apart, else the paths."""
    paths = [Path(pool.path) for pool in comparison.pools]
    names = [path.parent.name if path.name == POOL else without_suffix(path.name) for path in paths]
    if len(set(names)) < len(names):
        names = [str(path) for path in paths]
    names = [storable(name) for name in names]  # the name of a file may be any bytes
    return names if len(set(names)) == len(names) else [f"{number}: {name}" for number, name in enumerate(names, 1)]


def target_text(target: Mapping[str, float] | None) -> str:
    """A weighting of the objectives in words."""
    return ", ".join(f"{name} {weight:.3g}" for name, weight in target.items()) if target else "all objectives alike"


def _summary(comparison: Comparison) -> str:
    sizes = sorted({pool.set_size or 0 for pool in comparison.pools})
    sets = " and ".join("mixed" if size == 0 else str(size) for size in sizes)
    return (
        f"{len(comparison.problems)} problems; answers per generation: {sets}; target: {target_text(comparison.target)}"
    )


def _pools_as_columns(comparison: Comparison, rows: Sequence[MetricRow], names: Sequence[str]) -> list[str]:
    """A row per metric, a column per pool and per difference."""
    pairs = [f"{names[a]} − {names[b]}" for a, b in comparison.pairs]
    if len(pairs) > 1:  # side by side they would be too wide
        lines = [*_sections(rows, names, _value_cells), "", "Differences, paired over problems", ""]
        lines += [*_sections(rows, pairs, _difference_cells), ""]
    else:
        lines = [*_sections(rows, [*names, *pairs], lambda row: [*_value_cells(row), *_difference_cells(row)]), ""]
    lines += _meanings(rows)
    if len(comparison.problems) > 1:
        lines.append(f"[low, high]: 95% interval over the {len(comparison.problems)} problems")
    if len(names) > 1:
        lines.append("*: paired over these problems, the interval of the difference excludes 0")
    return lines


def _pools_as_rows(comparison: Comparison, rows: Sequence[MetricRow], names: Sequence[str]) -> list[str]:
    """A row per pool, a column per metric: the means, and their differences from the first pool."""
    shown = [row for row in rows if row.metric.budget in (Budget.ANSWERS, None)]
    most = max(row.metric.k or 0 for row in shown)
    shown = [row for row in shown if row.metric.name != ORACLE_SHARE or row.metric.k == most]
    head = [row.metric.label for row in shown]
    means = [[_mean_cell(row.values[pool]) for row in shown] for pool in range(len(names))]
    changes = [[_change_cell(row.differences[pool]) for row in shown] for pool in range(len(names) - 1)]
    table = [["", *head], *([name, *cells] for name, cells in zip(names, means, strict=True)), []]
    table += [[f"less {names[0]}", *head], *([name, *cells] for name, cells in zip(names[1:], changes, strict=True))]
    count = len(comparison.problems)
    explained = f"*: paired over the {count} problems, the 95% interval of the difference excludes 0"
    return [*aligned(table), "", *_meanings(shown), explained]


def _sections(rows: Sequence[MetricRow], names: Sequence[str], cells: Callable[[MetricRow], list[str]]) -> list[str]:
    """The rows under the titles of their metrics."""
    table: list[list[str]] = [["", *names]]
    for title, section in groupby(rows, key=lambda row: row.metric.title):
        table += [[], [title], *([f"  {row.metric.at}", *cells(row)] for row in section)]
    return aligned(table)


def _meanings(rows: Sequence[MetricRow]) -> list[str]:
    return [f"{row.metric.name}: {MEANINGS[row.metric.name]}" for row in rows if row.metric.name in MEANINGS]


def _value_cells(row: MetricRow) -> list[str]:
    return ["–" if value is None else interval_text(value) for value in row.values]


def _difference_cells(row: MetricRow) -> list[str]:
    return ["–" if change is None else interval_text(change, "+.3f") + _mark(change) for change in row.differences]


def _mean_cell(value: Interval | None) -> str:
    return "–" if value is None else number_text(value.mean)


def _change_cell(change: Interval | None) -> str:
    return "–" if change is None else number_text(change.mean, "+.3f") + _mark(change)


def _mark(change: Interval) -> str:
    return " *" if change.certain else ""
