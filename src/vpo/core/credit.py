"""Marginal credit: what each answer adds to a pool of K sets of its group, under every weighting.

For a group of G rollouts with sets S_1..S_G of M answers, and v_gj = w·r_gj,

    c_gj = E_w E_T [ max(S_g ∪ T) − max(S_g without j ∪ T) ]
         = E_w Σ_l P(l) · max(0, v_gj − max(b_gj, x_l))

where T is the union of K − 1 other sets of the group, drawn without replacement, b_gj the best sibling of j in its own
set, x_1 ≤ … ≤ x_{G−1} the best values of the other sets under w, and P(l) = C(l−1, K−2) / C(G−1, K−1) the probability
that x_l is the best of K − 1 of them. The sum over l replaces the one over all subsets T, and is exact.
"""

import math
from collections.abc import Iterator, Sequence

from array_api_compat import device

from vpo.core.arrays import as_array, namespace, narrow, shape, widen
from vpo.core.at_k import best_at_k
from vpo.core.checks import as_booleans, as_integer, check_finite, check_rank
from vpo.core.set_reward import direction_columns
from vpo.core.simplex import Concentration
from vpo.core.types import Array, ArrayLike, Namespace
from vpo.util.errors import InputError

# Scores of one block, groups × rollouts × answers × directions, kept at a time.
_BLOCK_ON_CPU = 2**16
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
    xp = namespace(rewards)
    blocks = _values(rewards, (sets,), concentration, directions, mask)
    credit_PGM = xp.concat([_credit(values_PGMK, sets, xp) for values_PGMK in blocks])
    return narrow(xp.reshape(credit_PGM, shape(rewards)[:-1]), rewards)


def pool_value(
    rewards: ArrayLike,
    *,
    sets: int | Sequence[int],
    concentration: Concentration = 1.0,
    directions: ArrayLike | None = None,
    mask: ArrayLike | None = None,
) -> Array:
    """Expected best of K sets of a group, drawn without replacement, E_w E_T[max T], (..., G, M, D) → (...).

    With 1 set it is the mean of the set rewards. The arguments are those of `marginal_credit`; several numbers of sets
    in one call, (..., G, M, D) → (..., len(sets)), cost little more than one.
    """
    rewards = as_array(rewards, "rewards")
    xp = namespace(rewards)
    numbers = tuple(sets) if isinstance(sets, Sequence) else (sets,)
    blocks = _values(rewards, numbers, concentration, directions, mask)
    best = [_worth(xp.max(values_PGMK, axis=2), xp) for values_PGMK in blocks]
    value_Pn = xp.concat([xp.mean(best_at_k(xp.moveaxis(best_PGK, 1, -1), numbers), axis=1) for best_PGK in best])
    value = narrow(xp.reshape(value_Pn, (*shape(rewards)[:-3], len(numbers))), rewards)
    return value if isinstance(sets, Sequence) else value[..., 0]


def _values(
    rewards: Array,
    sets: Sequence[int],
    concentration: Concentration,
    directions: ArrayLike | None,
    mask: ArrayLike | None,
) -> Iterator[Array]:
    """w·r of each answer under each direction, (P, G, M, K), in blocks of groups; −∞ for a missing answer."""
    check_rank(rewards, "rewards", "G, M, D", batched=True)
    *batch, rollouts, answers, objectives = shape(rewards)
    if 0 in (rollouts, answers, objectives):
        raise InputError(f"rewards must have 1 or more rollouts, answers and objectives, not shape {shape(rewards)}")
    for number in sets:
        if not 1 <= as_integer(number, "sets") <= rollouts:
            raise InputError(f"sets must lie in 1..{rollouts}, the rollouts of a group, not {number}")
    xp = namespace(rewards)
    points_DK = direction_columns(rewards, concentration, directions)
    rewards_PGMD = xp.reshape(widen(rewards), (math.prod(batch), rollouts, answers, objectives))
    real_PGM1 = xp.ones((*shape(rewards_PGMD)[:-1], 1), dtype=xp.bool, device=device(rewards))
    if mask is not None:
        real_PGM1 = xp.reshape(as_booleans(mask, "mask", rewards, (*batch, rollouts, answers)), shape(real_PGM1))
        rewards_PGMD = xp.where(real_PGM1, rewards_PGMD, 0.0)
    check_finite(xp.reshape(rewards_PGMD, shape(rewards)), "rewards")
    on_cpu = str(device(rewards)) == "cpu"
    block = max(1, (_BLOCK_ON_CPU if on_cpu else _BLOCK_ON_DEVICE) // (rollouts * answers * points_DK.shape[1]))
    for start in range(0, max(rewards_PGMD.shape[0], 1), block):
        groups = slice(start, start + block)
        yield xp.where(real_PGM1[groups], rewards_PGMD[groups] @ points_DK, -math.inf)


def _credit(values_PGMK: Array, sets: int, xp: Namespace) -> Array:
    """Credit of the answers of a block of groups.

    Under a weighting, only the best answer of a set adds anything, and what it adds depends on the second best alone.
    """
    best_PGK, second_PGK = _two_best(values_PGMK, xp)
    if sets == 1:  # an answer without siblings has nothing to compare with: it is compared with 0
        gains_PGK = xp.maximum(best_PGK - xp.where(second_PGK == -math.inf, 0.0, second_PGK), 0.0)
    else:
        gains_PGK = _expected_gains(best_PGK, second_PGK, sets, xp)
    # Two answers that are equally good add nothing: there the gain is 0.
    is_best_PGMK = xp.astype(values_PGMK == best_PGK[:, :, None, :], xp.float64)
    return (is_best_PGMK @ gains_PGK[..., None])[..., 0] / gains_PGK.shape[-1]


def _expected_gains(best_PGK: Array, second_PGK: Array, sets: int, xp: Namespace) -> Array:
    """What the best answer of each set adds under each direction, on average over all choices of K − 1 other sets."""
    rollouts = best_PGK.shape[1]
    sorted_PGK = xp.sort(_worth(best_PGK, xp), axis=1)
    choices = math.comb(rollouts - 1, sets - 1)
    gains_PGK = xp.zeros_like(best_PGK)
    for index in range(sets - 2, rollouts - 1):  # from 0: below it, K − 1 others do not fit under x_l
        # x_l among all sets, not among the others: they differ where it is the set's own value or above, with gain 0.
        other_P1K = sorted_PGK[:, index, None, :]
        probability = math.comb(index, sets - 2) / choices
        gains_PGK = gains_PGK + probability * xp.maximum(best_PGK - xp.maximum(second_PGK, other_P1K), 0.0)
    return gains_PGK


def _worth(best_PGK: Array, xp: Namespace) -> Array:
    """What each set is worth: 0 where it has no answer."""
    return xp.where(best_PGK == -math.inf, 0.0, best_PGK)


def _two_best(values_PGMK: Array, xp: Namespace) -> tuple[Array, Array]:
    """The best and the second best value of each set, −∞ where there is none."""
    best_PGK = second_PGK = xp.full_like(values_PGMK[:, :, 0, :], -math.inf)
    for index in range(values_PGMK.shape[2]):
        value_PGK = values_PGMK[:, :, index, :]
        second_PGK = xp.maximum(second_PGK, xp.minimum(best_PGK, value_PGK))
        best_PGK = xp.maximum(best_PGK, value_PGK)
    return best_PGK, second_PGK
