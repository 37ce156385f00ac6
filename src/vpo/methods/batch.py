"""Advantages of a batch: checks the arguments, hands the method one group at a time, gathers the results."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from vpo.core.arrays import (
    Array,
    ArrayLike,
    as_array,
    as_booleans,
    check_finite,
    check_rank,
    check_weights,
    from_numpy,
    namespace,
    narrow,
    shape,
    to_numpy,
    widen,
)
from vpo.errors import InputError
from vpo.methods.group import Group, Method


def batch_advantages(
    method: Method,
    rewards: ArrayLike | Sequence[ArrayLike],
    *,
    target: ArrayLike | Sequence[ArrayLike] | None,
    mask: ArrayLike | Sequence[ArrayLike] | None,
    valid: ArrayLike | Sequence[ArrayLike] | None,
    seed: int,
    step: int,
) -> Array:
    """Return (P, G) from (P, G, M, D) or a list of groups (G, M, D). See `vpo.advantages`."""
    groups = _groups_of(rewards)
    masks = _per_problem(mask, "mask", len(groups))
    valids = _per_problem(valid, "valid", len(groups))
    targets = _targets(target, len(groups))
    rollouts = shape(groups[0])[0]
    method.check_group(rollouts)
    known, parts = [], []
    for problem, rewards_GMD in enumerate(groups):
        name = f"rewards[{problem}]"
        _check_group_shape(rewards_GMD, name, method, rollouts)
        known_G = _valid_rollouts(valids[problem], f"valid[{problem}]", rewards_GMD)
        group = Group(
            *_known_rewards(rewards_GMD, name, masks[problem], f"mask[{problem}]", known_G),
            target_D=_target(targets[problem], rewards_GMD),
            key=(seed, step, problem),
        )
        known.append(known_G)
        parts.append(_group_advantage(method, group))
    return narrow(_scatter(method.finish(namespace(parts[0]).concat(parts)), known, groups[0]), groups[0])


def _groups_of(rewards: ArrayLike | Sequence[ArrayLike]) -> list[Array]:
    if isinstance(rewards, list | tuple):
        groups = [as_array(group, f"rewards[{problem}]") for problem, group in enumerate(rewards)]
    else:
        array = as_array(rewards, "rewards")
        check_rank(array, "rewards", "P, G, M, D", batched=False)
        groups = list(array)
    if not groups:
        raise InputError("rewards must hold 1 or more problems, not 0")
    for problem, group in enumerate(groups):
        check_rank(group, f"rewards[{problem}]", "G, M, D", batched=False)
    return groups


def _per_problem(value: Any, name: str, problems: int) -> list[Any]:
    if value is None:
        return [None] * problems
    if len(value) != problems:
        raise InputError(f"{name} must have one entry for each of the {problems} problems, not {len(value)}")
    return list(value)


def _targets(target: Any, problems: int) -> list[Any]:
    """Return one weighting per problem from None, one for all, or one each."""
    if isinstance(target, list | tuple):
        shared = all(np.ndim(to_numpy(entry)) == 0 for entry in target)
    elif target is None:
        shared = True
    else:
        target = as_array(target, "target")
        shared = target.ndim <= 1
    return [target] * problems if shared else _per_problem(target, "target", problems)


def _target(target: Any, rewards_GMD: Array) -> Array:
    objectives = shape(rewards_GMD)[-1]
    if target is None:
        return from_numpy(np.full(objectives, 1 / objectives), rewards_GMD)
    weights = to_numpy(as_array(target, "target")).astype(np.float64)
    if weights.shape != (objectives,):
        raise InputError(f"target must hold one weight for each of {objectives} objectives, not shape {weights.shape}")
    check_weights(weights, "target")
    return from_numpy(weights, rewards_GMD)


def _check_group_shape(rewards_GMD: Array, name: str, method: Method, rollouts: int) -> None:
    group, answers, objectives = shape(rewards_GMD)
    if group != rollouts:
        raise InputError(f"groups must be of one size: {name} has {group} rollouts, rewards[0] has {rollouts}")
    if objectives < 1 or answers < 1:
        raise InputError(f"{name} must hold 1 or more answers and objectives, not {shape(rewards_GMD)}")
    if answers > 1 and not method.multi:
        raise InputError(f"{method.name} takes 1 answer per rollout, and {name} has {answers}")


def _valid_rollouts(valid: Any, name: str, rewards_GMD: Array) -> Array:
    rollouts = shape(rewards_GMD)[0]
    return as_booleans(np.ones(rollouts, bool) if valid is None else valid, name, rewards_GMD, (rollouts,))


def _known_rewards(rewards_GMD: Array, name: str, mask: Any, mask_name: str, known_G: Array) -> tuple[Array, Array]:
    """Return rewards and mask of the rollouts whose reward is known, zero where an answer is missing."""
    xp = namespace(rewards_GMD)
    sizes = shape(rewards_GMD)[:2]
    mask_GM = as_booleans(np.ones(sizes, bool) if mask is None else mask, mask_name, rewards_GMD, sizes)
    read = mask_GM[:, :, None] & known_G[:, None, None]
    wide_GMD = xp.where(read, widen(rewards_GMD), 0.0)
    check_finite(wide_GMD, name)
    return wide_GMD[known_G], mask_GM[known_G]


def _group_advantage(method: Method, group: Group) -> Array:
    """Return the advantages of a group's known rollouts; 0 if too few are left to compare."""
    rollouts = shape(group.rewards_GMD)[0]
    if rollouts < method.smallest_group:
        return from_numpy(np.zeros(rollouts), group.rewards_GMD)
    return method.advantage(group)


def _scatter(advantages: Array, known: list[Array], like: Array) -> Array:
    """Put the advantages of the known rollouts in their places, (P, G), and 0 elsewhere."""
    known_PG = namespace(like).stack(known)
    result_PG = from_numpy(np.zeros(shape(known_PG)), like)
    result_PG[known_PG] = advantages
    return result_PG
