"""The data of the page of a comparison: head, curves, gallery, fronts, positions, cost, training, tables."""

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
from vpo.evaluation.eval_folder import Evaluation
from vpo.evaluation.metrics import PASS
from vpo.evaluation.pools import ProblemPool
from vpo.evaluation.untrained import untrained_groups
from vpo.report.curves import curves_of
from vpo.report.gallery import gallery_of
from vpo.report.page_cost import cost_cards
from vpo.report.page_head import page_facts, page_title
from vpo.report.page_tables import comparison_tables, cost_table, costs_of
from vpo.training.runs import Run, has_log

MIXES = np.linspace(0.02, 0.98, 25)  # of two objectives; not 0 and 1, where the other one would not break ties
SEEN = 0.005  # a smaller difference of scores is not seen on a plot
STEPS_SHOWN = 200


def page_data(
    comparison: Comparison,
    evaluations: Sequence[Sequence[Evaluation]],
    names: Sequence[str],
    command: str,
    *,
    verdict: str = "",
    title: str | None = None,
    oracle: float | None = None,
) -> dict[str, Any]:
    """The data of the page, as JSON.

    Args:
        comparison: of groups of pools.
        evaluations: of the same pools, in the same order.
        names: of the groups.
        command: that makes the page.
        verdict: the sentences that stand first, from `vpo.evaluation.verdict`.
        title: of the page; by default the task and the names.
        oracle: the best possible score, averaged over the problems, where it is known.
    """
    objectives = comparison.pools[0].objectives or ()
    flat = [each for group in evaluations for each in group]
    pools = [[pool.problems[name] for pool in group for name in comparison.problems] for group in comparison.groups]
    fronts = [_front(pair, pools) for pair in combinations(objectives, 2)]
    trade_offs = [trade_off(front) for front in fronts]
    best, passed = curves_of(comparison), curves_of(comparison, PASS)
    costs = costs_of(evaluations, names)
    untrained = untrained_groups(evaluations, names)
    return {
        "title": title or page_title(evaluations, names),
        "verdict": verdict,
        "facts": page_facts(comparison, evaluations),
        "objectives": list(objectives),
        "oracle": oracle,
        "runs": [
            {
                "name": name,
                "untrained": run in untrained,
                "curves": [asdict(curve) for curve in best[run]],
                "passes": [asdict(curve) for curve in passed[run]],
                "positions": positions_of(pools[run], objectives, comparison.target) if objectives else [],
                "training": training_curves([each.folder for each in evaluations[run] if each.folder]),
            }
            for run, name in enumerate(names)
        ],
        "search": None,
        "fronts": fronts,
        "first_front": int(np.argmax(trade_offs)) if fronts else 0,
        "trade_off": max(trade_offs, default=0.0) > 0,
        "gallery": gallery_of(comparison, [group[0] for group in evaluations]),
        "cards": cost_cards(comparison, evaluations, names, costs, untrained),
        "tables": [*comparison_tables(comparison, names), *cost_table(costs)],
        "notes": list(comparison.notes),
        "commands": list(dict.fromkeys([*(line for each in flat for line in each.commands()), command])),
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


def trade_off(front: Mapping[str, Any]) -> float:
    """How much one run gives up on one objective for the other, at most: the area that its front spans.

    Differences between runs do not count: where each run is a point, nothing is given up.
    """
    spans = [np.ptp(np.asarray(points), axis=0) for points in front["runs"]]
    return max(float(span.prod()) if span.min() >= SEEN else 0.0 for span in spans)


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
