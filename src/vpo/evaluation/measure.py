"""What a pool scores under a budget, problem by problem.

Three budgets, since a set of m answers is one generation: k answers sampled from the pool; k whole generations; and
tokens, where k generations cost k times the mean tokens of the problem's generations, and values in between are
interpolated (0 tokens score 0, and more tokens than the pool has score as much as all of it).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from vpo.core.at_k import best_at_k, best_at_tokens, best_of_set, first
from vpo.core.diversity import diversity
from vpo.core.targets import weights_for
from vpo.core.types import Floats
from vpo.evaluation.budgets import Budgets
from vpo.evaluation.metrics import BEST, DISTINCT_TEXTS, FIRST, ORACLE_SHARE, PASS, SET, Budget, Metric
from vpo.evaluation.pools import Pool, ProblemPool
from vpo.util.grouping import group_by
from vpo.util.progress import progress

# The numbers of one pool: a column per metric, with a row per problem.
MetricTable: TypeAlias = dict[Metric, Floats]


def measure_pool(
    pool: Pool, names: Sequence[str], target: Mapping[str, float] | None, budgets: Budgets, *, texts: bool
) -> MetricTable:
    """Every metric that the pool allows.

    Args:
        pool: to measure.
        names: of its problems, in the order of the rows.
        target: w*, or None for the uniform weighting.
        budgets: of metrics at k.
        texts: whether to count different texts.
    """

    def measure(problems: Sequence[ProblemPool]) -> MetricTable:
        scores_Pn = _weighted(problems, target)
        table = _at_budgets(BEST, scores_Pn, problems, budgets)
        solved_Pn = _solved(problems)
        if solved_Pn is not None:
            table |= _at_budgets(PASS, solved_Pn, problems, budgets)
        if pool.set_size is not None:
            scores_PNM = scores_Pn.reshape(len(problems), -1, pool.set_size)
            table |= {Metric(FIRST): first(scores_PNM), Metric(SET): best_of_set(scores_PNM)}
        return table | _diversity(problems, texts)

    return _gather(pool, names, measure)


def measure_at_budgets(
    name: str, pool: Pool, names: Sequence[str], target: Mapping[str, float] | None, budgets: Budgets
) -> MetricTable:
    """best@k or pass@k alone, for curves; nothing for pass@k of a pool that does not say what is solved."""

    def measure(problems: Sequence[ProblemPool]) -> MetricTable:
        scores_Pn = _weighted(problems, target) if name == BEST else _solved(problems)
        return {} if scores_Pn is None else _at_budgets(name, scores_Pn, problems, budgets)

    return _gather(pool, names, measure)


def oracle_shares(table: MetricTable, oracle_P: Floats) -> MetricTable:
    """The share of the best possible score that best@k reaches, by answers."""
    return {
        Metric(ORACLE_SHARE, metric.budget, metric.k): column_P / oracle_P
        for metric, column_P in table.items()
        if metric.name == BEST and metric.budget == Budget.ANSWERS
    }


def mean_table(tables: Sequence[MetricTable]) -> MetricTable:
    """The mean of some tables, problem by problem, of the metrics that they all have."""
    shared = [metric for metric in tables[0] if all(metric in table for table in tables)]
    return {metric: np.mean([table[metric] for table in tables], axis=0) for metric in shared}


def _gather(pool: Pool, names: Sequence[str], measure: Callable[[Sequence[ProblemPool]], MetricTable]) -> MetricTable:
    """Measure problems of one shape together, and put the numbers of all problems into columns."""

    def shape(index: int) -> tuple[tuple[int, ...], int]:
        problem = pool.problems[names[index]]
        return problem.set_sizes_N, len(problem.objectives)

    table: MetricTable = {}
    groups = group_by(range(len(names)), shape)
    for rows in progress(list(groups.values()), f"measuring {pool.path}"):
        for metric, column_P in measure([pool.problems[names[row]] for row in rows]).items():
            table.setdefault(metric, np.full(len(names), np.nan))[rows] = column_P
    # What some problems do not allow, such as the hypervolume of many objectives, is not reported for the others.
    return {metric: column_P for metric, column_P in table.items() if not np.isnan(column_P).any()}


def _weighted(problems: Sequence[ProblemPool], target: Mapping[str, float] | None) -> Floats:
    """w*·r of every answer of problems of one shape, (P, n)."""
    weights = [weights_for(target, problem.objectives, f"problem {problem.problem!r}") for problem in problems]
    scores_PnD = np.stack([problem.scores_nD for problem in problems])
    scores_Pn: Floats = np.einsum("pnd,pd->pn", scores_PnD, np.stack(weights))
    return scores_Pn


def _solved(problems: Sequence[ProblemPool]) -> Floats | None:
    """1 for every answer that solves its problem, else 0, (P, n); None where that is not known."""
    solved = [problem.solved_n for problem in problems if problem.solved_n is not None]
    return np.stack(solved).astype(np.float64) if len(solved) == len(problems) else None


def _at_budgets(name: str, scores_Pn: Floats, problems: Sequence[ProblemPool], budgets: Budgets) -> MetricTable:
    """The expected best score within each budget, for problems of one shape."""
    starts = np.cumsum([0, *problems[0].set_sizes_N[:-1]])
    best_PN = np.maximum.reduceat(scores_Pn, starts, axis=1)  # of each generation
    values = {
        Budget.ANSWERS: (budgets.answers, best_at_k(scores_Pn, budgets.answers)),
        Budget.GENERATIONS: (budgets.generations, best_at_k(best_PN, budgets.generations)),
    }
    if budgets.tokens:
        pairs = zip(best_PN, problems, strict=True)
        by_tokens = [best_at_tokens(best_N, problem.tokens_N, budgets.tokens) for best_N, problem in pairs]
        values[Budget.TOKENS] = (budgets.tokens, np.stack(by_tokens))
    return {
        Metric(name, budget, k): values_PK[:, column]
        for budget, (ks, values_PK) in values.items()
        for column, k in enumerate(ks)
    }


def _diversity(problems: Sequence[ProblemPool], texts: bool) -> MetricTable:
    columns = vars(diversity(np.stack([problem.scores_nD for problem in problems])))
    table = {
        Metric(name): np.asarray(column, dtype=np.float64) for name, column in columns.items() if column is not None
    }
    if texts:
        counts = [len({text for text in problem.answers or () if text is not None}) for problem in problems]
        table[Metric(DISTINCT_TEXTS)] = np.asarray(counts, dtype=np.float64)
    return table
