"""Does this reward have trade-offs worth VPO? Answered from a pool, in numbers and in plain words."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from vpo.core.geometry import columns, simplex_shares
from vpo.core.intervals import Interval
from vpo.core.types import Floats
from vpo.evaluation.agreement import OPPOSED, SAME, columns_of, constant_objectives, has_correlations
from vpo.evaluation.headroom import TradeOffs, distinct_scores, headroom_of, trade_offs, values_of
from vpo.evaluation.pools import Pool, ProblemPool
from vpo.util.progress import progress

# Shares of the simplex that are reported one by one.
SHARES_SHOWN = 5


@dataclass(frozen=True)
class Diagnosis:
    """What a pool says about its reward. Values are expected scores over all weightings, averaged over problems.

    Attributes:
        path: the pool's file.
        problems: how many problems it has.
        answers: answers per problem, on average.
        objectives: the names, or None where they differ between problems.
        dimensions: objectives per problem, on average.
        distinct: different score vectors of a problem, on average.
        effective_rank: in how many independent ways the scores of a problem's answers vary.
        shares: the part of the simplex of weightings that the best, second, third, … different score
            vector of a problem wins, on average; the rest in the last entry.
        winners: how many different score vectors of a problem win anywhere, on average.
        single: value of the answer that is best under the target.
        ideal: value of the whole pool as one set: E_w[max].
        headroom: ideal − single.
        average: value of an average answer.
        relative_headroom: the headroom as a share of ideal − average, which no shift or scale of the scores changes.
        constant: objectives that never vary over the answers of a problem.
        same: pairs of objectives that say the same, with their correlation.
        opposed: pairs that pull against each other, with their correlation.
        verdict: whether there are trade-offs.
    """

    path: str
    problems: int
    answers: float
    objectives: tuple[str, ...] | None
    dimensions: float
    distinct: float
    effective_rank: float
    shares: tuple[float, ...]
    winners: float
    single: float
    ideal: float
    headroom: Interval
    average: float
    relative_headroom: float
    constant: tuple[str, ...]
    same: tuple[tuple[str, str, float], ...]
    opposed: tuple[tuple[str, str, float], ...]
    verdict: TradeOffs


def diagnose(pool: Pool, *, target: Mapping[str, float] | None = None, same: float = SAME) -> Diagnosis:
    """Describe the reward behind a pool.

    Args:
        pool: what `vpo.read_pool` returned.
        target: w*, objective → weight, of sum 1: chooses the single answer that a set is compared with.
        same: the correlation over the answers of a problem from which two objectives say the same.
    """
    problems = list(pool.problems.values())
    values = [values_of(problem, target) for problem in progress(problems, f"diagnosing {pool.path}")]
    shares = [_shares(problem) for problem in problems]
    headroom = headroom_of(values)
    rank = _effective_rank(pool)
    pairs = _correlated_pairs(pool)
    return Diagnosis(
        path=pool.path,
        problems=len(problems),
        answers=float(np.mean([len(problem.scores_nD) for problem in problems])),
        objectives=pool.objectives,
        dimensions=float(np.mean([len(problem.objectives) for problem in problems])),
        distinct=float(np.mean([len(each) for each in shares])),
        effective_rank=rank,
        shares=_mean_shares(shares),
        winners=float(np.mean([(each > 0).sum() for each in shares])),
        single=float(np.mean([each.single for each in values])),
        ideal=float(np.mean([each.ideal for each in values])),
        headroom=headroom.absolute,
        average=float(np.mean([each.average for each in values])),
        relative_headroom=headroom.relative.mean,
        constant=constant_objectives(pool),
        same=tuple(sorted((pair for pair in pairs if pair[2] >= same), key=lambda pair: -pair[2])),
        opposed=tuple(sorted((pair for pair in pairs if pair[2] <= OPPOSED), key=lambda pair: pair[2])),
        verdict=trade_offs(rank, headroom.relative.mean),
    )


def _effective_rank(pool: Pool) -> float:
    """Over all answers, or the mean over problems where these differ in their objectives."""
    if pool.objectives is not None:
        return columns_of(pool).effective_rank
    scores = [problem.scores_nD for problem in pool.problems.values()]
    return float(np.mean([columns(each - each.mean(axis=0)).effective_rank for each in scores]))


def _correlated_pairs(pool: Pool) -> list[tuple[str, str, float]]:
    """Each pair of objectives with its correlation; none where correlations mean nothing."""
    names = pool.objectives or ()
    if not has_correlations(pool):
        return []
    correlation_DD = columns_of(pool).correlation
    return [
        (names[i], names[j], float(correlation_DD[i, j])) for i in range(len(names)) for j in range(i + 1, len(names))
    ]


def _shares(problem: ProblemPool) -> Floats:
    """The part of the simplex that each different score vector wins, the largest first."""
    _, distinct_nD = distinct_scores(problem)
    shares: Floats = np.sort(simplex_shares(distinct_nD))[::-1]
    return shares


def _mean_shares(shares: list[Floats]) -> tuple[float, ...]:
    """The mean of the largest share, of the second, …, and of all the rest together."""
    padded_PS = np.zeros((len(shares), max(SHARES_SHOWN + 1, max(map(len, shares)))))
    for row, each in zip(padded_PS, shares, strict=True):
        row[: len(each)] = each
    mean_S = padded_PS.mean(axis=0)
    return (*mean_S[:SHARES_SHOWN].tolist(), float(mean_S[SHARES_SHOWN:].sum()))
