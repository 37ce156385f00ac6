"""From a batch of score vectors to advantages: ten methods, one short file each.

`advantages` does it in one call. `get` gives a method by name, with what a trainer must know of it.
"""

import warnings
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from vpo.core.types import Array, ArrayLike
from vpo.methods.batch import Batch, batch_advantages
from vpo.methods.dr_grpo import DrGrpo
from vpo.methods.gdpo import Gdpo
from vpo.methods.goal_conditioned import GoalConditioned
from vpo.methods.group import Group, Method, drawn_weighting
from vpo.methods.grpo import Grpo
from vpo.methods.max_at_k import MaxAtK
from vpo.methods.maxrl import MaxRl
from vpo.methods.multi_rlvr import MultiRlvr
from vpo.methods.random_weighting import RandomWeighting
from vpo.methods.vpo import Vpo
from vpo.methods.vpo_anchored import VpoAnchored
from vpo.util.errors import InputError, nearest

METHODS: dict[str, type[Method]] = {
    method.name: method
    for method in (
        Grpo,
        DrGrpo,
        Gdpo,
        MaxRl,
        MaxAtK,
        RandomWeighting,
        GoalConditioned,
        MultiRlvr,
        Vpo,
        VpoAnchored,
    )
}

__all__ = ["METHODS", "Group", "Method", "advantages", "drawn_weighting", "get"]


def get(name: str, **settings: Any) -> Method:
    """Return a method by name, with settings such as ``answers=5`` in place of its defaults."""
    if not isinstance(name, str) or name not in METHODS:
        raise InputError(f"method {name!r} is not known: {nearest(str(name), METHODS)}")
    known = [field.name for field in fields(METHODS[name])]
    for setting in settings:
        if setting not in known:
            raise InputError(f"{name} has no setting {setting!r}: there are {', '.join(known)}")
    return METHODS[name](**settings)


def advantages(
    name: str | Method,
    rewards: ArrayLike | Sequence[ArrayLike],
    *,
    target: ArrayLike | Sequence[ArrayLike] | None = None,
    mask: ArrayLike | Sequence[ArrayLike] | None = None,
    valid: ArrayLike | Sequence[ArrayLike] | None = None,
    seed: int = 0,
    step: int = 0,
    problems: Sequence[int | str] | None = None,
) -> Array:
    """Return the advantage of every rollout of a batch, (P, G, M, D) → (P, G).

    Where a method pays each answer by itself (`per_answer`), of every answer: (P, G, M).

    Args:
        name: a method's name, such as "vpo", or a method with settings of its own from `get`.
        rewards: the score vectors, or a list of groups (G, M, D) where D or M differs between problems.
        target: w*, the deployed weighting, (D,) or one per problem. Uniform by default.
        mask: true for real answers, (P, G, M) or a list of (G, M). A missing answer scores nothing.
        valid: true for rollouts whose reward is known, (P, G) or a list of (G,). The others take no part in their
            group's statistics, get advantage 0, and their rewards are not read.
        seed: what the methods that draw weightings draw from, together with the step and the problem.
        step: the training step, for the same methods.
        problems: names of the problems, for the same methods, so that a group draws the same weighting wherever it
            stands in a batch and in whatever process. Their places in the batch by default.
    """
    method = name if isinstance(name, Method) else get(name)
    batch = Batch.of(rewards, target=target, mask=mask, valid=valid, seed=seed, step=step, problems=problems)
    warn_alone(method, batch.answers)
    return batch_advantages(method, batch)


def warn_alone(method: Method, answers: int) -> None:
    """Warn, once, of a method that does nothing of its own with one answer."""
    if method.alone and answers == 1 and method.name not in _WARNED:
        _WARNED.add(method.name)
        warnings.warn(
            f"{method.name} with one answer per rollout is {method.alone}: ask for two or more answers to train "
            "for variety",
            stacklevel=3,
        )


_WARNED: set[str] = set()
