"""What a set of answers can gain over one answer, over all weightings of the objectives."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from vpo.core.geometry import best_single
from vpo.core.intervals import Interval, bootstrap
from vpo.core.set_reward import set_reward
from vpo.core.simplex import expected_weights
from vpo.core.targets import weights_for
from vpo.core.types import Floats
from vpo.evaluation.pools import ProblemPool

# Whether a reward has trade-offs; "flat" where all answers of a problem score alike.
TradeOffs: TypeAlias = Literal["yes", "weak", "no", "flat"]

# Of what choosing well gains over an average answer, the share that only a set can have. Independent objectives have
# 8% (two of them, ten answers) to 13% (four, thirty answers); specialists for one objective each have all of it.
WORTH = 0.10
WEAK = 0.02
# Less than this is rounding.
ZERO = 1e-9
RESAMPLES = 5000


@dataclass(frozen=True)
class ProblemValues:
    """Expected scores on one problem over all weightings.

    Attributes:
        single: of the answer that is best under the target.
        ideal: of all answers as one set: E_w[max].
        average: of an average answer.
    """

    single: float
    ideal: float
    average: float


@dataclass(frozen=True)
class Headroom:
    """What a set gains over the best single answer, averaged over problems.

    Attributes:
        absolute: ideal − single.
        relative: the same as a share of ideal − average, which no shift or scale of the scores changes.
    """

    absolute: Interval
    relative: Interval


def values_of(problem: ProblemPool, target: Mapping[str, float] | None) -> ProblemValues:
    """Values of one problem; `target`, the weighting w*, chooses the single answer."""
    names, distinct_nD = distinct_scores(problem)
    weights_D = weights_for(target, names, f"problem {problem.problem!r}")
    return ProblemValues(
        single=float(best_single(distinct_nD, target=weights_D)),
        ideal=float(set_reward(distinct_nD)),
        average=float((problem.scores_nD @ expected_weights(len(names))).mean()),
    )


def distinct_scores(problem: ProblemPool) -> tuple[list[str], Floats]:
    """The objectives sorted by name, and the different score vectors of a problem in that order.

    The fixed directions are not quite symmetric, so the order of the objectives would show in the fourth digit.
    """
    names = sorted(problem.objectives)
    return names, np.unique(problem.scores_of(names), axis=0)


def headroom_of(values: Sequence[ProblemValues]) -> Headroom:
    """The headroom over problems, with intervals where there are 2 or more."""
    headrooms_P = np.asarray([max(0.0, each.ideal - each.single) for each in values])  # less is rounding
    gains_P = np.asarray([each.ideal - each.average for each in values])
    relative = float(_share_of_gain(headrooms_P, gains_P))
    if len(values) < 2:
        return Headroom(Interval(float(headrooms_P[0]), None, None), Interval(relative, None, None))
    from scipy.stats import bootstrap as resample  # slow to import

    bounds = resample(
        (headrooms_P, gains_P),
        _share_of_gain,
        paired=True,
        n_resamples=RESAMPLES,
        batch=max(1, 2**20 // len(values)),  # resamples in memory at a time
        method="percentile",
        rng=0,
    ).confidence_interval
    return Headroom(
        bootstrap(headrooms_P, bounds=(0.0, 1.0)), Interval(relative, float(bounds.low), float(bounds.high))
    )


def trade_offs(effective_rank: float, relative_headroom: float) -> TradeOffs:
    """Whether a reward has trade-offs that are worth a set."""
    if effective_rank == 0:
        return "flat"
    if relative_headroom >= WORTH:
        return "yes"
    return "weak" if relative_headroom >= WEAK else "no"


def _share_of_gain(headrooms: Floats, gains: Floats, axis: int = -1) -> Any:
    """Mean headroom as a share of the mean gain, at most 1, and 0 where either is rounding."""
    headroom, gain = headrooms.mean(axis=axis), gains.mean(axis=axis)
    real = (gain > ZERO) & (headroom > ZERO)
    return np.where(real, np.minimum(1.0, headroom / np.where(real, gain, 1.0)), 0.0)
