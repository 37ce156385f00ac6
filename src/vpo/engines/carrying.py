"""What the engines share whose trainers take one number a rollout, and know less of their groups than TRL does."""

from collections.abc import Sequence

import numpy as np

from vpo.methods import Method
from vpo.util.errors import InputError


def check_one_reward(method: Method, trainer: str) -> None:
    """Refuse a method that pays each answer by itself: the trainer has one advantage for a whole completion."""
    if method.per_answer:
        raise InputError(
            f"{method.name} pays each answer by itself, and {trainer} has one advantage for a completion: give the set "
            f"one reward, vpo.methods.get({method.name!r}, anchor=0.9)"
        )


def filled(rewards: Sequence[float | None]) -> list[float]:
    """Return the rewards of a group with those that are not known at the mean of the others, or at 0 without any.

    For a trainer that has no word for an unknown reward: its advantage is then 0, as it should be, and no other changes
    its sign. The spread of the group comes out too small, by √((k − 1) / (G − 1)) with k of G known.
    """
    known = [reward for reward in rewards if reward is not None]
    mean = float(np.mean(known)) if known else 0.0
    return [mean if reward is None else reward for reward in rewards]
