"""Scored rollouts in groups, as `vpo.advantages` takes them, in the order of a trainer's batch again afterwards."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from vpo.core.types import Floats
from vpo.engines.metrics import Mean, mean
from vpo.methods import Method
from vpo.methods.batch import Batch
from vpo.methods.compute import batch_advantages, batch_rewards


@dataclass(frozen=True)
class RolloutGroup:
    """Rollouts of one problem.

    Attributes:
        indices: their positions in the batch.
        problem: its name, from which random weightings are sampled.
        states_target: whether the prompt states w*, and not a random weighting.
    """

    indices: Sequence[int]
    problem: str
    states_target: bool = False


@dataclass(frozen=True)
class GroupResult:
    """What a method makes of a batch.

    Attributes:
        rewards: of each rollout, (B,), or with `per_answer` of each answer, (B, M). NaN where one is not known, or its
            group is too small for the method.
        advantages: likewise, and 0 there.
        means: the method's own metrics, over groups.
    """

    rewards: Floats
    advantages: Floats
    means: dict[str, Mean]

    @classmethod
    def unknown(cls, rollouts: int, method: Method) -> "GroupResult":
        """That of a batch without any known reward."""
        shape = (rollouts, method.answers) if method.per_answer else (rollouts,)
        return cls(np.full(shape, np.nan), np.zeros(shape), {})


@dataclass(frozen=True)
class GroupedBatch:
    """The groups of a batch that have a known reward, padded to one size.

    Attributes:
        rollouts: B, how many there are in the whole batch.
        indices: positions in the batch of each group's rollouts.
        batch: the groups.
    """

    rollouts: int
    indices: list[Sequence[int]]
    batch: Batch

    @classmethod
    def of(
        cls,
        vectors: Sequence[Floats | None],
        masks: Sequence[Sequence[bool]],
        groups: Sequence[RolloutGroup],
        *,
        copies: Sequence[Sequence[bool]] | None,
        size: int,
        target_of: Callable[[int], Floats],
        seed: int,
        step: int,
    ) -> "GroupedBatch | None":
        """None where no reward is known.

        Args:
            vectors: of each rollout, (M, D); None where it is not known.
            masks: which answers of each rollout exist.
            groups: of the rollouts; one may have lost some.
            copies: which answers of each rollout repeat an earlier one; None where the method does not ask.
            size: rollouts that a group should have.
            target_of: from the number of objectives to w*.
            seed: of random weightings.
            step: likewise.
        """
        known = [group for group in groups if any(vectors[index] is not None for index in group.indices)]
        if not known:
            return None
        size = max(size, *(len(group.indices) for group in known))
        rewards, mask, repeated, valid = [], [], [], np.zeros((len(known), size), dtype=bool)
        for p, group in enumerate(known):
            shape = next(each.shape for index in group.indices if (each := vectors[index]) is not None)
            rewards_GMD = np.zeros((size, *shape))
            mask_GM, copies_GM = np.zeros((size, shape[0]), dtype=bool), np.zeros((size, shape[0]), dtype=bool)
            for g, index in enumerate(group.indices):
                if (vectors_MD := vectors[index]) is not None:
                    rewards_GMD[g], mask_GM[g], valid[p, g] = vectors_MD, masks[index], True
                    copies_GM[g] = False if copies is None else copies[index]
            rewards.append(rewards_GMD)
            mask.append(mask_GM)
            repeated.append(copies_GM)
        batch = Batch.of(
            rewards,
            target=[target_of(rewards_GMD.shape[-1]) for rewards_GMD in rewards],
            mask=mask,
            copies=None if copies is None else repeated,
            valid=valid,
            seed=seed,
            step=step,
            problems=[group.problem for group in known],
        )
        stated = tuple(
            replace(group, stated_D=group.target_D) if rollouts.states_target else group
            for group, rollouts in zip(batch.groups, known, strict=True)
        )
        return cls(len(vectors), [group.indices for group in known], replace(batch, groups=stated))

    def compute(self, method: Method) -> GroupResult:
        """Rewards, advantages and metrics by a method."""
        by_group = batch_rewards(method, self.batch)
        advantages = batch_advantages(method, self.batch, by_group)
        rewards = np.full(advantages.shape, np.nan)
        logged = []
        for p, group_rewards in enumerate(by_group):
            if group_rewards is not None:
                rewards[p, self.batch.known_PG[p]] = group_rewards
                logged.append(method.metrics(group_rewards, self.batch.groups[p]))
        means = {name: mean([each[name] for each in logged]) for name in method.metric_names if logged}
        return GroupResult(self._in_order(rewards, np.nan), self._in_order(advantages, 0.0), means)

    def _in_order(self, values: Floats, missing: float) -> Floats:
        """Values of groups, (P, G, …), by position in the batch, (B, …)."""
        result = np.full((self.rollouts, *values.shape[2:]), missing)
        for p, indices in enumerate(self.indices):
            result[list(indices)] = values[p, : len(indices)]
        return result
