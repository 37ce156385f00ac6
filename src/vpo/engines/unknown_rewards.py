"""Rewards that are not known, for trainers that have no way to leave a rollout out of its group."""

from collections.abc import Sequence

import numpy as np


def with_group_mean(rewards: Sequence[float | None]) -> list[float]:
    """The rewards of a group, unknown ones replaced by the mean of the others; 0 without any.

    The advantage of such a rollout is then 0, as it should be, and no other changes its sign. The spread of the group
    comes out too small, by √((k − 1) / (G − 1)) with k of G known.
    """
    known = [reward for reward in rewards if reward is not None]
    mean = float(np.mean(known)) if known else 0.0
    return [mean if reward is None else reward for reward in rewards]
