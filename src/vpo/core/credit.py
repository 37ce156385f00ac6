"""Marginal credit: what each answer adds to a pool of K sets of its group, under every weighting.

For a group of G rollouts with sets S_1..S_G of M answers, and v_gj = w·r_gj,

    c_gj = E_w E_T [ max(S_g ∪ T) − max(S_g without j ∪ T) ]
         = E_w Σ_l P(l) · max(0, v_gj − max(b_gj, x_l))

where T is the union of K − 1 other sets of the group, drawn without replacement, b_gj the best sibling of j in its own
set, x_1 ≤ … ≤ x_{G−1} the best values of the other sets under w, and P(l) = C(l−1, K−2) / C(G−1, K−1) the probability
that x_l is the best of K − 1 of them. The sum over l replaces the one over all subsets T, and is exact.
"""

import math

from array_api_compat import device

from vpo.core.arrays import as_array, namespace, narrow, shape, widen
from vpo.core.checks import as_booleans, as_integer, check_finite, check_rank
from vpo.core.set_reward import direction_columns
from vpo.core.simplex import Concentration
from vpo.core.types import Array, ArrayLike, Namespace
from vpo.util.errors import InputError

# Scores of one block, groups × rollouts × answers × directions, kept at a time.
_BLOCK_ON_CPU = 2**18
_BLOCK_ON_DEVICE = 2**25


def marginal_credit(
    rewards: ArrayLike,
    *,
    sets: int,
    concentration: Concentration = 1.0,
    directions: ArrayLike | None = None,
    mask: ArrayLike | None = None,
) -> Array:
    """Credit of each answer of each group, (..., G, M, D) → (..., G, M).

    It is 0 or more, and 0 for a missing answer, a copy of a sibling and an answer that a sibling dominates. It does
    not depend on the order of answers or rollouts. Σ_j c_gj ≤ R(S_g) for rewards of 0 or more.

    Args:
        rewards: score vectors of the answers of the rollouts of each group.
        sets: K, how many sets the pool has, the answer's own included: 1..G. 1 compares with siblings alone.
        concentration: α of the Dirichlet distribution, a number or one per objective. 1 is uniform.
        directions: weightings (K, D) to average over instead of the fixed set.
        mask: (..., G, M), true for real answers. A set without one is worth 0.
    """
    rewards = as_array(rewards, "rewards")
    check_rank(rewards, "rewards", "G, M, D", batched=True)
    *batch, rollouts, answers, objectives = shape(rewards)
    if 0 in (rollouts, answers, objectives):
        raise InputError(f"rewards must have 1 or more rollouts, answers and objectives, not shape {shape(rewards)}")
    if not 1 <= as_integer(sets, "sets") <= rollouts:
        raise InputError(f"sets must lie in 1..{rollouts}, the rollouts of a group, not {sets}")
    xp = namespace(rewards)
    points_DK = direction_columns(rewards, concentration, directions)
    rewards_PGMD = xp.reshape(widen(rewards), (math.prod(batch), rollouts, answers, objectives))
    real_PGM = xp.ones(shape(rewards_PGMD)[:-1], dtype=xp.bool, device=device(rewards))
    if mask is not None:
        real_PGM = xp.reshape(as_booleans(mask, "mask", rewards, (*batch, rollouts, answers)), shape(real_PGM))
        rewards_PGMD = xp.where(real_PGM[..., None], rewards_PGMD, 0.0)
    check_finite(xp.reshape(rewards_PGMD, shape(rewards)), "rewards")
    on_cpu = str(device(rewards)) == "cpu"
    block = max(1, (_BLOCK_ON_CPU if on_cpu else _BLOCK_ON_DEVICE) // (rollouts * answers * points_DK.shape[1]))
    credit_PGM = xp.concat(
        [
            _credit(rewards_PGMD[start : start + block], real_PGM[start : start + block], points_DK, sets, xp)
            for start in range(0, max(rewards_PGMD.shape[0], 1), block)
        ]
    )
    return narrow(xp.reshape(credit_PGM, (*batch, rollouts, answers)), rewards)


def _credit(rewards_PGMD: Array, real_PGM: Array, points_DK: Array, sets: int, xp: Namespace) -> Array:
    """Credit of the answers of a block of groups."""
    values_PGMK = rewards_PGMD @ points_DK
    candidates_PGMK = xp.where(real_PGM[..., None], values_PGMK, -math.inf)
    siblings_PGMK = _best_siblings(candidates_PGMK, xp)
    if sets == 1:  # an answer without siblings has nothing to compare with: it is compared with 0
        alone_PGMK = siblings_PGMK == -math.inf
        gains_PGMK = xp.maximum(values_PGMK - xp.where(alone_PGMK, 0.0, siblings_PGMK), 0.0)
    else:
        best_PGK = xp.max(candidates_PGMK, axis=2)
        best_PGK = xp.where(best_PGK == -math.inf, 0.0, best_PGK)
        gains_PGMK = _expected_gains(values_PGMK, siblings_PGMK, best_PGK, sets, xp)
    return xp.where(real_PGM, xp.mean(gains_PGMK, axis=3), 0.0)


def _expected_gains(values_PGMK: Array, siblings_PGMK: Array, best_PGK: Array, sets: int, xp: Namespace) -> Array:
    """Expected gain of each answer under each direction, over all choices of K − 1 other sets."""
    rollouts = best_PGK.shape[1]
    sorted_PGK = xp.sort(best_PGK, axis=1)
    choices = math.comb(rollouts - 1, sets - 1)
    gains_PGMK = xp.zeros_like(values_PGMK)
    for index in range(sets - 2, rollouts - 1):  # from 0: below it, K − 1 others do not fit under x_l
        lower_PK, upper_PK = sorted_PGK[:, index, :], sorted_PGK[:, index + 1, :]
        # The sorted values of the others: those of all, with the first that equals the set's own taken out.
        other_PGK = xp.where(lower_PK[:, None, :] < best_PGK, lower_PK[:, None, :], upper_PK[:, None, :])
        threshold_PGMK = xp.maximum(siblings_PGMK, other_PGK[:, :, None, :])
        probability = math.comb(index, sets - 2) / choices
        gains_PGMK = gains_PGMK + probability * xp.maximum(values_PGMK - threshold_PGMK, 0.0)
    return gains_PGMK


def _best_siblings(values_PGMK: Array, xp: Namespace) -> Array:
    """Best value among the other answers of the set, −∞ where there is none."""
    answers = values_PGMK.shape[2]
    before = [xp.full_like(values_PGMK[:, :, 0, :], -math.inf)]
    for index in range(answers - 1):
        before.append(xp.maximum(before[-1], values_PGMK[:, :, index, :]))
    after = before[0]
    best = [before[-1]]
    for index in range(answers - 1, 0, -1):
        after = xp.maximum(after, values_PGMK[:, :, index, :])
        best.append(xp.maximum(before[index - 1], after))
    return xp.stack(best[::-1], axis=2)
