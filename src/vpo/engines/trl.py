"""VPO and the methods beside it on a stock `trl.GRPOTrainer`, unpatched. Run against TRL 1.16.

    reward = reward_function(score=my_scorer, objectives=["correct", "short"], answers=3)
    dataset = ask_for(dataset, answers=3, chat=True)
    trainer = GRPOTrainer(model, reward_funcs=reward, args=grpo_config(reward, output_dir="run"), train_dataset=dataset)

How a method reaches the trainer: most are plain rewards, which TRL normalises in the group. `gdpo`, `maxrl`,
`max_at_k` and `vpo_marginal` with one answer look at the whole group; their advantage has mean zero in it, so it is
returned as the reward to a trainer that only subtracts the mean (`scale_rewards="none"`). `grpo_config` sets what fits,
and refuses what does not. `vpo_marginal` with sets and `vpo_anchored` have an advantage for each answer: use
`vpo.engines.answer_trainer.AnswerTrainer` instead of GRPOTrainer, or give a completion one reward:
``get("vpo_marginal", answers=1)``, ``get("vpo_anchored", anchor=0.9)``.
"""

import math
import os
from typing import TYPE_CHECKING, Any

from vpo.engines.compatibility import check, check_method, required_settings
from vpo.engines.prompts import ask_for, task_dataset
from vpo.engines.reward import RewardFunction, reward_function
from vpo.methods import Method, get

if TYPE_CHECKING:
    from trl import GRPOConfig

# Settings of the size of a batch. Without any of them, it is one that whole groups fit in.
_BATCH = {
    "per_device_train_batch_size",
    "gradient_accumulation_steps",
    "generation_batch_size",
    "steps_per_generation",
    "num_generations",
}

__all__ = ["RewardFunction", "ask_for", "check", "grpo_config", "reward_function", "task_dataset"]


def grpo_config(method: "str | Method | RewardFunction", **settings: Any) -> "GRPOConfig":
    """The `GRPOConfig` that fits a method: how rewards are scaled, the loss, the length of completions.

    Args:
        method: a name, a method, or best the reward function itself, whose group it is then checked with.
        settings: any of `GRPOConfig`'s, and `max_tokens` (256), by which m answers set max_completion_length.
    """
    import torch
    from trl import GRPOConfig

    reward = method if isinstance(method, RewardFunction) else None
    chosen = method.method if isinstance(method, RewardFunction) else get(method)
    settings.setdefault("max_completion_length", settings.pop("max_tokens", 256) * chosen.answers)
    for name, value in required_settings(chosen).items():
        settings.setdefault(name, value)
    if reward and reward.group is not None:
        if not _BATCH.intersection(settings):
            rollouts = GRPOConfig.per_device_train_batch_size * int(os.environ.get("WORLD_SIZE", 1))
            settings["gradient_accumulation_steps"] = math.lcm(rollouts, reward.group) // rollouts
        settings.setdefault("num_generations", reward.group)
    # Reasoning models think once, before the first answer, or not at all, as in the paper; others ignore this.
    settings.setdefault("chat_template_kwargs", {"enable_thinking": False})
    if not torch.cuda.is_available():
        settings.setdefault("bf16", False)  # TRL turns it on, and bf16 products crash some CPUs
    config = GRPOConfig(**settings)
    if reward:
        check(reward, config)
    else:
        check_method(chosen, config)
    return config
