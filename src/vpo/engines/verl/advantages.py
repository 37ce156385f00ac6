"""From what the reward function told of the rollouts of a step to their advantages: those of `vpo.advantages`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vpo.core.types import Floats
from vpo.engines.metrics import Scored, metrics
from vpo.engines.reward import RewardFunction
from vpo.engines.verl.reward import read_vectors
from vpo.methods import advantages


@dataclass(frozen=True)
class Rollout:
    """One completion of a step.

    Attributes:
        group: what the rollouts of one prompt share.
        problem: the name of the problem.
        score: what the reward function paid.
        vectors: of the answers, (M, D); None where they are not known.
        there: which answers are there.
    """

    group: str
    problem: str
    score: float
    vectors: Floats | None
    there: list[bool]


def read_rollout(group: str, told: Mapping[str, Any], answers: int) -> Rollout:
    """Return a rollout of a group from what `compute_score` returned for it, of so many answers."""
    found = read_vectors(told["vectors"])
    vectors, there = (None, [False] * answers) if found is None else found
    return Rollout(str(group), str(told["problem"]), float(told["score"]), vectors, there)


def rollout_advantages(reward: RewardFunction, rollouts: Sequence[Rollout], size: int, step: int) -> Floats:
    """Return the advantage of each rollout, (B,), or of each of its answers, (B, M); 0 where nothing is known.

    Args:
        reward: knows the method, w* and the seed.
        rollouts: of one step, in any order; a group may have lost some.
        size: rollouts that a group should have.
        step: how many were done before.
    """
    method = reward.method
    result = np.zeros((len(rollouts), method.answers) if method.per_answer else len(rollouts))
    groups = [places for places in groups_of(rollouts) if any(rollouts[place].vectors is not None for place in places)]
    if not groups:
        return result
    size = max(size, *map(len, groups))
    rewards, masks, valid_PG, targets = [], [], np.zeros((len(groups), size), dtype=bool), []
    for row, places in enumerate(groups):
        known = [vectors for place in places if (vectors := rollouts[place].vectors) is not None]
        rewards_GMD = np.zeros((size, *known[0].shape))
        mask_GM = np.zeros(rewards_GMD.shape[:2], dtype=bool)
        for column, place in enumerate(places):
            if (vectors := rollouts[place].vectors) is not None:
                rewards_GMD[column], mask_GM[column], valid_PG[row, column] = vectors, rollouts[place].there, True
        rewards.append(rewards_GMD)
        masks.append(mask_GM)
        targets.append(reward.target_of(rewards_GMD.shape[-1]))
    found_PG = advantages(
        method,
        rewards,
        target=targets,
        mask=masks,
        valid=valid_PG,
        seed=reward.seed,
        step=0 if method.target_in_prompt else step,  # the prompts were written before the first
        problems=[rollouts[places[0]].problem for places in groups],
    )
    for row, places in enumerate(groups):
        result[places] = found_PG[row, : len(places)]
    return result


def rollout_metrics(reward: RewardFunction, rollouts: Sequence[Rollout]) -> dict[str, float]:
    """Return what is worth watching of a step, by the names that other engines log it under."""
    batch = Scored(
        parsed=[["" if there else None for there in each.there] for each in rollouts],
        vectors=[each.vectors for each in rollouts],
        rewards=[None if each.vectors is None else each.score for each in rollouts],
        groups=groups_of(rollouts),
    )
    found = metrics(batch, reward.objectives, reward.target_of)
    return {f"vpo/{name}": each.value for name, each in found.items()}


def groups_of(rollouts: Sequence[Rollout]) -> list[list[int]]:
    """Return the places of the rollouts of each group."""
    found: dict[str, list[int]] = {}
    for place, rollout in enumerate(rollouts):
        found.setdefault(rollout.group, []).append(place)
    return list(found.values())
