"""What pools give under a budget, with intervals; several pools compared over the same problems.

Three budgets, since a set of m answers is one generation: k answers drawn from the pool; k whole generations
drawn; and tokens, where k generations cost k times the mean tokens of the problem's generations and values in
between are interpolated (no tokens earn 0, and more tokens than the pool holds earn no more than all of it).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from vpo.core.at_k import Interval, best_at_k, best_at_tokens, best_of_set, bootstrap, first
from vpo.core.diversity import diversity
from vpo.core.simplex import Floats
from vpo.errors import InputError
from vpo.pools import Pool, ProblemPool
from vpo.progress import progress
from vpo.targets import weights_for

DEFAULT_KS = (1, 3, 5, 10, 30, 100, 300)
TOKEN_BUDGETS = 5

DIVERSITY = {
    "l1": "mean L1 distance between two answers' scores",
    "distinct": "different answers",
    "nondominated": "answers that no other beats",
    "hypervolume": "volume dominated above −0.1",
    "coverage": "best of each objective, averaged",
    "expected_max": "E_w[max], the set reward of the pool",
}


@dataclass(frozen=True)
class Measure:
    """One number of every pool: a row of the table.

    Attributes:
        section: what it measures, such as "best@k".
        by: the budget it is counted in: "answers", "generations", "tokens" or "".
        at: the budget, or the name of a measure without one.
        values: for each pool the mean over problems with its interval, or None where it cannot be had.
        differences: for each pool its paired difference to the first one, None for the first.
    """

    section: str
    by: str
    at: int | str
    values: tuple[Interval | None, ...]
    differences: tuple[Interval | None, ...]


@dataclass(frozen=True)
class Comparison:
    """All measures of some pools.

    Attributes:
        pools: the pools as read.
        problems: names of the problems that all pools have, over which everything is computed.
        target: the weighting, or None for the uniform one.
        measures: the rows of the table.
        notes: what the reader should know: what was left out, and why.
    """

    pools: tuple[Pool, ...]
    problems: tuple[str, ...]
    target: Mapping[str, float] | None
    measures: tuple[Measure, ...]
    notes: tuple[str, ...]


def compare(
    pools: Sequence[Pool],
    *,
    target: Mapping[str, float] | None = None,
    ks: Sequence[int] | None = None,
) -> Comparison:
    """Measure one pool, or several over the problems that they share.

    Args:
        pools: what `vpo.pools.read_pool` returned.
        target: w*, objective → weight, of sum 1; objectives not named weigh 0. Uniform by default.
        ks: budgets in answers, and in generations where there are as many. 1, 3, 5, 10, … by default.
    """
    names, notes = _shared_problems(pools)
    grid, more = _fit_grid(pools, names, ks)
    tables = [_measure_pool(pool, names, target, grid) for pool in pools]
    keys = list(dict.fromkeys(key for table in tables for key in table))

    def intervals(table: _Table) -> dict[_Key, Interval]:
        """Return the interval of every column, all from the same resamples."""
        if not table:
            return {}
        matrix_PQ = np.column_stack(list(table.values()))
        if len(matrix_PQ) < 2:
            return {key: Interval(float(column[0]), None, None) for key, column in table.items()}
        result = bootstrap(matrix_PQ)
        triples = zip(result.mean, result.low, result.high, strict=True)
        return {key: Interval(*map(float, triple)) for key, triple in zip(table, triples, strict=True)}

    base = tables[0]
    values = [intervals(table) for table in tables]
    changes = [
        intervals({key: table[key] - base[key] for key in keys if key in table and key in base}) for table in tables
    ]
    measures = [
        Measure(
            *key,
            values=tuple(value.get(key) for value in values),
            differences=(None, *(change.get(key) for change in changes[1:])),
        )
        for key in keys
    ]
    return Comparison(tuple(pools), tuple(names), target, tuple(measures), (*notes, *more))


_Key: TypeAlias = tuple[str, str, int | str]
_Table: TypeAlias = dict[_Key, Floats]


@dataclass(frozen=True)
class _Grid:
    """The budgets to report, the same for all pools."""

    answers: tuple[int, ...]
    generations: tuple[int, ...]
    tokens: tuple[int, ...]


def _shared_problems(pools: Sequence[Pool]) -> tuple[list[str], list[str]]:
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


def _fit_grid(pools: Sequence[Pool], names: Sequence[str], ks: Sequence[int] | None) -> tuple[_Grid, list[str]]:
    """Return the budgets that every problem of every pool can serve, and notes on those that it cannot."""
    shared = [[pool.problems[name] for name in names] for pool in pools]
    fewest = min(len(problem.scores_nD) for problems in shared for problem in problems)
    fewest_sets = min(len(problem.set_sizes_N) for problems in shared for problem in problems)
    for k in ks or ():
        if not 1 <= k <= fewest:
            raise InputError(f"k must lie in 1..{fewest}, the answers of the smallest problem, not {k}")
    wanted = sorted(set(ks or DEFAULT_KS))
    notes = []
    for pool, problems in zip(pools, shared, strict=True):
        if missing := sum(problem.missing for problem in problems):
            notes.append(f"{missing} answers missing from their sets in {pool.path} count as zeros")
        if pool.set_size is None:
            notes.append(f"first and set are not reported for {pool.path}: its generations differ in their answers")
    untold = [pool.path for pool, problems in zip(pools, shared, strict=True) if problems[0].tokens_N is None]
    if untold:
        notes.append(f"nothing is reported by tokens: {', '.join(untold)} has no field 'tokens'")
    grid = _Grid(
        answers=tuple(k for k in wanted if k <= fewest),
        generations=tuple(k for k in wanted if k <= fewest_sets),
        tokens=() if untold else _token_budgets(shared),
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


def _measure_pool(pool: Pool, names: Sequence[str], target: Mapping[str, float] | None, grid: _Grid) -> _Table:
    """Return a column of numbers, one per problem, for every measure that the pool allows."""
    rows = [
        _measure_problem(problem, weights_for(target, problem.objectives), grid, pool.set_size is not None)
        for problem in progress([pool.problems[name] for name in names], f"measuring {pool.path}")
    ]
    complete = [key for key in rows[0] if all(key in row for row in rows)]
    return {key: np.asarray([row[key] for row in rows], dtype=np.float64) for key in complete}


def _measure_problem(problem: ProblemPool, weights_D: Floats, grid: _Grid, uniform: bool) -> dict[_Key, float]:
    scores_n = problem.scores_nD @ weights_D
    row = _at_budgets("best@k", scores_n, problem, grid)
    if problem.solved_n is not None:
        row |= _at_budgets("pass@k", problem.solved_n.astype(np.float64), problem, grid)
    if uniform:
        scores_NM = scores_n.reshape(len(problem.set_sizes_N), -1)
        row["one generation", "", "first"] = float(first(scores_NM))
        row["one generation", "", "set"] = float(best_of_set(scores_NM))
    measured = diversity(problem.scores_nD)
    for name in DIVERSITY:
        if (value := getattr(measured, name)) is not None:
            row["diversity", "", name] = float(value)
    if problem.answers is not None:
        row["diversity", "", "distinct"] = len({text for text in problem.answers if text is not None})
    return row


def _at_budgets(section: str, scores_n: Floats, problem: ProblemPool, grid: _Grid) -> dict[_Key, float]:
    starts = np.cumsum([0, *problem.set_sizes_N[:-1]])
    best_N = np.maximum.reduceat(scores_n, starts)
    row: dict[_Key, float] = {}
    for k, value in zip(grid.answers, best_at_k(scores_n, grid.answers), strict=True):
        row[section, "answers", k] = float(value)
    for k, value in zip(grid.generations, best_at_k(best_N, grid.generations), strict=True):
        row[section, "generations", k] = float(value)
    if grid.tokens and problem.tokens_N is not None:
        for budget, value in zip(grid.tokens, best_at_tokens(best_N, problem.tokens_N, grid.tokens), strict=True):
            row[section, "tokens", budget] = float(value)
    return row
