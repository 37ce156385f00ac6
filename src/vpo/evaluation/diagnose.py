"""Does this reward have trade-offs worth VPO? Answered from a pool, in numbers and in plain words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from vpo.core.at_k import Interval, bootstrap
from vpo.core.geometry import columns, simplex_shares
from vpo.core.set_reward import set_reward
from vpo.core.simplex import expected_weights
from vpo.core.targets import weights_for
from vpo.core.types import Floats
from vpo.evaluation.pools import Pool, ProblemPool
from vpo.util.progress import progress

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
# For the interval of a ratio of two means.
RESAMPLES = 5000


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


def diagnose(pool: Pool, *, target: Mapping[str, float] | None = None, same: float = SAME) -> Diagnosis:
    """Describe the reward behind a pool.

    Args:
        pool: what `vpo.read_pool` returned.
        target: w*, objective → weight, of sum 1: picks the single answer that a set is compared with.
        same: the correlation over the answers of a problem from which two objectives say the same.
    """
    problems = list(pool.problems.values())
    earned = [earnings(problem, target) for problem in progress(problems, f"diagnosing {pool.path}")]
    won = [_shares(problem) for problem in problems]
    found = headroom_of(earned)
    rank, constant, alike, opposed = _columns(pool, same)
    return Diagnosis(
        path=pool.path,
        problems=len(problems),
        answers=float(np.mean([len(problem.scores_nD) for problem in problems])),
        objectives=pool.objectives,
        dimensions=float(np.mean([len(problem.objectives) for problem in problems])),
        distinct=float(np.mean([len(shares) for shares in won])),
        effective_rank=rank,
        shares=_mean_shares(won),
        winners=float(np.mean([(shares > 0).sum() for shares in won])),
        single=float(np.mean([each.single for each in earned])),
        ideal=float(np.mean([each.ideal for each in earned])),
        headroom=found.headroom,
        average=float(np.mean([each.average for each in earned])),
        relative_headroom=found.relative.mean,
        constant=constant,
        same=alike,
        opposed=opposed,
        verdict=verdict(rank, found.relative.mean),
    )


@dataclass(frozen=True)
class Earned:
    """What answers of one problem earn, averaged over all weightings: the single best, all as a set, an average one."""

    single: float
    ideal: float
    average: float


def earnings(problem: ProblemPool, target: Mapping[str, float] | None) -> Earned:
    """Return what the answers of a problem earn; `target` picks the single best."""
    names, different_nD = _different(problem)
    under_target = different_nD @ weights_for(target, names, f"problem {problem.problem!r}")
    chosen = under_target >= under_target.max() - 1e-12
    mean_D = expected_weights(len(names))
    return Earned(
        single=float((different_nD[chosen] @ mean_D).mean()),
        ideal=float(set_reward(different_nD)),
        average=float((problem.scores_nD @ mean_D).mean()),
    )


@dataclass(frozen=True)
class Headroom:
    """What a set earns above the best single answer, and as a share of what choosing well gains over an average one."""

    headroom: Interval
    relative: Interval


def headroom_of(earned: Sequence[Earned]) -> Headroom:
    """Return the headroom over problems, with intervals where there is more than one problem."""
    headrooms_P = np.asarray([max(0.0, each.ideal - each.single) for each in earned])  # less is rounding
    gains_P = np.asarray([each.ideal - each.average for each in earned])
    relative = float(_relative(headrooms_P.mean(), gains_P.mean()))
    if len(earned) < 2:
        return Headroom(Interval(float(headrooms_P[0]), None, None), Interval(relative, None, None))
    generator = np.random.default_rng(0)
    batch = min(RESAMPLES, max(1, 2**20 // len(earned)))  # resamples held in memory at a time
    drawn: list[float] = []
    while len(drawn) < RESAMPLES:
        chosen = generator.integers(len(earned), size=(batch, len(earned)))
        pairs = zip(headrooms_P[chosen].mean(axis=1), gains_P[chosen].mean(axis=1), strict=True)
        drawn += [_relative(headroom, gain) for headroom, gain in pairs]
    low, high = np.quantile(drawn, (0.025, 0.975))
    return Headroom(bootstrap(headrooms_P), Interval(relative, float(low), float(high)))


def _relative(headroom: float, gain: float) -> float:
    return min(1.0, headroom / gain) if gain > STILL and headroom > STILL else 0.0


def _different(problem: ProblemPool) -> tuple[list[str], Floats]:
    """Return the different score vectors of a problem, its objectives sorted by name.

    The fixed directions are not quite symmetric, so the order of the objectives would show in the fourth digit.
    """
    names = sorted(problem.objectives)
    order = [problem.objectives.index(name) for name in names]
    return names, np.unique(problem.scores_nD[:, order], axis=0)


def _shares(problem: ProblemPool) -> Floats:
    """Return the part of the simplex that each different score vector wins, the largest first."""
    shares: Floats = np.sort(simplex_shares(_different(problem)[1]))[::-1]
    return shares


def _columns(
    pool: Pool, threshold: float
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
    same = tuple(sorted((pair for pair in pairs if pair[2] >= threshold), key=lambda pair: -pair[2]))
    opposed = tuple(sorted((pair for pair in pairs if pair[2] <= OPPOSED), key=lambda pair: pair[2]))
    return found.effective_rank, constant, same, opposed


def _mean_shares(shares: list[Floats], shown: int = 5) -> tuple[float, ...]:
    """Return the mean of the largest share, of the second, …, and of all the rest together."""
    padded_PS = np.zeros((len(shares), max(shown + 1, max(map(len, shares)))))
    for row, each in zip(padded_PS, shares, strict=True):
        row[: len(each)] = each
    mean_S = padded_PS.mean(axis=0)
    return (*mean_S[:shown].tolist(), float(mean_S[shown:].sum()))


def verdict(effective_rank: float, relative_headroom: float) -> Verdict:
    """Return the verdict on a reward."""
    if effective_rank == 0:
        return "flat"
    if relative_headroom >= WORTH:
        return "yes"
    return "weak" if relative_headroom >= WEAK else "no"
