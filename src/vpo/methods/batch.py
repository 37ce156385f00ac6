"""The arguments of `vpo.advantages`, checked and split into groups."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import array_api_compat
import numpy as np

from vpo.core.arrays import as_array, from_numpy, namespace, shape, to_numpy, widen
from vpo.core.checks import as_booleans, as_integer, check_finite, check_rank, check_weights
from vpo.core.types import Array, ArrayLike
from vpo.methods.group import Group
from vpo.util.errors import InputError


@dataclass(frozen=True)
class Batch:
    """A batch whose arguments have been checked.

    Attributes:
        groups: of each problem, its rollouts with known rewards.
        known_PG: which rollouts those are.
        like: the first group as it was passed, for the array type of the result.
        answers: the most answers of any rollout.
    """

    groups: tuple[Group, ...]
    known_PG: Array
    like: Array
    answers: int

    @classmethod
    def of(
        cls,
        rewards: ArrayLike | Sequence[ArrayLike],
        *,
        target: ArrayLike | Sequence[ArrayLike] | None,
        mask: ArrayLike | Sequence[ArrayLike] | None,
        copies: ArrayLike | Sequence[ArrayLike] | None = None,
        valid: ArrayLike | Sequence[ArrayLike] | None,
        seed: int,
        step: int,
        problems: Sequence[int | str] | None,
    ) -> "Batch":
        """Check the arguments of `vpo.advantages`."""
        arrays = _groups_of(rewards)
        count = len(arrays)
        masks, valids = _per_problem(mask, "mask", count), _per_problem(valid, "valid", count)
        copied = _per_problem(copies, "copies", count)
        targets, names = _targets(target, count), _per_problem(problems, "problems", count)
        key = as_integer(seed, "seed"), as_integer(step, "step")
        groups, known = [], []
        weightings: dict[tuple[int, int], Array] = {}
        for p, rewards_GMD in enumerate(arrays):
            known_G = _known_rollouts(valids[p], f"valid[{p}]", rewards_GMD)
            known_GMD, mask_GM = _known_rewards(rewards_GMD, f"rewards[{p}]", masks[p], f"mask[{p}]", known_G)
            which = id(targets[p]), shape(rewards_GMD)[-1]
            if which not in weightings:  # most often one serves all
                name = "target" if targets[p] is target else f"target[{p}]"
                weightings[which] = _target(targets[p], name, rewards_GMD)
            problem = p if names[p] is None else names[p]
            copies_GM = _known_copies(copied[p], f"copies[{p}]", rewards_GMD, known_G)
            groups.append(Group(known_GMD, mask_GM, weightings[which], (*key, problem), copies_GM=copies_GM))
            known.append(known_G)
        answers = max(shape(rewards_GMD)[1] for rewards_GMD in arrays)
        return cls(tuple(groups), namespace(arrays[0]).stack(known), arrays[0], answers)


def _groups_of(rewards: ArrayLike | Sequence[ArrayLike]) -> list[Array]:
    """The rewards of each problem, (G, M, D), all of one array type and one G."""
    if isinstance(rewards, list | tuple):
        groups = [as_array(group, f"rewards[{p}]") for p, group in enumerate(rewards)]
    else:
        array = as_array(rewards, "rewards")
        check_rank(array, "rewards", "P, G, M, D", batched=False)
        groups = list(array)
    if not groups:
        raise InputError("rewards must hold 1 or more problems, not 0")
    for p, group in enumerate(groups):
        check_rank(group, f"rewards[{p}]", "G, M, D", batched=False)
        if 0 in shape(group)[1:]:
            raise InputError(f"rewards[{p}] must hold 1 or more answers and objectives, not {shape(group)}")
        if group.shape[0] != groups[0].shape[0]:
            raise InputError(
                f"groups must be of one size: rewards[{p}] has {group.shape[0]} rollouts, "
                f"rewards[0] has {groups[0].shape[0]}"
            )
        if array_api_compat.is_torch_array(group) != array_api_compat.is_torch_array(groups[0]):
            raise InputError(f"groups must be of one kind: rewards[{p}] is {type(group)}, rewards[0] {type(groups[0])}")
    return groups


def _per_problem(value: Any, name: str, problems: int) -> list[Any]:
    """One entry per problem; None for each where the argument is None."""
    if value is None:
        return [None] * problems
    if not hasattr(value, "__len__") or len(value) != problems:
        size = len(value) if hasattr(value, "__len__") else repr(value)
        raise InputError(f"{name} must have one entry for each of the {problems} problems, not {size}")
    return list(value)


def _targets(target: Any, problems: int) -> list[Any]:
    """One weighting per problem, from None, one for all, or one each."""
    if isinstance(target, list | tuple):
        shared = all(np.ndim(to_numpy(entry)) == 0 for entry in target)
    elif target is None:
        shared = True
    else:
        target = as_array(target, "target")
        shared = target.ndim <= 1
    return [target] * problems if shared else _per_problem(target, "target", problems)


def _target(target: Any, name: str, rewards_GMD: Array) -> Array:
    objectives = shape(rewards_GMD)[-1]
    if target is None:
        return from_numpy(np.full(objectives, 1 / objectives), rewards_GMD)
    weights = to_numpy(as_array(target, name)).astype(np.float64)
    if weights.shape != (objectives,):
        raise InputError(f"{name} must hold one weight for each of {objectives} objectives, not shape {weights.shape}")
    check_weights(weights, name)
    return from_numpy(weights, rewards_GMD)


def _known_rollouts(valid: Any, name: str, rewards_GMD: Array) -> Array:
    rollouts = shape(rewards_GMD)[0]
    return as_booleans(np.ones(rollouts, bool) if valid is None else valid, name, rewards_GMD, (rollouts,))


def _known_copies(copies: Any, name: str, rewards_GMD: Array, known_G: Array) -> Array | None:
    if copies is None:
        return None
    return as_booleans(copies, name, rewards_GMD, shape(rewards_GMD)[:2])[known_G]


def _known_rewards(rewards_GMD: Array, name: str, mask: Any, mask_name: str, known_G: Array) -> tuple[Array, Array]:
    """Rewards and mask of the rollouts whose reward is known; zero where an answer is missing."""
    xp = namespace(rewards_GMD)
    sizes = shape(rewards_GMD)[:2]
    mask_GM = as_booleans(np.ones(sizes, bool) if mask is None else mask, mask_name, rewards_GMD, sizes)
    read = mask_GM[:, :, None] & known_G[:, None, None]
    wide_GMD = xp.where(read, widen(rewards_GMD), 0.0)
    check_finite(wide_GMD, name)
    return wide_GMD[known_G], mask_GM[known_G]
