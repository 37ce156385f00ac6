"""VPO and the methods beside it in verifiers: a reward to plug into any taskset. Run on verifiers 0.4.0.

    from vpo.engines.reward import reward_function
    from vpo.engines.verifiers import hook

    reward = hook(reward_function(score=my_scorer, objectives=["correct", "short"], answers=3))

    [env.taskset.task.rewards]
    vpo = { fn = "that_file.py:reward" }

The score function's further parameters are fields of the task's data. verifiers scores one rollout at a time, so
methods that look at the whole group, or draw a weighting for it, are refused. How advantages are made of the rewards is
up to the trainer: docs/trainers.md.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from vpo.engines.compatibility import check_one_reward
from vpo.engines.reward import RewardFunction
from vpo.engines.scorer import RewardResult
from vpo.util.errors import InputError


def hook(reward: RewardFunction) -> Callable[[Any, Any], Awaitable[float]]:
    """The reward of a rollout as verifiers calls it; its metrics are recorded on the trace.

    The last reply of the rollout is read. Name it in the configuration of a taskset: ``rewards.vpo.fn``.

    Args:
        reward: made by `reward_function`, for a method whose reward depends on one rollout alone.
    """
    method = reward.method
    check_one_reward(method, "verifiers")
    if method.whole_group or (method.draws_weightings and not method.target_in_prompt):
        raise InputError(
            f"{method.name} needs the group of a rollout, and verifiers scores one rollout at a time: train it with "
            "TRL or ms-swift"
        )

    def score(task: Any, trace: Any) -> RewardResult:
        return reward.score([{**task.model_dump(), "prompt": task.prompt_text}], [trace.last_reply])

    async def vpo(task: Any, trace: Any) -> float:
        result = await asyncio.to_thread(score, task, trace)
        trace.record_metrics(result.metrics)
        (value,) = result.rewards
        if value is None:
            raise InputError("the reward of this rollout is not known")  # trainers drop rollouts with an error
        return value

    return vpo
