"""The data of the page of a comparison: curves, fronts, positions, training, a gallery, tables."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from vpo.core.targets import weights_for
from vpo.core.types import Floats
from vpo.evaluation.compare import Comparison
from vpo.evaluation.comparison_text import target_text
from vpo.evaluation.eval_folder import Evaluation
from vpo.evaluation.pools import ProblemPool
from vpo.report.curves import Curve
from vpo.report.gallery import gallery_of
from vpo.report.page_tables import comparison_tables, cost_table, costs_of
from vpo.training.runs import Run, has_log

MIXES = np.linspace(0.02, 0.98, 25)  # of two objectives; not 0 and 1, where the other one would not break ties
STEPS_SHOWN = 100


def page_data(
    comparison: Comparison,
    curves: Sequence[Sequence[Curve]],
    evaluations: Sequence[Sequence[Evaluation]],
    names: Sequence[str],
    title: str,
    command: str,
) -> dict[str, Any]:
    """The data of the page, as JSON.

    Args:
        comparison: of groups of pools.
        curves: its best@k curves, from `curves_of`.
        evaluations: of the same pools, in the same order.
        names: of the groups.
        title: of the page.
        command: that makes the page.
    """
    objectives = comparison.pools[0].objectives or ()
    flat = [each for group in evaluations for each in group]
    pools = [[pool.problems[name] for pool in group for name in comparison.problems] for group in comparison.groups]
    fronts = [_front(pair, pools) for pair in combinations(objectives, 2)]
    return {
        "title": title,
        "summary": f"{len(comparison.problems)} problems; target: {target_text(comparison.target)}",
        "objectives": list(objectives),
        "runs": [
            {
                "name": name,
                "curves": [asdict(curve) for curve in curves[run]],
                "positions": positions_of(pools[run], objectives, comparison.target) if objectives else [],
                "training": training_curves([each.folder for each in evaluations[run] if each.folder]),
            }
            for run, name in enumerate(names)
        ],
        "search": None,
        "fronts": fronts,
        "first_front": _widest(fronts),
        "gallery": gallery_of(comparison, [group[0] for group in evaluations], objectives) if objectives else [],
        "tables": [*comparison_tables(comparison, names), *cost_table(costs_of(evaluations, names))],
        "notes": list(comparison.notes),
        "commands": list(dict.fromkeys([*(line for each in flat for line in each.commands()), command])),
        "figure_commands": dict.fromkeys(("best", "front", "positions", "training", "gallery", "tables"), command),
    }


def _front(pair: tuple[str, str], pools: Sequence[Sequence[ProblemPool]]) -> dict[str, Any]:
    """For each group, the mean scores of the answers that are best under mixes of two objectives."""
    runs = []
    for problems in pools:
        points_TP2 = np.stack([_best_under_mixes(problem, pair) for problem in problems], axis=1)
        runs.append(points_TP2.mean(axis=1).tolist())
    return {"objectives": list(pair), "runs": runs}


def _best_under_mixes(problem: ProblemPool, pair: tuple[str, str]) -> Floats:
    """The two scores of the best answer under each mix, (T, 2)."""
    scores_n2 = problem.scores_of(pair)
    best_T = (scores_n2 @ np.stack([MIXES, 1 - MIXES])).argmax(axis=0)
    best_T2: Floats = scores_n2[best_T]
    return best_T2


def _widest(fronts: Sequence[Mapping[str, Any]]) -> int:
    """The index of the pair of objectives whose front spans the largest area."""
    spans = [np.ptp(np.asarray(front["runs"]).reshape(-1, 2), axis=0).prod() for front in fronts]
    return int(np.argmax(spans)) if spans else 0


def positions_of(
    problems: Sequence[ProblemPool], objectives: Sequence[str], target: Mapping[str, float] | None
) -> list[dict[str, Any]]:
    """For each position of a set, the mean of each objective and how often it is the best; none for mixed sizes."""
    sizes = {size for problem in problems for size in problem.set_sizes_N}
    if len(sizes) != 1:
        return []
    (size,) = sizes
    scores_nMD = np.concatenate(
        [problem.scores_of(objectives).reshape(-1, size, len(objectives)) for problem in problems]
    )
    values_nM = scores_nMD @ weights_for(target, objectives)
    best_nM = values_nM >= values_nM.max(axis=1, keepdims=True) - 1e-9
    wins_M = (best_nM / best_nM.sum(axis=1, keepdims=True)).mean(axis=0)  # ties share the win
    means_MD = scores_nMD.mean(axis=0)
    return [{"mean": mean_D.tolist(), "wins": float(wins)} for mean_D, wins in zip(means_MD, wins_M, strict=True)]


def training_curves(folders: Sequence[Path]) -> dict[str, list[float | None]]:
    """Training metrics by step, averaged over runs, and over neighbouring steps where there are many."""
    runs = [Run(folder).steps() for folder in folders if has_log(folder)]
    steps = min((len(rows) for rows in runs), default=0)
    if not steps:
        return {}
    names = [name for name in runs[0][0] if name.startswith("vpo/objective/")]
    names += ["vpo/set_reward", "vpo/target", "vpo/diversity", "entropy"]
    bins = np.array_split(np.arange(steps), min(STEPS_SHOWN, steps))

    def curve(name: str) -> list[float | None]:
        return [_mean([rows[at].get(name) for rows in runs for at in each]) for each in bins]

    curves = {name.removeprefix("vpo/").removeprefix("objective/").replace("_", " "): curve(name) for name in names}
    return {
        "step": curve("step"),
        **{name: values for name, values in curves.items() if any(v is not None for v in values)},
    }


def _mean(values: Sequence[float | None]) -> float | None:
    """The mean of the finite numbers; None where there are none, as after a loss that diverged."""
    finite = [value for value in values if value is not None and math.isfinite(value)]
    return round(float(np.mean(finite)), 5) if finite else None
