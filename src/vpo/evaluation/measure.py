"""What pools give under a budget, with intervals; several pools compared over the same problems.

Three budgets, since a set of m answers is one generation: k answers drawn from the pool; k whole generations
drawn; and tokens, where k generations cost k times the mean tokens of the problem's generations and values in
between are interpolated (no tokens earn 0, and more tokens than the pool holds earn no more than all of it).
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from vpo.core.at_k import Interval, best_at_k, best_at_tokens, best_of_set, bootstrap, first
from vpo.core.diversity import diversity
from vpo.core.targets import weights_for
from vpo.core.types import Floats
from vpo.evaluation.budgets import Grid, fit_grid, shared_problems
from vpo.evaluation.pools import Pool, ProblemPool
from vpo.util.errors import InputError
from vpo.util.progress import progress

EACH_WITH_EACH = 3  # so many pools are compared each with each
ORACLE = "share of the oracle"

DIVERSITY = {
    "l1": "mean L1 distance between two answers' scores",
    "distinct": "different score vectors",
    "texts": "different answers, by their text",
    "nondominated": "answers that no other beats",
    "hypervolume": "volume dominated above −0.1",
    "coverage": "best of each objective, averaged",
    "expected_max": "E_w[max], the set reward of the pool",
}

# A measure by its section, its budget's kind and the budget; and numbers of one pool, a column of problems for each.
Key: TypeAlias = tuple[str, str, int | str]
Table: TypeAlias = dict[Key, Floats]


@dataclass(frozen=True)
class Measure:
    """One number of every pool: a row of the table.

    Attributes:
        section: what it measures, such as "best@k".
        by: the budget it is counted in: "answers", "generations", "tokens" or "".
        at: the budget, or the name of a measure without one.
        values: for each pool the mean over problems with its interval, or None where it cannot be had.
        differences: for each pair of pools of the comparison, the first less the second, paired over problems.
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
        groups: the pools as read; those of one group are seeds of the same thing, over which every number is averaged.
        problems: names of the problems that all pools have, over which everything is computed.
        target: the weighting, or None for the uniform one.
        pairs: the pools, by their places, that are compared: up to three pools each with each, more with the first.
        measures: the rows of the table.
        notes: what the reader should know: what was left out, and why.
    """

    groups: tuple[tuple[Pool, ...], ...]
    problems: tuple[str, ...]
    target: Mapping[str, float] | None
    pairs: tuple[tuple[int, int], ...]
    measures: tuple[Measure, ...]
    notes: tuple[str, ...]

    @property
    def pools(self) -> tuple[Pool, ...]:
        """The first pool of each group."""
        return tuple(group[0] for group in self.groups)


def compare(
    pools: Sequence[Pool],
    *,
    target: Mapping[str, float] | None = None,
    ks: Sequence[int] | None = None,
    oracle: Mapping[str, float] | None = None,
) -> Comparison:
    """Measure one pool, or several over the problems that they share; see `compare_groups`."""
    return compare_groups([[pool] for pool in pools], target=target, ks=ks, oracle=oracle)


def compare_groups(
    groups: Sequence[Sequence[Pool]],
    *,
    target: Mapping[str, float] | None = None,
    ks: Sequence[int] | None = None,
    oracle: Mapping[str, float] | None = None,
) -> Comparison:
    """Measure groups of pools over the problems that they all share.

    Args:
        groups: what `read_pool` returned; of several pools in a group, such as those of several seeds, each number is
            the mean, problem by problem.
        target: w*, objective → weight, of sum 1; objectives not named weigh 0. Uniform by default.
        ks: budgets in answers, and in generations where there are as many. 1, 3, 5, 10, … by default.
        oracle: the best that any answer to a problem can earn, by its name; adds the share of it that best@k reaches.
    """
    pools = [pool for group in groups for pool in group]
    if not pools:
        raise InputError("pools must hold 1 or more pools, not 0")
    names, notes = shared_problems(pools)
    grid, more = fit_grid(pools, names, ks)
    tables = [mean_table([_measure_pool(pool, names, target, grid) for pool in group]) for group in groups]
    if oracle is not None:
        for table in tables:
            _add_shares(table, np.asarray([oracle[name] for name in names]), grid)
    keys = list(dict.fromkeys(key for table in tables for key in table))
    pairs = _pairs(len(groups))
    values = [intervals(table) for table in tables]
    changes = [
        intervals({key: tables[a][key] - tables[b][key] for key in keys if key in tables[a] and key in tables[b]})
        for a, b in pairs
    ]
    measures = [
        Measure(
            *key,
            values=tuple(value.get(key) for value in values),
            differences=tuple(change.get(key) for change in changes),
        )
        for key in keys
    ]
    return Comparison(tuple(map(tuple, groups)), tuple(names), target, pairs, tuple(measures), (*notes, *more))


def mean_table(tables: Sequence[Table]) -> Table:
    """Return the mean of tables, problem by problem, of what they all have."""
    return {
        key: np.mean([table[key] for table in tables], axis=0) for key in tables[0] if all(key in t for t in tables)
    }


def intervals(table: Table) -> dict[Key, Interval]:
    """Return the mean over problems and the interval of every column, all from the same resamples."""
    if not table:
        return {}
    matrix_PQ = np.column_stack(list(table.values()))
    if len(matrix_PQ) < 2:
        return {key: Interval(float(column[0]), None, None) for key, column in table.items()}
    result = bootstrap(matrix_PQ)
    triples = zip(result.mean, result.low, result.high, strict=True)
    return {key: Interval(*map(float, triple)) for key, triple in zip(table, triples, strict=True)}


def _pairs(pools: int) -> tuple[tuple[int, int], ...]:
    """Return which pools are compared, by their places, the later less the earlier one."""
    return tuple((a, b) for b in range(pools) for a in range(b + 1, pools) if b == 0 or pools <= EACH_WITH_EACH)


def _measure_pool(pool: Pool, names: Sequence[str], target: Mapping[str, float] | None, grid: Grid) -> Table:
    """Return a column of numbers, one per problem, for every measure that the pool allows."""
    return _gather(pool, names, lambda problems: _measure_alike(problems, target, grid, pool.set_size))


def curve_table(pool: Pool, names: Sequence[str], target: Mapping[str, float] | None, grid: Grid) -> Table:
    """Return best@k of each problem at every budget of a grid."""
    return _gather(pool, names, lambda problems: _at_budgets("best@k", _weighted(problems, target), problems, grid))


def _gather(pool: Pool, names: Sequence[str], measure: Callable[[Sequence[ProblemPool]], Table]) -> Table:
    """Measure problems that are alike together, and put the numbers of all problems into columns."""
    alike: dict[Hashable, list[int]] = {}
    for place, name in enumerate(names):
        problem = pool.problems[name]
        alike.setdefault((problem.set_sizes_N, len(problem.objectives)), []).append(place)
    table: Table = {}
    for places in progress(list(alike.values()), f"measuring {pool.path}"):
        columns = measure([pool.problems[names[place]] for place in places])
        for key, column_P in columns.items():
            table.setdefault(key, np.full(len(names), np.nan))[places] = column_P
    # What some problems do not allow, such as the hypervolume of many objectives, is not reported for the others.
    return {key: column for key, column in table.items() if not np.isnan(column).any()}


def _measure_alike(
    problems: Sequence[ProblemPool], target: Mapping[str, float] | None, grid: Grid, set_size: int | None
) -> Table:
    """Measure problems of the same number of answers, sets and objectives, all at once."""
    scores_PnD = np.stack([problem.scores_nD for problem in problems])
    scores_Pn = _weighted(problems, target)
    table = _at_budgets("best@k", scores_Pn, problems, grid)
    solved = [problem.solved_n for problem in problems if problem.solved_n is not None]
    if len(solved) == len(problems):
        table |= _at_budgets("pass@k", np.stack(solved).astype(np.float64), problems, grid)
    if set_size is not None:
        scores_PNM = scores_Pn.reshape(len(problems), -1, set_size)
        table["one generation", "", "first"] = first(scores_PNM)
        table["one generation", "", "set"] = best_of_set(scores_PNM)
    measured = diversity(scores_PnD)
    for name in DIVERSITY:
        if (values := getattr(measured, name, None)) is not None:
            table["diversity", "", name] = np.asarray(values, dtype=np.float64)
    if grid.texts:
        texts = [{text for text in problem.answers or () if text is not None} for problem in problems]
        table["diversity", "", "texts"] = np.asarray([len(each) for each in texts], dtype=np.float64)
    return table


def _weighted(problems: Sequence[ProblemPool], target: Mapping[str, float] | None) -> Floats:
    """Return w*·r of every answer of problems of one shape, (P, n)."""
    weights = [weights_for(target, problem.objectives, f"problem {problem.problem!r}") for problem in problems]
    scores_PnD = np.stack([problem.scores_nD for problem in problems])
    scores_Pn: Floats = np.einsum("pnd,pd->pn", scores_PnD, np.stack(weights))
    return scores_Pn


def _add_shares(table: Table, oracle_P: Floats, grid: Grid) -> None:
    """Add the share of the oracle that best@k reaches, by answers."""
    for k in grid.answers:
        table[ORACLE, "answers", k] = table["best@k", "answers", k] / oracle_P


def _at_budgets(section: str, scores_Pn: Floats, problems: Sequence[ProblemPool], grid: Grid) -> Table:
    starts = np.cumsum([0, *problems[0].set_sizes_N[:-1]])
    best_PN = np.maximum.reduceat(scores_Pn, starts, axis=1)
    table: Table = {}
    by_answers, by_generations = best_at_k(scores_Pn, grid.answers), best_at_k(best_PN, grid.generations)
    for place, k in enumerate(grid.answers):
        table[section, "answers", k] = by_answers[:, place]
    for place, k in enumerate(grid.generations):
        table[section, "generations", k] = by_generations[:, place]
    if grid.tokens:
        by_tokens = np.stack(
            [
                best_at_tokens(best_N, problem.tokens_N, grid.tokens)
                for best_N, problem in zip(best_PN, problems, strict=True)
            ]
        )
        for place, budget in enumerate(grid.tokens):
            table[section, "tokens", budget] = by_tokens[:, place]
    return table
