"""Pools measured over the problems that they share, and compared in pairs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vpo.core.intervals import Interval
from vpo.evaluation.budgets import fit_budgets, shared_problems
from vpo.evaluation.intervals import intervals
from vpo.evaluation.measure import MetricTable, mean_table, measure_pool, oracle_shares
from vpo.evaluation.metrics import BEST, Budget, Metric
from vpo.evaluation.notes import comparison_notes
from vpo.evaluation.pools import Pool, ProblemPool
from vpo.util.errors import InputError

# Up to this many pools are compared each with each, more with the first one alone.
EACH_WITH_EACH = 3


@dataclass(frozen=True)
class MetricRow:
    """One metric of every pool: a row of the table.

    Attributes:
        metric: what is measured.
        values: for each pool the mean over problems with its interval, or None where the pool does not allow it.
        differences: for each pair of pools of the comparison, the first less the second, paired over problems.
    """

    metric: Metric
    values: tuple[Interval | None, ...]
    differences: tuple[Interval | None, ...]


@dataclass(frozen=True)
class Comparison:
    """All metrics of some pools.

    Attributes:
        groups: the pools; those of one group are seeds of the same method, over which every number is averaged.
        problems: names of the problems that all pools have, over which everything is computed.
        target: the weighting, or None for the uniform one.
        pairs: the groups, by their indices, that are compared: up to three each with each, more with the first.
        rows: of the table.
        notes: what the reader should know: what was left out, and why.
        best: for each group, best@k of every problem, from which `vpo.evaluation.verdict` compares any two groups.
    """

    groups: tuple[tuple[Pool, ...], ...]
    problems: tuple[str, ...]
    target: Mapping[str, float] | None
    pairs: tuple[tuple[int, int], ...]
    rows: tuple[MetricRow, ...]
    notes: tuple[str, ...]
    best: tuple[MetricTable, ...]

    @property
    def pools(self) -> tuple[Pool, ...]:
        """The first pool of each group."""
        return tuple(group[0] for group in self.groups)

    def at_every_k(self, name: str, budget: Budget) -> list[MetricRow]:
        """The rows of one metric with a budget, by k."""
        return [row for row in self.rows if (row.metric.name, row.metric.budget) == (name, budget)]


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
        groups: of pools; the numbers of several pools in a group, such as those of several seeds, are averaged
            problem by problem.
        target: w*, objective → weight, of sum 1; objectives not named weigh 0. Uniform by default.
        ks: budgets in answers, and in generations where there are as many. 1, 3, 5, 10, … by default.
        oracle: the best possible score of each problem, by its name; adds the share of it that best@k reaches.
    """
    pools = [pool for group in groups for pool in group]
    if not pools:
        raise InputError("pools must hold 1 or more pools, not 0")
    names = shared_problems(pools)
    problems = [[pool.problems[name] for name in names] for pool in pools]
    budgets = fit_budgets(problems, ks)
    texts = all(problem.answers is not None for each in problems for problem in each)
    tables = [
        mean_table([measure_pool(pool, names, target, budgets, texts=texts) for pool in group]) for group in groups
    ]
    if oracle is not None:
        oracle_P = np.asarray([oracle[name] for name in names])
        tables = [table | oracle_shares(table, oracle_P) for table in tables]
    pairs = _pairs(len(groups))
    metrics = dict.fromkeys(metric for table in tables for metric in table)
    bounds = _bounds(metrics, [problem for each in problems for problem in each])
    values = [intervals(table, bounds) for table in tables]
    ranges = {metric: (low - high, high - low) for metric, (low, high) in bounds.items()}  # of differences
    differences = [
        intervals(
            {metric: tables[a][metric] - tables[b][metric] for metric in tables[a] if metric in tables[b]}, ranges
        )
        for a, b in pairs
    ]
    rows = [
        MetricRow(
            metric,
            values=tuple(value.get(metric) for value in values),
            differences=tuple(difference.get(metric) for difference in differences),
        )
        for metric in metrics
    ]
    notes = comparison_notes(pools, names, budgets, ks)
    best = [{metric: column_P for metric, column_P in table.items() if metric.name == BEST} for table in tables]
    return Comparison(tuple(map(tuple, groups)), tuple(names), target, pairs, tuple(rows), tuple(notes), tuple(best))


def _bounds(metrics: Iterable[Metric], problems: Sequence[ProblemPool]) -> dict[Metric, tuple[float, float]]:
    answers = max(len(problem.scores_nD) for problem in problems)
    objectives = max(len(problem.objectives) for problem in problems)
    return {metric: metric.bounds(answers, objectives) for metric in metrics}


def _pairs(groups: int) -> tuple[tuple[int, int], ...]:
    """The indices of the groups to compare, the later less the earlier one."""
    return tuple((a, b) for b in range(groups) for a in range(b + 1, groups) if b == 0 or groups <= EACH_WITH_EACH)
