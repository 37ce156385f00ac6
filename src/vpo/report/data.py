"""What the page shows, as plain data: curves, fronts, positions, training, a gallery, tables."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from vpo.core.at_k import Interval
from vpo.core.targets import weights_for
from vpo.core.types import Floats
from vpo.evaluation.evaluations import Evaluation, has_own, task_of
from vpo.evaluation.measure import ORACLE, Comparison, Key, Measure
from vpo.evaluation.pools import ProblemPool
from vpo.evaluation.tables import target_text, title_of
from vpo.report.curves import Curve
from vpo.tasks import Task
from vpo.training.costs import Cost, cost_of
from vpo.training.runs import Run
from vpo.util.errors import InputError

MIXES = np.linspace(0.02, 0.98, 25)  # of two objectives; not 0 and 1, where the other one would not break ties
STEPS_SHOWN = 100
GALLERY = 8
SUMMARY: list[Key] = [("best@k", "answers", k) for k in (1, 3, 5, 10, 30)]
SUMMARY += [("one generation", "", "first"), ("one generation", "", "set")]
SUMMARY += [("diversity", "", "l1"), ("diversity", "", "coverage"), (ORACLE, "answers", 30)]


def page_data(
    comparison: Comparison,
    curves: Sequence[Sequence[Curve]],
    evaluations: Sequence[Sequence[Evaluation]],
    names: Sequence[str],
    title: str,
    command: str,
) -> dict[str, Any]:
    """Return the data of the page of a comparison.

    Args:
        comparison: what was measured.
        curves: its best@k curves, from `curves_of`.
        evaluations: of the same groups of pools, in the same order.
        names: of the groups.
        title: of the page.
        command: what makes the page.
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
                "curves": [asdict(curve) for curve in curves[place]],
                "positions": _positions(pools[place], objectives, comparison.target) if objectives else [],
                "training": _training([each.folder for each in evaluations[place] if each.folder]),
            }
            for place, name in enumerate(names)
        ],
        "search": None,
        "fronts": fronts,
        "first_front": _widest(fronts),
        "gallery": _gallery(comparison, [group[0] for group in evaluations], objectives) if objectives else [],
        "tables": [*_tables(comparison, names), *_cost_table(costs_of(evaluations, names))],
        "notes": list(comparison.notes),
        "commands": list(dict.fromkeys([*(line for each in flat for line in each.commands()), command])),
        "figure_commands": dict.fromkeys(("best", "front", "positions", "training", "gallery", "tables"), command),
    }


def costs_of(evaluations: Sequence[Sequence[Evaluation]], names: Sequence[str]) -> dict[str, Cost | None]:
    """Return what an average run of each group took to train, None for what was not trained."""
    folders = [[each.folder for each in group if each.folder] for group in evaluations]
    return {name: cost_of(group) for name, group in zip(names, folders, strict=True)}


def _cost_table(costs: Mapping[str, Cost | None]) -> list[dict[str, Any]]:
    rows = [
        [name, round(cost.rollouts), round(cost.tokens), round(cost.seconds, 1)] for name, cost in costs.items() if cost
    ]
    head = ["run", "rollouts", "tokens", "seconds"]
    return [{"title": "Cost of training, of an average run", "head": head, "rows": rows}] if rows else []


def _front(pair: tuple[str, str], pools: Sequence[Sequence[ProblemPool]]) -> dict[str, Any]:
    """Return, for each pool, the mean scores of the answers that are best under mixes of two objectives."""
    runs = []
    for problems in pools:
        points_TP2 = np.stack([_best_under_mixes(problem, pair) for problem in problems], axis=1)
        runs.append(points_TP2.mean(axis=1).tolist())
    return {"objectives": list(pair), "runs": runs}


def _best_under_mixes(problem: ProblemPool, pair: tuple[str, str]) -> Floats:
    """Return the two scores of the best answer under each mix, (T, 2)."""
    scores_n2 = _ordered(problem, pair)
    best_T = (scores_n2 @ np.stack([MIXES, 1 - MIXES])).argmax(axis=0)
    found: Floats = scores_n2[best_T]
    return found


def _widest(fronts: Sequence[Mapping[str, Any]]) -> int:
    """Return the place of the pair of objectives between which there is most to choose."""
    spans = [np.ptp(np.asarray(front["runs"]).reshape(-1, 2), axis=0).prod() for front in fronts]
    return int(np.argmax(spans)) if spans else 0


def _ordered(problem: ProblemPool, objectives: Sequence[str]) -> Floats:
    """Return the scores of a problem's answers in an order of the objectives, (n, D): pools may differ in theirs."""
    found: Floats = problem.scores_nD[:, [problem.objectives.index(name) for name in objectives]]
    return found


def _positions(
    problems: Sequence[ProblemPool], objectives: Sequence[str], target: Mapping[str, float] | None
) -> list[dict[str, Any]]:
    """Return, for each position of a set, the mean of each objective and how often it is the best of its set."""
    sizes = {size for problem in problems for size in problem.set_sizes_N}
    if len(sizes) != 1:
        return []
    (size,) = sizes
    scores_nMD = np.concatenate(
        [_ordered(problem, objectives).reshape(-1, size, len(objectives)) for problem in problems]
    )
    values_nM = scores_nMD @ weights_for(target, objectives)
    best_nM = values_nM >= values_nM.max(axis=1, keepdims=True) - 1e-9
    wins_M = (best_nM / best_nM.sum(axis=1, keepdims=True)).mean(axis=0)  # those that are equally good share it
    return [{"mean": scores_nMD[:, place].mean(axis=0).tolist(), "wins": float(wins_M[place])} for place in range(size)]


def _training(folders: Sequence[Path]) -> dict[str, list[float | None]]:
    """Return the metrics of training worth a curve, averaged over runs, and over steps where there are many."""
    runs = [Run(folder).steps() for folder in folders if Run(folder).metrics.is_file()]
    steps = min((len(rows) for rows in runs), default=0)
    if not steps:
        return {}
    names = [name for name in runs[0][0] if name.startswith("vpo/objective/")]
    names += ["vpo/set_reward", "vpo/target", "vpo/diversity", "entropy"]
    bins = np.array_split(np.arange(steps), min(STEPS_SHOWN, steps))

    def curve(name: str) -> list[float | None]:
        return [_mean([rows[at].get(name) for rows in runs for at in each]) for each in bins]

    found = {name.removeprefix("vpo/").removeprefix("objective/").replace("_", " "): curve(name) for name in names}
    return {
        "step": curve("step"),
        **{name: values for name, values in found.items() if any(v is not None for v in values)},
    }


def _mean(values: Sequence[float | None]) -> float | None:
    """Return the mean of the finite numbers; None where there are none, as after a loss that ran away."""
    finite = [value for value in values if value is not None and math.isfinite(value)]
    return round(float(np.mean(finite)), 5) if finite else None


def _gallery(
    comparison: Comparison, evaluations: Sequence[Evaluation], objectives: Sequence[str]
) -> list[dict[str, Any]]:
    """Return some problems with the answers of the first pool of each group, and how to draw them if the task can."""
    pools = [[pool.problems[name] for name in comparison.problems[:GALLERY]] for pool in comparison.pools]
    if all(problem.answers is None for problems in pools for problem in problems):
        return []  # these pools have no texts
    task, known = _drawable(evaluations)
    scenes = []
    for place, name in enumerate(comparison.problems[:GALLERY]):
        problem = known.get(name)
        drawn = task.scene(problem) if task and problem is not None else None
        trace = partial(task.trace, problem) if task and drawn else None
        runs = [_answers(problems[place], objectives, comparison.target, trace) for problems in pools]
        scenes.append({"problem": name, "svg": drawn, "runs": runs})
    return scenes


def _drawable(evaluations: Sequence[Evaluation]) -> tuple[Task[Any] | None, dict[str, Any]]:
    """Return the task of the first evaluation whose problems can be drawn, and those by name."""
    for each in evaluations:
        task = task_of(each) if has_own(each, "scene") else None
        if task is not None:
            try:
                problems = task.problems(each.facts["split"], count=each.facts["problems"])
            except InputError:  # its data is gone
                continue
            return task, {problem.id: problem for problem in problems}
    return None, {}


def _answers(
    problem: ProblemPool,
    objectives: Sequence[str],
    target: Mapping[str, float] | None,
    trace: Callable[[str], str] | None,
) -> list[dict[str, Any]]:
    """Return the answers to a problem with their scores, and lines over its scene."""
    scores_nD = _ordered(problem, objectives)
    values_n = scores_nD @ weights_for(target, objectives)
    texts = problem.answers or (None,) * len(values_n)
    return [
        {
            "text": text,
            "value": round(value, 5),
            "scores": [round(score, 5) for score in scores],
            "path": trace(text) if trace and text is not None else "",
        }
        for text, value, scores in zip(texts, values_n.tolist(), scores_nD.tolist(), strict=True)
    ]


def _tables(comparison: Comparison, names: Sequence[str]) -> list[dict[str, Any]]:
    by_key = {(each.section, each.by, each.at): each for each in comparison.measures}
    shown = [key for key in SUMMARY if key in by_key]
    pairs = [f"{names[a]} − {names[b]}" for a, b in comparison.pairs]
    tables = [
        {
            "title": "Runs",
            "head": ["run", *(_short(by_key[key]) for key in shown)],
            "rows": [[name, *(_cell(by_key[key].values[run]) for key in shown)] for run, name in enumerate(names)],
        },
        {
            "title": "Every measure",
            "head": ["measure", "at", *names],
            "rows": [[title_of(each), str(each.at), *map(_cell, each.values)] for each in comparison.measures],
        },
    ]
    if pairs:
        tables.append(
            {
                "title": "Differences, paired over problems",
                "head": ["measure", "at", *pairs],
                "rows": [
                    [title_of(each), str(each.at), *(_cell(change, mark=True) for change in each.differences)]
                    for each in comparison.measures
                ],
            }
        )
    return tables


def _short(measure: Measure) -> str:
    names = {"best@k": f"best@{measure.at}", ORACLE: f"oracle share @{measure.at}"}
    return names.get(measure.section, str(measure.at))


def _cell(value: Interval | None, *, mark: bool = False) -> dict[str, Any] | None:
    if value is None:
        return None
    return {**asdict(value), "certain": mark and value.certain}


def seed_table(seeds: Mapping[str, Sequence[Sequence[Mapping[str, Any]]]], pools: int = 1) -> dict[str, Any]:
    """Return a table with a row for each pool of each seed of each run.

    Args:
        seeds: for each run, for each seed and each of its pools, the measures: section, by, at and mean.
        pools: of each seed.
    """
    found = [
        (
            [name, place // pools + 1, *([place % pools + 1] if pools > 1 else [])],
            {(each["section"], each["by"], each["at"]): each["mean"] for each in measures},
        )
        for name, group in seeds.items()
        for place, measures in enumerate(group)
    ]
    shown = [key for key in SUMMARY if all(key in means for _, means in found)]
    head = ["run", "seed", *(["pool"] if pools > 1 else [])]
    return {
        "title": "Every seed" if pools == 1 else "Every seed, and every pool drawn of it",
        "head": [*head, *(_short(Measure(*key, values=(), differences=())) for key in shown)],
        "rows": [[*name, *(means[key] for key in shown)] for name, means in found],
    }


def rate_table(rates: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return a table of what each learning rate got on the validation problems, and which was chosen."""
    tried = list(dict.fromkeys(rate for each in rates.values() for rate in each["validation"]))
    return {
        "title": "Learning rates, by the mean of best@k on validation problems",
        "head": ["method", "chosen", *(f"{rate:g}" for rate in tried)],
        "rows": [
            [name, f"{each['rate']:g}", *(each["validation"].get(rate) for rate in tried)]
            for name, each in rates.items()
        ],
    }
