"""best@k curves with their bands, by answers, by generations and by tokens."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vpo.evaluation.budgets import Grid
from vpo.evaluation.measure import Comparison, curve_table, intervals, mean_table
from vpo.evaluation.pools import Pool
from vpo.util.errors import InputError
from vpo.util.files import replacing

POINTS = 40  # of a curve, at most
BUDGETS = ("answers", "generations", "tokens")


@dataclass(frozen=True)
class Curve:
    """best@k of one group of pools by one kind of budget: the mean over problems, and its 95% interval."""

    by: str
    budgets: tuple[int, ...]
    mean: tuple[float, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]


def curves_of(comparison: Comparison) -> list[list[Curve]]:
    """Return the curves of each group of a comparison, over the problems that all pools share."""
    return [_curves(group, comparison.problems, comparison.target) for group in comparison.groups]


def _curves(group: Sequence[Pool], names: Sequence[str], target: Mapping[str, float] | None) -> list[Curve]:
    """Return the curves of one group of pools, each as far as their own answers reach."""
    problems = [pool.problems[name] for pool in group for name in names]
    tokens: tuple[int, ...] = ()
    if problems[0].tokens_N is not None:
        costs = [problem.tokens_N for problem in problems if problem.tokens_N is not None]
        least, most = (float(np.mean(each)) for each in ([c.mean() for c in costs], [c.sum() for c in costs]))
        tokens = tuple(sorted({round(budget) for budget in np.geomspace(least, most, POINTS)}))
    grid = Grid(
        answers=_steps(min(len(problem.scores_nD) for problem in problems)),
        generations=_steps(min(len(problem.set_sizes_N) for problem in problems)),
        tokens=tokens,
    )
    found = intervals(mean_table([curve_table(pool, names, target, grid) for pool in group]))
    curves = []
    for by in BUDGETS:
        points = [(at, value) for (_, kind, at), value in found.items() if kind == by and isinstance(at, int)]
        if points:
            budgets, values = zip(*points, strict=True)
            columns = [tuple(getattr(value, part) for value in values) for part in ("mean", "low", "high")]
            curves.append(Curve(by, budgets, *columns))
    return curves


def _steps(most: int) -> tuple[int, ...]:
    """Return budgets from 1 to the most, all of them or evenly spread in the logarithm."""
    return tuple(sorted({round(k) for k in np.geomspace(1, most, POINTS)} | set(range(1, min(most, POINTS) + 1))))


def draw_curves(
    comparison: Comparison,
    everything: Sequence[Sequence[Curve]],
    names: Sequence[str],
    files: Sequence[Path],
    oracle: float | None,
) -> None:
    """Draw the curves of all pools into .png and .svg files.

    Args:
        comparison: whose pools are drawn.
        everything: the curves of each of them, from `curves_of`.
        names: of the pools.
        files: to write.
        oracle: the best that any answer could earn, averaged over the problems, where it is known.
    """
    try:
        import matplotlib
    except ImportError:
        raise InputError("pictures need matplotlib: pip install 'vpo[report]'") from None
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator

    kinds = [by for by in BUDGETS if all(any(curve.by == by for curve in curves) for curves in everything)]
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "vpo", "font.size": 9}):
        figure = Figure(figsize=(4.2 * len(kinds), 3.6), layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(1, len(kinds), sharey=True, squeeze=False)[0]
        for panel, by in zip(panels, kinds, strict=True):
            for place, (name, curves) in enumerate(zip(names, everything, strict=True)):
                (curve,) = [each for each in curves if each.by == by]
                colour = f"C{place}"
                marker = "o" if len(curve.budgets) == 1 else None
                panel.plot(curve.budgets, curve.mean, color=colour, label=name, marker=marker)
                if curve.low[0] is not None:
                    panel.fill_between(curve.budgets, curve.low, curve.high, color=colour, alpha=0.15, linewidth=0)
            if oracle is not None:
                panel.axhline(oracle, color="0.4", linestyle=":", linewidth=1, label="oracle")
            panel.set_xscale("log")
            panel.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if by == "tokens" else (1, 3)))
            panel.xaxis.set_major_formatter("{x:g}")
            panel.xaxis.set_minor_formatter("")
            panel.set_xlabel(by)
            panel.grid(alpha=0.25, linewidth=0.5)
            panel.spines[["top", "right"]].set_visible(False)
        panels[0].set_ylabel("expected best score, w*·r")
        panels[-1].legend(frameon=False, loc="lower right")
        figure.suptitle(f"best@k over {len(comparison.problems)} problems; bands: 95% bootstrap interval over problems")
        for file in files:
            kind = file.suffix[1:]
            with replacing(file) as temporary:
                metadata = {"Date": None} if kind == "svg" else None
                figure.savefig(temporary, format=kind, dpi=150, metadata=metadata)
