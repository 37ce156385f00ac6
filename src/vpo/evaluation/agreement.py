"""How the objectives of a pool vary together over the answers of a problem."""

import numpy as np

from vpo.core.geometry import Columns, columns
from vpo.core.types import Floats
from vpo.evaluation.pools import Pool

# Objectives that correlate this well over the answers of a problem say the same; those below the other pull apart.
SAME = 0.95
OPPOSED = -0.3
# Two answers of a problem always correlate perfectly.
ENOUGH_ANSWERS = 3
# An objective with less spread than this over the answers of every problem is constant.
CONSTANT = 1e-9


def centred(pool: Pool) -> Floats:
    """All scores less the mean of their problem, (rows, D); the problems must have the same objectives."""
    return np.vstack([each.scores_nD - each.scores_nD.mean(axis=0) for each in pool.problems.values()])


def columns_of(pool: Pool) -> Columns:
    """Effective rank, correlation and spread of the objectives; the problems must have the same ones."""
    return columns(centred(pool))


def constant_objectives(pool: Pool) -> tuple[str, ...]:
    """Objectives that never vary over the answers of a problem; none are named where problems differ in theirs."""
    if pool.objectives is None:
        return ()
    spread_D = columns_of(pool).spread
    return tuple(name for name, spread in zip(pool.objectives, spread_D, strict=True) if spread < CONSTANT)


def has_correlations(pool: Pool) -> bool:
    """Whether correlations mean something: problems share their objectives, and one has enough answers."""
    most = max(len(problem.scores_nD) for problem in pool.problems.values())
    return pool.objectives is not None and most >= ENOUGH_ANSWERS
