"""Does this reward have trade-offs worth VPO? Answered from a pool, in numbers and in plain words."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from vpo.core.at_k import Interval, bootstrap
from vpo.core.geometry import columns, geometry
from vpo.core.simplex import Floats, expected_weights
from vpo.pools import Pool, ProblemPool
from vpo.progress import progress
from vpo.targets import weights_for

Verdict = Literal["yes", "weak", "no", "flat"]

# Of what choosing well gains over an average answer, the share that only a set can have. Independent objectives have
# 8% (two of them, ten answers) to 13% (four, thirty answers); specialists for one objective each have all of it.
WORTH = 0.10
WEAK = 0.02
# Objectives that agree, or disagree, this well over the answers of a problem are named.
SAME = 0.95
OPPOSED = -0.3
# Two answers of a problem always agree or disagree perfectly.
ENOUGH_ANSWERS = 3
# An objective with less spread than this over the answers of every problem does not vary.
STILL = 1e-9


@dataclass(frozen=True)
class Diagnosis:
    """What a pool says about its reward.

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
        single: what the best answer under the target earns, averaged over all weightings.
        ideal: what the whole pool, as one set, earns: E_w[max].
        headroom: the difference.
        average: what an average answer earns, averaged over all weightings.
        relative_headroom: the headroom as a share of ideal − average, which no shift or scale of the scores changes.
        constant: objectives that never vary over the answers of a problem.
        same: pairs of objectives that say the same, with their correlation.
        opposed: pairs that pull against each other, with their correlation.
        verdict: "yes", "weak", "no", or "flat" where nothing varies at all.
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
    verdict: Verdict


def diagnose(pool: Pool, *, target: Mapping[str, float] | None = None) -> Diagnosis:
    """Describe the reward behind a pool.

    Args:
        pool: what `vpo.read_pool` returned.
        target: w*, objective → weight, of sum 1: picks the single answer that a set is compared with.
    """
    problems = list(pool.problems.values())
    described = [_describe(problem, target) for problem in progress(problems, f"diagnosing {pool.path}")]
    headrooms_P = np.asarray([each.ideal - each.single for each in described])
    single = float(np.mean([each.single for each in described]))
    ideal = float(np.mean([each.ideal for each in described]))
    rank, constant, same, opposed = _columns(pool)
    headroom = bootstrap(headrooms_P) if len(headrooms_P) > 1 else Interval(float(headrooms_P[0]), None, None)
    average = float(np.mean([each.average for each in described]))
    gain = ideal - average
    relative = min(1.0, headroom.mean / gain) if gain > STILL and headroom.mean > STILL else 0.0
    return Diagnosis(
        path=pool.path,
        problems=len(problems),
        answers=float(np.mean([len(problem.scores_nD) for problem in problems])),
        objectives=pool.objectives,
        dimensions=float(np.mean([len(problem.objectives) for problem in problems])),
        distinct=float(np.mean([len(each.shares) for each in described])),
        effective_rank=rank,
        shares=_mean_shares([each.shares for each in described]),
        winners=float(np.mean([(each.shares > 0).sum() for each in described])),
        single=single,
        ideal=ideal,
        headroom=headroom,
        average=average,
        relative_headroom=relative,
        constant=constant,
        same=same,
        opposed=opposed,
        verdict=_verdict(rank, relative),
    )


@dataclass(frozen=True)
class _Described:
    shares: Floats
    single: float
    ideal: float
    average: float


def _describe(problem: ProblemPool, target: Mapping[str, float] | None) -> _Described:
    different_nD = np.unique(problem.scores_nD, axis=0)
    shape = geometry(different_nD)
    under_target = different_nD @ weights_for(target, problem.objectives, f"problem {problem.problem!r}")
    chosen = under_target >= under_target.max() - 1e-12
    mean_D = expected_weights(different_nD.shape[1])
    return _Described(
        shares=np.sort(shape.shares)[::-1],
        single=float((different_nD[chosen] @ mean_D).mean()),
        ideal=float(shape.expected_max),
        average=float((problem.scores_nD @ mean_D).mean()),
    )


def _columns(
    pool: Pool,
) -> tuple[float, tuple[str, ...], tuple[tuple[str, str, float], ...], tuple[tuple[str, str, float], ...]]:
    """Return the effective rank and the objectives to name: constant, saying the same, opposed."""
    centred = [problem.scores_nD - problem.scores_nD.mean(axis=0) for problem in pool.problems.values()]
    if pool.objectives is None:  # a name means nothing across problems, so there is none to give
        return float(np.mean([columns(rows).effective_rank for rows in centred])), (), (), ()
    found = columns(np.vstack(centred))
    enough = max(map(len, centred)) >= ENOUGH_ANSWERS
    names = pool.objectives
    constant = tuple(name for name, spread in zip(names, found.spread, strict=True) if spread < STILL)
    pairs = [
        (names[i], names[j], float(found.correlation[i, j]))
        for i in range(len(names))
        for j in range(i + 1, len(names))
        if enough
    ]
    same = tuple(sorted((pair for pair in pairs if pair[2] >= SAME), key=lambda pair: -pair[2]))
    opposed = tuple(sorted((pair for pair in pairs if pair[2] <= OPPOSED), key=lambda pair: pair[2]))
    return found.effective_rank, constant, same, opposed


def _mean_shares(shares: list[Floats], shown: int = 5) -> tuple[float, ...]:
    """Return the mean of the largest share, of the second, …, and of all the rest together."""
    padded_PS = np.zeros((len(shares), max(shown + 1, max(map(len, shares)))))
    for row, each in zip(padded_PS, shares, strict=True):
        row[: len(each)] = each
    mean_S = padded_PS.mean(axis=0)
    return (*mean_S[:shown].tolist(), float(mean_S[shown:].sum()))


def _verdict(effective_rank: float, relative_headroom: float) -> Verdict:
    if effective_rank == 0:
        return "flat"
    if relative_headroom >= WORTH:
        return "yes"
    return "weak" if relative_headroom >= WEAK else "no"
