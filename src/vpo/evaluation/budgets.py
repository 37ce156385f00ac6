"""The budgets at which pools are measured: those that every problem of every pool can serve."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vpo.core.checks import as_integer
from vpo.evaluation.pools import Pool, ProblemPool
from vpo.util.errors import InputError

DEFAULT_KS = (1, 3, 5, 10, 30, 100, 300)
TOKEN_BUDGETS = 5


@dataclass(frozen=True)
class Grid:
    """The budgets to report, the same for all pools."""

    answers: tuple[int, ...]
    generations: tuple[int, ...]
    tokens: tuple[int, ...]
    texts: bool = False  # whether all pools have the answers' texts


def shared_problems(pools: Sequence[Pool]) -> tuple[list[str], list[str]]:
    """Return the problems that all pools have, and notes on those that are left out."""
    names = [name for name in pools[0].problems if all(name in pool.problems for pool in pools)]
    if not names:
        raise InputError(f"the pools must share problems, and {' and '.join(pool.path for pool in pools)} share none")
    for pool in pools[1:]:
        for name in names:
            ours, theirs = pools[0].problems[name].objectives, pool.problems[name].objectives
            if set(ours) != set(theirs):
                raise InputError(
                    f"the pools must have the same objectives: problem {name!r} has {', '.join(ours)} in "
                    f"{pools[0].path} and {', '.join(theirs)} in {pool.path}"
                )
    notes = [
        f"{len(pool.problems) - len(names)} of {len(pool.problems)} problems of {pool.path} are not in every pool "
        f"and are left out"
        for pool in pools
        if len(pool.problems) > len(names)
    ]
    return names, notes


def fit_grid(pools: Sequence[Pool], names: Sequence[str], ks: Sequence[int] | None) -> tuple[Grid, list[str]]:
    """Return the budgets that every problem of every pool can serve, and notes on those that it cannot."""
    shared = [[pool.problems[name] for name in names] for pool in pools]
    everything = [problem for problems in shared for problem in problems]
    smallest = min(everything, key=lambda problem: len(problem.scores_nD))
    fewest, fewest_sets = len(smallest.scores_nD), min(len(problem.set_sizes_N) for problem in everything)
    for k in () if ks is None else ks:
        if not 1 <= as_integer(k, "k") <= fewest:
            raise InputError(f"k must lie in 1..{fewest}, the answers of the smallest problem, not {k}")
    notes = []
    if fewest < max(len(problem.scores_nD) for problem in everything):
        notes.append(f"k ends at {fewest}, the answers of problem {smallest.problem!r}; others have more")
    for pool, problems in zip(pools, shared, strict=True):
        if missing := sum(problem.missing for problem in problems):
            notes.append(f"{missing} answers missing from their sets in {pool.path} count as zeros")
        if pool.set_size is None:
            notes.append(f"first and set are not reported for {pool.path}: its generations differ in their answers")
    untold = [pool.path for pool, problems in zip(pools, shared, strict=True) if problems[0].tokens_N is None]
    if untold:
        notes.append(f"nothing is reported by tokens: {', '.join(untold)} has no field 'tokens'")
    tokens = () if untold else _token_budgets(shared)
    if not (untold or tokens):
        notes.append("no budget in tokens buys a generation of every pool and is not more than the whole of another")
    wanted = sorted({*DEFAULT_KS, fewest} if ks is None else set(ks))
    wanted_sets = sorted({*DEFAULT_KS, fewest_sets} if ks is None else set(ks))
    if ks is not None and max(ks) > fewest_sets:
        notes.append(f"by generations k ends at {fewest_sets}: no pool can serve more whole ones for every problem")
    grid = Grid(
        answers=tuple(k for k in wanted if k <= fewest),
        generations=tuple(k for k in wanted_sets if k <= fewest_sets),
        tokens=tokens,
        texts=all(problem.answers is not None for problem in everything),
    )
    return grid, notes


def _token_budgets(shared: Sequence[Sequence[ProblemPool]]) -> tuple[int, ...]:
    """Return budgets from one generation of the dearest pool to the whole of the cheapest one."""
    tokens = [[problem.tokens_N for problem in problems if problem.tokens_N is not None] for problems in shared]
    least = max(float(np.mean([each_N.mean() for each_N in each])) for each in tokens)
    most = min(float(np.mean([each_N.sum() for each_N in each])) for each in tokens)
    if least > most:
        return ()
    return tuple(sorted({round(budget) for budget in np.geomspace(least, most, TOKEN_BUDGETS)}))
