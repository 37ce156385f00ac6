"""best@k and pass@k curves with their bands, by answers, by generations and by tokens."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vpo.evaluation.budgets import Budgets, fewest_answers, fewest_generations, has_tokens, spaced, token_range
from vpo.evaluation.compare import Comparison
from vpo.evaluation.intervals import intervals
from vpo.evaluation.measure import mean_table, measure_at_budgets
from vpo.evaluation.metrics import BEST, Budget
from vpo.evaluation.pools import Pool
from vpo.util.files import replacing
from vpo.util.packages import require

POINTS = 40  # of a curve, at most


@dataclass(frozen=True)
class Curve:
    """best@k or pass@k of one group of pools by one kind of budget: the mean over problems, and its 95% interval."""

    by: Budget
    budgets: tuple[int, ...]
    mean: tuple[float, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]


def curves_of(comparison: Comparison, name: str = BEST) -> list[list[Curve]]:
    """The curves of each group of a comparison, over the problems that all pools share.

    Args:
        comparison: of the pools.
        name: of the metric, BEST or PASS; a group whose pools do not say what is solved has no curves of pass@k.
    """
    return [_curves(group, comparison.problems, comparison.target, name) for group in comparison.groups]


def _curves(group: Sequence[Pool], names: Sequence[str], target: Mapping[str, float] | None, name: str) -> list[Curve]:
    """The curves of one group of pools, each up to the last of their own answers."""
    problems = [pool.problems[each] for pool in group for each in names]
    budgets = Budgets(
        answers=_steps(fewest_answers(problems)),
        generations=_steps(fewest_generations(problems)),
        tokens=spaced(*token_range(problems), POINTS) if has_tokens(problems) else (),
    )
    table = mean_table([measure_at_budgets(name, pool, names, target, budgets) for pool in group])
    values = intervals(table, dict.fromkeys(table, (0.0, 1.0)))
    curves = []
    for by in Budget:
        points = [(metric.k, value) for metric, value in values.items() if metric.budget == by and metric.k is not None]
        if points:
            ks, bounds = zip(*points, strict=True)
            columns = [tuple(getattr(value, part) for value in bounds) for part in ("mean", "low", "high")]
            curves.append(Curve(by, ks, *columns))
    return curves


def _steps(most: int) -> tuple[int, ...]:
    """Budgets from 1 to the most, all of them or evenly spaced in the logarithm."""
    return tuple(sorted({*spaced(1, most, POINTS), *range(1, min(most, POINTS) + 1)}))


def draw_curves(
    comparison: Comparison,
    curves: Sequence[Sequence[Curve]],
    names: Sequence[str],
    files: Sequence[Path],
    oracle: float | None,
) -> None:
    """Draw the curves of all pools into .png and .svg files.

    Args:
        comparison: of the pools.
        curves: of each of them, from `curves_of`.
        names: of the pools.
        files: to write.
        oracle: the best possible score, averaged over the problems, where it is known.
    """
    matplotlib = require("matplotlib", "a plot", extra="report")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    shown = [by for by in Budget if all(any(curve.by == by for curve in each) for each in curves)]
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "vpo", "font.size": 9}):
        figure = Figure(figsize=(4.2 * len(shown), 3.6), layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0]
        for panel, by in zip(panels, shown, strict=True):
            _draw_panel(panel, by, curves, names, oracle)
        panels[0].set_ylabel("expected best score, w*·r")
        panels[-1].legend(frameon=False, loc="lower right")
        figure.suptitle(f"best@k over {len(comparison.problems)} problems; bands: 95% interval over problems")
        for file in files:
            form = file.suffix[1:]
            with replacing(file) as temporary:
                metadata = {"Date": None} if form == "svg" else None
                figure.savefig(temporary, format=form, dpi=150, metadata=metadata)


def _draw_panel(
    panel: Any, by: Budget, curves: Sequence[Sequence[Curve]], names: Sequence[str], oracle: float | None
) -> None:
    from matplotlib.ticker import LogLocator

    for index, (name, each) in enumerate(zip(names, curves, strict=True)):
        (curve,) = [curve for curve in each if curve.by == by]
        colour = f"C{index}"
        marker = "o" if len(curve.budgets) == 1 else None
        panel.plot(curve.budgets, curve.mean, color=colour, label=name, marker=marker)
        if curve.low[0] is not None:
            panel.fill_between(curve.budgets, curve.low, curve.high, color=colour, alpha=0.15, linewidth=0)
    if oracle is not None:
        panel.axhline(oracle, color="0.4", linestyle=":", linewidth=1, label="oracle")
    panel.set_xscale("log")
    panel.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if by == Budget.TOKENS else (1, 3)))
    panel.xaxis.set_major_formatter("{x:g}")
    panel.xaxis.set_minor_formatter("")
    panel.set_xlabel(by)
    panel.grid(alpha=0.25, linewidth=0.5)
    panel.spines[["top", "right"]].set_visible(False)
