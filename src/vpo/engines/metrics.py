"""What is worth watching while a model trains on vectors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vpo.core.diversity import pairwise_l1
from vpo.core.set_reward import set_reward
from vpo.core.types import Floats
from vpo.engines.grading import Answers
from vpo.methods import Method
from vpo.util.grouping import group_by


@dataclass(frozen=True)
class ScoredBatch:
    """A batch of completions after scoring.

    Attributes:
        parsed: the answers of each completion.
        strict: which of them are in the form that was asked for.
        vectors: their scores, (M, D) each; None where they are not known.
        rewards: of each completion; None likewise.
        groups: the indices of the completions of each group.
    """

    parsed: Sequence[Answers]
    strict: Sequence[Sequence[bool]]
    vectors: Sequence[Floats | None]
    rewards: Sequence[float | None]
    groups: Sequence[Sequence[int]]


class Mean(NamedTuple):
    """A mean that can be merged with others: a total and a number of values. With number 0 it is the total, a count."""

    total: float
    number: int

    @property
    def value(self) -> float:
        """The mean."""
        return self.total / self.number if self.number else self.total


def mean(values: Sequence[float] | Floats) -> Mean:
    """The mean of some values."""
    return Mean(float(np.sum(values)), len(values))


def merged(parts: Sequence[dict[str, Mean]]) -> dict[str, Mean]:
    """The means of a whole out of those of its parts, which may lack some."""
    result: dict[str, Mean] = {}
    for part in parts:
        for name, each in part.items():
            before = result.get(name, Mean(0.0, 0))
            result[name] = Mean(before.total + each.total, before.number + each.number)
    return result


def answer_mask(answers: Answers) -> list[bool]:
    """Which answers of a completion are not missing."""
    return [answer is not None for answer in answers]


def known_rewards(parsed: Sequence[Answers], vectors: Sequence[Floats | None]) -> Mean:
    """The share of completions with an answer whose reward is known: one without an answer is known to be worth 0."""
    pairs = zip(parsed, vectors, strict=True)
    return mean([each is not None for answers, each in pairs if each is None or any(answer_mask(answers))])


def metric_names(objectives: Sequence[str], method: Method) -> list[str]:
    """The names of all that is logged with a score function.

    They are those of what `metrics` may return, those of the method's own metrics, and how often the function raised.
    """
    first = [
        "parse_rate",
        "read_rate",
        "unknown",
        "set_reward",
        "target",
        *(f"objective/{name}" for name in objectives),
    ]
    return [*first, "diversity", "groups_without_spread", *method.metric_names, "raised"]


def metrics(batch: ScoredBatch, objectives: Sequence[str], target: Callable[[int], Floats]) -> dict[str, Mean]:
    """Each objective, w*·r, the set reward, diversity, the share of groups without spread, how many completions have a
    reward that is not known, and two shares of the answers: of those in the form that was asked for, the parse rate,
    and of those that could be read, in that form or another, the read rate.

    Args:
        batch: what was scored.
        objectives: their names; none where problems differ in them.
        target: from the number of objectives to w*.
    """
    known = [
        (vectors, answer_mask(answers))
        for vectors, answers in zip(batch.vectors, batch.parsed, strict=True)
        if vectors is not None
    ]
    result = {
        "parse_rate": mean([each for answers in batch.strict for each in answers]),
        "read_rate": mean([each for answers in batch.parsed for each in answer_mask(answers)]),
        "unknown": Mean(len(batch.vectors) - len(known), 0),
    }
    if not known:
        return result
    set_rewards, targets = [], []
    for pairs in group_by(known, lambda pair: pair[0].shape).values():
        vectors_NMD, mask_NM = map(np.stack, zip(*pairs, strict=True))
        set_rewards.append(set_reward(vectors_NMD, mask=mask_NM))
        targets.append((vectors_NMD @ target(vectors_NMD.shape[-1])).mean(axis=1))
    result["set_reward"] = mean(np.concatenate(set_rewards))
    result["target"] = mean(np.concatenate(targets))
    if objectives:
        scores_nD = np.concatenate([vectors for vectors, _ in known])
        result |= {f"objective/{name}": mean(scores_n) for name, scores_n in zip(objectives, scores_nD.T, strict=True)}
    groups = [[vectors for index in group if (vectors := batch.vectors[index]) is not None] for group in batch.groups]
    pools = [np.concatenate(group) for group in groups if group]
    distances = [pairwise_l1(np.stack(alike)) for alike in group_by(pools, lambda pool_nD: pool_nD.shape).values()]
    result["diversity"] = mean(np.concatenate(distances))
    rewards = [[reward for index in group if (reward := batch.rewards[index]) is not None] for group in batch.groups]
    result["groups_without_spread"] = mean([max(each) == min(each) for each in rewards if each])
    return result
