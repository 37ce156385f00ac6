"""From what the reward function returned for the rollouts of a step to their advantages: those of `vpo.advantages`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vpo.core.types import Floats
from vpo.engines.grading import Answers
from vpo.engines.grouped import GroupedBatch, GroupResult, RolloutGroup
from vpo.engines.metrics import Mean, ScoredBatch, known_rewards, mean, metrics
from vpo.engines.scorer import RewardScorer
from vpo.engines.verl.reward import read_vectors
from vpo.util.grouping import group_by


@dataclass(frozen=True)
class Rollout:
    """One completion of a step.

    Attributes:
        group: shared by the rollouts of one prompt.
        problem: the name of the problem.
        score: its reward in verl's log.
        vectors: of the answers, (M, D); None where they are not known.
        mask: which answers exist.
        copies: which answers repeat an earlier one; None where the method does not ask.
        parse_rate: the share of its answers in the form that was asked for, also where its vectors are not known.
        read_rate: the share that could be read, likewise.
    """

    group: str
    problem: str
    score: float
    vectors: Floats | None
    mask: list[bool]
    copies: list[bool] | None
    parse_rate: float
    read_rate: float


def read_rollout(group: str, info: Mapping[str, Any], answers: int, *, truncated: bool = False) -> Rollout:
    """A rollout of a group from what `compute_score` returned for it.

    Args:
        group: shared by the rollouts of one prompt.
        info: what the reward function returned.
        answers: that a completion should have.
        truncated: whether the token budget cut the completion off. Then an answer without its closing tag does not
            count: training would teach not to end answers otherwise.
    """
    cut = truncated and info["cut_vectors"] != ""
    known = read_vectors(info["cut_vectors"] if cut else info["vectors"])
    vectors, mask, copies = (None, [False] * answers, None) if known is None else known
    rates = float(info["parse_rate"]), float(info["read_rate"]) - cut / answers
    return Rollout(str(group), str(info["problem"]), float(info["score"]), vectors, mask, copies, *rates)


def rollout_result(reward: RewardScorer, rollouts: Sequence[Rollout], size: int, step: int) -> GroupResult:
    """The advantage of each rollout, or of each of its answers, and the method's own metrics.

    Args:
        reward: has the method, w* and the seed.
        rollouts: of one step, in any order; a group may have lost some.
        size: rollouts that a group should have.
        step: how many were done before.
    """
    method = reward.method
    grouped = GroupedBatch.of(
        [rollout.vectors for rollout in rollouts],
        [rollout.mask for rollout in rollouts],
        [RolloutGroup(indices, rollouts[indices[0]].problem) for indices in _groups(rollouts)],
        copies=[each.copies or [False] * method.answers for each in rollouts] if method.reads_copies else None,
        size=size,
        target_of=reward.target_of,
        seed=reward.seed,
        step=0 if method.target_in_prompt else step,  # the prompts were written before the first step
    )
    if grouped is None:
        return GroupResult.unknown(len(rollouts), method)
    return grouped.compute(method)


def known_share(rollouts: Sequence[Rollout]) -> Mean:
    """The share of rollouts with an answer whose reward is known."""
    parsed: list[Answers] = [["" if exists else None for exists in each.mask] for each in rollouts]
    return known_rewards(parsed, [each.vectors for each in rollouts])


def read_rate(rollouts: Sequence[Rollout]) -> Mean:
    """The share of the answers that could be read."""
    return mean([each.read_rate for each in rollouts])


def rollout_metrics(reward: RewardScorer, rollouts: Sequence[Rollout], own: Mapping[str, Mean]) -> dict[str, float]:
    """The metrics of a step, `own` included, by the names that other engines log them under."""
    batch = ScoredBatch(
        parsed=[["" if exists else None for exists in each.mask] for each in rollouts],
        strict=[[] for _ in rollouts],
        vectors=[each.vectors for each in rollouts],
        rewards=[None if each.vectors is None else each.score for each in rollouts],
        groups=_groups(rollouts),
    )
    means = metrics(batch, reward.objectives, reward.target_of)
    # Every rollout has as many answers, so these are the shares of all of them.
    rates = {"parse_rate": mean([each.parse_rate for each in rollouts]), "read_rate": read_rate(rollouts)}
    return {f"vpo/{name}": each.value for name, each in {**means, **rates, **own}.items()}


def _groups(rollouts: Sequence[Rollout]) -> list[list[int]]:
    """The indices of the rollouts of each prompt."""
    return list(group_by(range(len(rollouts)), lambda index: rollouts[index].group).values())
