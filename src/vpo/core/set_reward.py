"""The set reward, E_w[max_i w·r_i]: the value of a set of answers before the weighting is known."""

import math
from functools import partial

import numpy as np
from array_api_compat import device

from vpo.core.arrays import as_array, from_numpy, namespace, narrow, shape, to_numpy, widen
from vpo.core.checks import as_booleans, check_finite, check_rank, check_weights
from vpo.core.simplex import Concentration
from vpo.core.simplex import directions as fixed_directions
from vpo.core.types import Array, ArrayLike, Namespace
from vpo.util.errors import InputError

# Scores of one block, directions × sets, kept at a time: what fits a CPU's cache; enough to fill a GPU.
_BLOCK_ON_CPU = 2**16
_BLOCK_ON_DEVICE = 2**24


def set_reward(
    rewards: ArrayLike,
    *,
    concentration: Concentration = 1.0,
    directions: ArrayLike | None = None,
    mask: ArrayLike | None = None,
) -> Array:
    """E_{w ~ Dir(α)}[max_i w·r_i] of each set of answers, (..., M, D) → (...).

    The average runs over a fixed set of directions, so the same answers always have the same reward: this
    is a plain reward function. It is differentiable in torch. For M = 1 it is exactly E[w]·r.

    Args:
        rewards: score vectors of the answers. float32 stays float32, computed in float64. In float64 the
            same answers in another order differ in the last digits: round to float32 before you divide by a spread.
        concentration: α of the Dirichlet distribution, a number or one per objective. 1 is uniform.
        directions: weightings (K, D) to average over instead of the fixed set, such as random draws.
        mask: (..., M), true for real answers. A set without one has 0.
    """
    rewards = as_array(rewards, "rewards")
    check_rank(rewards, "rewards", "M, D", batched=True)
    *batch, answers, objectives = shape(rewards)
    if objectives == 0:
        raise InputError(f"rewards must have 1 or more objectives, not shape {shape(rewards)}")
    points_DK = direction_columns(rewards, concentration, directions)
    xp = namespace(rewards)
    rewards_BMD = xp.reshape(widen(rewards), (math.prod(batch), answers, objectives))
    if answers == 0:
        return narrow(xp.sum(rewards_BMD, axis=(1, 2)), rewards).reshape(batch)
    if mask is not None:
        mask_BM = xp.reshape(as_booleans(mask, "mask", rewards, (*batch, answers)), (-1, answers))
        rewards_BMD = _without_missing(rewards_BMD, mask_BM, xp)
    check_finite(xp.reshape(rewards_BMD, shape(rewards)), "rewards")
    return narrow(xp.reshape(_in_blocks(rewards_BMD, points_DK, xp), tuple(batch)), rewards)


def direction_columns(rewards: Array, concentration: Concentration, directions: ArrayLike | None) -> Array:
    """The directions to average over, (D, K), on the device of the rewards."""
    objectives = shape(rewards)[-1]
    if directions is None:
        return from_numpy(fixed_directions(objectives, concentration).T.copy(), rewards)
    if np.any(np.asarray(concentration) != 1.0):
        raise InputError(f"give directions or concentration, not both (concentration is {concentration})")
    points = as_array(directions, "directions")
    check_rank(points, "directions", "K, D", batched=False)
    if points.shape[0] == 0 or points.shape[1] != objectives:
        raise InputError(f"directions must have shape (K, {objectives}) with K of 1 or more, not {shape(points)}")
    check_weights(points, "directions")
    return from_numpy(to_numpy(points).T.astype("float64", order="C"), rewards)


def _without_missing(rewards_BMD: Array, mask_BM: Array, xp: Namespace) -> Array:
    """Replace each missing answer by a copy of a real one, which changes no maximum; by 0 if there is none."""
    first_real_B = xp.argmax(xp.astype(mask_BM, xp.uint8), axis=1)
    copies_BD = rewards_BMD[xp.arange(mask_BM.shape[0], device=device(mask_BM)), first_real_B]
    filled_BMD = xp.where(mask_BM[:, :, None], rewards_BMD, copies_BD[:, None, :])
    return xp.where(xp.any(mask_BM, axis=1)[:, None, None], filled_BMD, 0.0)


def _in_blocks(rewards_BMD: Array, points_DK: Array, xp: Namespace) -> Array:
    """Compute in blocks of sets, so that the scores (B, M, K) are never in memory together."""
    compute = partial(_expected_max, points_DK=points_DK, xp=xp)
    on_cpu = str(device(rewards_BMD)) == "cpu"
    sets = max(1, (_BLOCK_ON_CPU if on_cpu else _BLOCK_ON_DEVICE) // points_DK.shape[1])
    if getattr(rewards_BMD, "requires_grad", False):
        from torch.utils.checkpoint import checkpoint  # the backward pass recomputes each block

        compute = partial(checkpoint, compute, use_reentrant=False, preserve_rng_state=False)
        blocks = rewards_BMD.split(sets)  # slices would each fill a gradient of the whole
    else:
        blocks = [rewards_BMD[start : start + sets] for start in range(0, max(rewards_BMD.shape[0], 1), sets)]
    return xp.concat([compute(block) for block in blocks])


def _expected_max(rewards_BMD: Array, points_DK: Array, xp: Namespace) -> Array:
    """Average over the directions of the best answer.

    max_i w·r_i = w·r_1 + max(0, max_i w·(r_i − r_1)): the first term is linear, so it needs no directions
    but their mean.
    """
    mean_D = xp.mean(points_DK, axis=1)
    first_BD = rewards_BMD[:, 0, :]
    gain_BK = None
    for answer in range(1, rewards_BMD.shape[1]):
        scores_BK = (rewards_BMD[:, answer, :] - first_BD) @ points_DK
        gain_BK = xp.maximum(scores_BK, 0.0 if gain_BK is None else gain_BK)
    return first_BD @ mean_D + (0.0 if gain_BK is None else xp.mean(gain_BK, axis=1))
