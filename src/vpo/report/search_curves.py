"""The curves of the page of searches: the best so far, what was solved, and what was spent."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from vpo.core.intervals import Interval
from vpo.core.types import Floats
from vpo.evaluation.intervals import intervals
from vpo.search.result import UNITS, SearchResult, Trajectory

POINTS = 40  # of a curve of what was solved, by answers, generations or tokens
STEPS = 120  # of a curve of the best
ITERATIONS = 60  # of a curve of what was spent


def shared_units(results: Sequence[SearchResult]) -> list[str]:
    """The units of budget that every search counted."""
    return [unit for unit in UNITS if all(unit in each.spent for each in results)]


def most_spent(results: Sequence[SearchResult], unit: str) -> float:
    """The largest budget that every unsolved problem has spent; the largest spent where all are solved.

    A problem for which nothing was generated spent no tokens, and sets no limit.
    """
    unsolved = [each.spent[unit][~np.isfinite(each.solved_at[unit]) & (each.spent[unit] > 0)] for each in results]
    least = [float(spent.min()) for spent in unsolved if len(spent)]
    return max(1.0, min(least) if least else max(float(each.spent[unit].max()) for each in results))


def solved_curves(results: Sequence[SearchResult]) -> list[dict[str, Any]]:
    """For each unit, the share that each search solved within budgets."""
    return [_solved(results, unit) for unit in shared_units(results)]


def _solved(results: Sequence[SearchResult], unit: str) -> dict[str, Any]:
    most = most_spent(results, unit)
    least = min(1.0 if unit != "tokens" else most, *(float(each.solved_at[unit].min()) for each in results))
    budgets = np.unique(np.geomspace(max(1.0, least), most, POINTS).round()).tolist()
    return {"unit": unit, "runs": [_line(budgets, each.curve(unit, budgets)) for each in results]}


def best_curves(results: Sequence[SearchResult]) -> list[dict[str, Any]]:
    """By iterations and by tokens, the best value of each search so far, averaged over the cases."""
    return [
        {"unit": unit, "runs": [_best(results, run, unit) for run in range(len(results))]}
        for unit in shared_units(results)
        if unit in ("iterations", "tokens")
    ]


def _best(results: Sequence[SearchResult], run: int, unit: str) -> dict[str, Any]:
    """The points at which the mean moved, and its start and end; no point where no case has a value yet."""
    result, most = results[run], most_spent([results[run]], unit)
    scored = scored_cases(results) * result.seeds
    moves = [_moves(each, unit) for each, is_scored in zip(result.trajectories, scored, strict=True) if is_scored]
    budgets = np.unique(np.concatenate([[0.0, most], *moves]))
    budgets = budgets[budgets <= most]
    if len(budgets) > STEPS:
        budgets = budgets[np.linspace(0, len(budgets) - 1, STEPS).round().astype(int)]
    values = best_values(results, run, unit, budgets.tolist())
    there = [(budget, value) for budget, value in zip(budgets.tolist(), values, strict=True) if value is not None]
    return _line([budget for budget, _ in there], [value for _, value in there])


def _moves(trajectory: Trajectory, unit: str) -> Floats:
    """What a case had spent at each improvement."""
    best_T = trajectory.best_T
    moves: Floats = trajectory.spent[unit][np.isfinite(best_T) & (best_T != np.concatenate([[np.nan], best_T[:-1]]))]
    return moves


def scored_cases(results: Sequence[SearchResult]) -> list[bool]:
    """Which cases have a scored candidate in every search, and with every seed: only those can be averaged."""
    without = {
        index % len(each.distinct)
        for each in results
        for index, trajectory in enumerate(each.trajectories)
        if np.isnan(trajectory.best_T[-1])
    }
    return [case not in without for case in range(len(results[0].distinct))]


def best_values(
    results: Sequence[SearchResult], run: int, unit: str, budgets: Sequence[float]
) -> list[Interval | None]:
    """The mean of the best value of one search within each budget, with its interval over problems.

    None where no case has a value yet. A case that has none yet, while others have, counts with the least first value
    that any of the searches has for it. So the mean is always over the same cases, and never falls.
    """
    kept = [case for case, is_scored in enumerate(scored_cases(results)) if is_scored]
    if not kept:
        return [None] * len(budgets)
    result, cases = results[run], len(results[run].distinct)
    values = []  # of each problem with each seed, over budgets
    problems = []
    for index in [seed * cases + case for seed in range(result.seeds) for case in kept]:
        values.append(result.trajectories[index].best_within(unit, budgets))
        problems.append(result.problems[index])
    values_NB = np.asarray(values)
    known = {index for index in range(len(budgets)) if np.isfinite(values_NB[:, index]).any()}
    floor_N = np.tile([_first_value(results, case) for case in kept], result.seeds)
    values_NB = np.where(np.isnan(values_NB), floor_N[:, None], values_NB)
    names = list(dict.fromkeys(problems))
    index_N = np.asarray([names.index(problem) for problem in problems])
    means_PB = np.stack([values_NB[index_N == index].mean(axis=0) for index in range(len(names))])
    low, high = min(0.0, float(means_PB.min())), max(1.0, float(means_PB.max()))
    columns = {index: means_PB[:, index] for index in range(len(budgets))}
    means = intervals(columns, dict.fromkeys(columns, (low, high)))
    return [means[index] if index in known else None for index in range(len(budgets))]


def _first_value(results: Sequence[SearchResult], case: int) -> float:
    """The least of the first values that the searches have for a case."""
    firsts = []
    for result in results:
        for index in range(case, len(result.cases), len(result.distinct)):
            best_T = result.trajectories[index].best_T
            firsts.append(best_T[np.isfinite(best_T)][0])
    return float(min(firsts))


def spent_curves(results: Sequence[SearchResult]) -> list[dict[str, Any]]:
    """For each unit but iterations, the total over all cases after each iteration, a mean over seeds."""
    return [
        {"unit": unit, "runs": [_spent(each, unit) for each in results]}
        for unit in shared_units(results)
        if unit != "iterations"
    ]


def _spent(result: SearchResult, unit: str) -> dict[str, Any]:
    last = float(result.spent["iterations"].max())
    iterations = np.unique(np.linspace(0, last, ITERATIONS).round()).tolist()
    totals = (
        np.sum([trajectory.spent_after(unit, iterations) for trajectory in result.trajectories], axis=0) / result.seeds
    )
    return {"budgets": iterations, "mean": np.round(totals, 1).tolist()}


def _line(budgets: Sequence[float], values: Sequence[Interval | None]) -> dict[str, Any]:
    bounds = {name: [getattr(value, name) for value in values] for name in ("mean", "low", "high")}
    return {"budgets": list(budgets), **bounds}
