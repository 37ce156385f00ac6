"""Comparisons as text for a terminal, and as plain data for JSON."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from vpo.core.at_k import Interval
from vpo.evaluation.eval_folder import POOL
from vpo.evaluation.measure import DIVERSITY, ORACLE, Comparison, Measure
from vpo.evaluation.number_text import interval_text, number_text
from vpo.util.row_files import without_form
from vpo.util.text import aligned

MEANINGS = {**DIVERSITY, "first": "answer 1 alone", "set": "best answer of one generation"}


def comparison_data(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison as plain data."""
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
        "measures": [asdict(measure) for measure in comparison.measures],
        "notes": comparison.notes,
    }


# So many pools have a column each in a short table; more have a row each.
FEW = 3
# What a short table leaves out.
DETAILS = {"pass@k", *DIVERSITY} - {"l1", "coverage"}


def comparison_text(comparison: Comparison, *, brief: bool = False, names: Sequence[str] | None = None) -> str:
    """Return a comparison as tables: a row for each measure, a column for each pool and each difference."""
    if brief:
        kept = [each for each in comparison.measures if not {each.section, each.at} & DETAILS]
        comparison = replace(comparison, measures=tuple(kept))
    names = names or short_names(comparison)
    if brief and len(names) > FEW:
        return _runs_as_rows(comparison, names)
    pairs = [f"{names[a]} − {names[b]}" for a, b in comparison.pairs]
    lines = [_summary(comparison), ""]
    if len(pairs) > 1:  # side by side they would be too wide
        lines += [*_table(comparison, names, _values), "", "Differences, paired over problems", ""]
        lines += [*_table(comparison, pairs, _differences), ""]
    else:
        lines += [*_table(comparison, [*names, *pairs], lambda each: [*_values(each), *_differences(each)]), ""]
    lines += [f"{m.at}: {MEANINGS[m.at]}" for m in comparison.measures if m.at in MEANINGS]
    if len(comparison.problems) > 1:
        lines.append("[low, high]: 95% bootstrap interval over problems")
    if len(names) > 1:
        lines.append("*: paired over problems, the interval of the difference excludes 0")
    return "\n".join([*lines, *(f"note: {note}" for note in comparison.notes)])


def short_names(comparison: Comparison) -> list[str]:
    """Return the names of the files, or of the folders of runs, where they tell the pools apart, else the paths."""
    paths = [Path(pool.path) for pool in comparison.pools]
    names = [path.parent.name if path.name == POOL else without_form(path.name) for path in paths]
    if len(set(names)) < len(names):
        names = [str(path) for path in paths]
    return names if len(set(names)) == len(names) else [f"{place}: {name}" for place, name in enumerate(names, 1)]


def title_of(measure: Measure) -> str:
    """Return what a measure measures, and by which budget."""
    return f"{measure.section}, by {measure.by}" if measure.by else measure.section


def _runs_as_rows(comparison: Comparison, names: Sequence[str]) -> str:
    """Return a table with a row for each of many pools: the means, and what they are above or below the first one."""
    shown = [each for each in comparison.measures if each.by in ("answers", "") and each.section != "pass@k"]
    shown = [each for each in shown if each.section != ORACLE or each.at == shown[-1].at]
    head = [f"best@{each.at}" if each.section == "best@k" else _column(each) for each in shown]
    values = [
        [number_text(value.mean, ".3f") if (value := each.values[run]) else "–" for each in shown]
        for run in range(len(names))
    ]
    changes = [[_change(each.differences[run]) for each in shown] for run in range(len(names) - 1)]
    rows = [["", *head], *([name, *row] for name, row in zip(names, values, strict=True)), []]
    rows += [[f"less {names[0]}", *head], *([name, *row] for name, row in zip(names[1:], changes, strict=True))]
    meanings = [f"{each.at}: {MEANINGS[each.at]}" for each in shown if each.at in MEANINGS]
    lines = [_summary(comparison), "", *aligned(rows), "", *meanings]
    lines.append("*: paired over problems, the 95% bootstrap interval of the difference excludes 0")
    return "\n".join([*lines, *(f"note: {note}" for note in comparison.notes)])


def _column(measure: Measure) -> str:
    return f"oracle@{measure.at}" if measure.section == ORACLE else str(measure.at)


def _change(change: Interval | None) -> str:
    if change is None:
        return "–"
    return number_text(change.mean, "+.3f") + (" *" if change.certain else "")


def _table(comparison: Comparison, names: Sequence[str], cells: Callable[[Measure], list[str]]) -> list[str]:
    rows: list[list[str]] = [["", *names]]
    for title, measures in groupby(comparison.measures, key=title_of):
        rows += [[], [title], *([f"  {measure.at}", *cells(measure)] for measure in measures)]
    return aligned(rows)


def _values(measure: Measure) -> list[str]:
    return ["–" if value is None else interval_text(value) for value in measure.values]


def _differences(measure: Measure) -> list[str]:
    cells = []
    for change in measure.differences:
        cells.append("–" if change is None else interval_text(change, "+.3f") + (" *" if change.certain else ""))
    return cells


def target_text(target: Mapping[str, float] | None) -> str:
    """Return a weighting of the objectives in words."""
    return ", ".join(f"{name} {weight:.3g}" for name, weight in target.items()) if target else "all objectives alike"


def _summary(comparison: Comparison) -> str:
    sizes = sorted({pool.set_size or 0 for pool in comparison.pools})
    sets = " and ".join("mixed" if size == 0 else str(size) for size in sizes)
    return (
        f"{len(comparison.problems)} problems; answers per generation: {sets}; target: {target_text(comparison.target)}"
    )
