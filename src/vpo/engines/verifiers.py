"""VPO and the methods beside it in verifiers: a reward to plug into any taskset. Run on verifiers 0.4.0.

    from vpo.engines.reward import reward_function
    from vpo.engines.verifiers import hook

    reward = hook(reward_function(score=my_scorer, objectives=["correct", "short"], answers=3))

    [env.taskset.task.rewards]
    vpo = { fn = "that_file.py:reward" }

The scorer's further parameters are fields of the task's data. verifiers scores one rollout at a time, so the methods
that look at the whole group, or draw a weighting for it, are refused. What becomes of the rewards is the trainer's:
docs/trainers.md.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from vpo.engines.carrying import check_one_reward
from vpo.engines.reward import RewardFunction
from vpo.util.errors import InputError


def hook(reward: RewardFunction) -> Callable[[Any, Any], Awaitable[float]]:
    """Return the reward of a rollout as verifiers calls it; its metrics go onto the trace."""
    method = reward.method
    check_one_reward(method, "verifiers")
    if method.whole_group or (method.keyed and not method.target_in_prompt):
        raise InputError(
            f"{method.name} needs the group of a rollout, and verifiers scores one rollout at a time: train it with "
            "TRL or ms-swift"
        )

    def pay(task: Any, trace: Any) -> tuple[float | None, dict[str, float]]:
        columns = {name: [value] for name, value in task.model_dump().items() if name != "prompt"}
        logged: dict[str, float] = {}
        (paid,) = reward([task.prompt_text], [trace.last_reply], log_metric=logged.__setitem__, **columns)
        return paid, logged

    async def vpo(task: Any, trace: Any) -> float:
        paid, logged = await asyncio.to_thread(pay, task, trace)
        trace.record_metrics(logged)
        if paid is None:
            raise InputError("the reward of this rollout is not known")  # an error, and trainers leave those out
        return paid

    return vpo
