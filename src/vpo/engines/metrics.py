"""What is worth watching while a model trains on vectors."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from vpo.core.diversity import pairwise_l1
from vpo.core.set_reward import set_reward
from vpo.core.types import Floats
from vpo.engines.grading import Answers

T = TypeVar("T")


@dataclass(frozen=True)
class Scored:
    """A batch of completions after scoring.

    Attributes:
        parsed: the answers of each completion.
        vectors: their scores, (M, D) each; None where they are not known.
        rewards: what each completion was paid; None likewise.
        groups: the places of the completions of each group.
    """

    parsed: Sequence[Answers]
    vectors: Sequence[Floats | None]
    rewards: Sequence[float | None]
    groups: Sequence[Sequence[int]]


class Mean(NamedTuple):
    """A mean that can be put together out of parts: a total, and of how many. Of none it is the total itself."""

    total: float
    number: int

    @property
    def value(self) -> float:
        """The mean."""
        return self.total / self.number if self.number else self.total


def mean(values: Sequence[float] | Floats) -> Mean:
    """Return a mean of some values."""
    return Mean(float(np.sum(values)), len(values))


def merged(parts: Sequence[dict[str, Mean]]) -> dict[str, Mean]:
    """Return the means of a whole out of those of its parts, which may lack some."""
    found: dict[str, Mean] = {}
    for part in parts:
        for name, each in part.items():
            before = found.get(name, Mean(0.0, 0))
            found[name] = Mean(before.total + each.total, before.number + each.number)
    return found


def given(answers: Answers) -> list[bool]:
    """Return which answers are there."""
    return [answer is not None for answer in answers]


def names(objectives: Sequence[str]) -> list[str]:
    """Return the names of all that `metrics` may find."""
    found = ["parse_rate", "unknown", "set_reward", "target", *(f"objective/{name}" for name in objectives)]
    return [*found, "diversity", "groups_without_spread"]


def metrics(batch: Scored, objectives: Sequence[str], target: Callable[[int], Floats]) -> dict[str, Mean]:
    """Return each objective, w*·r, the set reward, diversity, the parse rate, the share of groups without spread, and
    how many completions have a reward that is not known.

    Args:
        batch: what was scored.
        objectives: their names; none where problems differ in them.
        target: from the number of objectives to w*.
    """
    known = [
        (vectors, given(answers))
        for vectors, answers in zip(batch.vectors, batch.parsed, strict=True)
        if vectors is not None
    ]
    everything = [there for answers in batch.parsed for there in given(answers)]
    found = {"parse_rate": mean(everything), "unknown": Mean(len(batch.vectors) - len(known), 0)}
    if not known:
        return found
    set_rewards, targets = [], []
    for pairs in _alike(known, lambda pair: pair[0].shape):
        vectors_NMD, mask_NM = map(np.stack, zip(*pairs, strict=True))
        set_rewards.append(set_reward(vectors_NMD, mask=mask_NM))
        targets.append((vectors_NMD @ target(vectors_NMD.shape[-1])).mean(axis=1))
    found["set_reward"] = mean(np.concatenate(set_rewards))
    found["target"] = mean(np.concatenate(targets))
    if objectives:
        scores_nD = np.concatenate([vectors for vectors, _ in known])
        found |= {f"objective/{name}": mean(scores_n) for name, scores_n in zip(objectives, scores_nD.T, strict=True)}
    groups = [[vectors for place in group if (vectors := batch.vectors[place]) is not None] for group in batch.groups]
    pools = [np.concatenate(group) for group in groups if group]
    distances = [pairwise_l1(np.stack(alike)) for alike in _alike(pools, lambda pool_nD: pool_nD.shape)]
    found["diversity"] = mean(np.concatenate(distances))
    paid = [[reward for place in group if (reward := batch.rewards[place]) is not None] for group in batch.groups]
    found["groups_without_spread"] = mean([max(each) == min(each) for each in paid if each])
    return found


def _alike(items: Iterable[T], shape: Callable[[T], tuple[int, ...]]) -> Iterable[list[T]]:
    """Return items by their shape: all of one at once is what makes it quick."""
    found: dict[tuple[int, ...], list[T]] = {}
    for item in items:
        found.setdefault(shape(item), []).append(item)
    return found.values()
