"""Rewards and advantages of a batch: the method sees one group at a time, then all advantages together."""

import warnings
from collections.abc import Sequence

import numpy as np

from vpo.core.arrays import from_numpy, namespace, narrow, shape
from vpo.core.types import Array, ArrayLike
from vpo.methods.base import Method
from vpo.methods.batch import Batch
from vpo.methods.registry import get
from vpo.util.errors import InputError

_WARNED: set[str] = set()  # names of methods


def advantages(
    method: str | Method,
    rewards: ArrayLike | Sequence[ArrayLike],
    *,
    target: ArrayLike | Sequence[ArrayLike] | None = None,
    mask: ArrayLike | Sequence[ArrayLike] | None = None,
    copies: ArrayLike | Sequence[ArrayLike] | None = None,
    valid: ArrayLike | Sequence[ArrayLike] | None = None,
    seed: int = 0,
    step: int = 0,
    problems: Sequence[int | str] | None = None,
) -> Array:
    """The advantage of every rollout of a batch, (P, G, M, D) → (P, G); with `per_answer` of every answer, (P, G, M).

    Args:
        method: a name, such as "vpo", or a method: one with settings from `get`, or one of your own.
        rewards: the score vectors, or a list of groups (G, M, D) where D or M differs between problems.
        target: w*, the deployed weighting, (D,) or one per problem. Uniform by default.
        mask: true for real answers, (P, G, M) or a list of (G, M). A missing answer scores 0.
        copies: true for answers that repeat an earlier one of their set, (P, G, M) or a list of (G, M), for methods
            that leave them out. By default those with the score vector of an earlier answer.
        valid: true for rollouts whose reward is known, (P, G) or a list of (G,). The others are left out of their
            group's statistics, get advantage 0, and their rewards are not read.
        seed: for methods that draw weightings, together with the step and the problem.
        step: the training step, for the same methods.
        problems: names of the problems, for the same methods, so that a group draws the same weighting at any
            position in a batch and in any process. Their positions in the batch by default.
    """
    chosen = get(method)
    batch = Batch.of(
        rewards, target=target, mask=mask, copies=copies, valid=valid, seed=seed, step=step, problems=problems
    )
    warn_single_answer(chosen, batch.answers)
    return batch_advantages(chosen, batch, batch_rewards(chosen, batch))


def batch_rewards(method: Method, batch: Batch) -> list[Array | None]:
    """The rounded rewards of each group's known rollouts; None for a group that is too small for the method."""
    method.check_group_size(shape(batch.known_PG)[1])
    if batch.answers > 1 and not method.takes_sets:
        raise InputError(f"{method.name} takes 1 answer per rollout, and rewards has {batch.answers}")
    smallest = method.min_group_size if method.whole_group else 1
    return [
        method.rounded_rewards(group) if shape(group.rewards_GMD)[0] >= smallest else None for group in batch.groups
    ]


def batch_advantages(method: Method, batch: Batch, rewards: Sequence[Array | None]) -> Array:
    """(P, G) or (P, G, M); 0 for rollouts without a known reward and in groups with too few known rewards."""
    each = (batch.answers,) if method.per_answer else ()
    result = from_numpy(np.zeros((*shape(batch.known_PG), *each)), batch.like)
    large = [p for p, group in enumerate(batch.groups) if shape(group.rewards_GMD)[0] >= method.min_group_size]
    if large:
        parts = [_padded(method.advantages(rewards[p], batch.groups[p]), each) for p in large]
        rescaled = method.rescale_batch(namespace(result).concat(parts))
        in_large_PG = from_numpy(np.isin(np.arange(len(batch.groups)), large), batch.like)[:, None] & batch.known_PG
        result[in_large_PG] = rescaled
    return narrow(result, batch.like)


def _padded(advantages: Array, each: tuple[int, ...]) -> Array:
    """Advantages by answer with zeros for the answers that only other problems have."""
    if shape(advantages)[1:] == each:
        return advantages
    rollouts, answers = shape(advantages)
    zeros = from_numpy(np.zeros((rollouts, each[0] - answers)), advantages)
    return namespace(advantages).concat([advantages, zeros], axis=1)


def warn_single_answer(method: Method, answers: int) -> None:
    """Warn, once per method, that a method for sets is another one where a rollout has one answer."""
    if method.degenerates_to and answers == 1 and method.name not in _WARNED:
        _WARNED.add(method.name)
        warnings.warn(
            f"{method.name} with one answer per rollout is {method.degenerates_to}: ask for two or more answers to "
            "train for variety",
            stacklevel=3,
        )
