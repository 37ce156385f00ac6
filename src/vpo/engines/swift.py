"""VPO and the methods beside it in ms-swift: a file for `--external_plugins`. Run on ms-swift 4.6.0.

    from vpo.engines.reward import reward_function
    from vpo.engines.swift import register

    register(reward_function(score=my_scorer, objectives=["correct", "short"], answers=3))

    --external_plugins that_file.py --scale_rewards group
    --reward_funcs vpo vpo/diversity vpo/objective/correct --reward_weights 1 0 0

`gdpo`, `maxrl`, `max_at_k`, `vpo_marginal` and `dr_grpo` need `--scale_rewards none`. ms-swift logs rewards and nothing
else, so each metric is a reward function too, whose weight must be 0; name only those that you want to watch. Settings
that do not fit the method are refused when the trainer starts.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

from vpo.engines.caller import Caller
from vpo.engines.compatibility import check, check_one_reward
from vpo.engines.metrics import metric_names
from vpo.engines.reward import RewardFunction
from vpo.engines.rows import group_indices, rows_of
from vpo.engines.unknown_rewards import with_group_mean
from vpo.util.errors import InputError

SwiftFunction: TypeAlias = Callable[..., Sequence[float | None]]


def register(reward: RewardFunction) -> None:
    """Register a reward function with ms-swift as `vpo`, and each of its metrics as `vpo/…`.

    Call it in a file for `--external_plugins`, and name `vpo` first in `--reward_funcs`. Settings that would change the
    advantages of the method are refused when the trainer starts.

    Args:
        reward: made by `reward_function`, for a method with one reward per completion.
    """
    check_one_reward(reward.method, "ms-swift")
    from swift.rewards import orms

    plugin = SwiftPlugin(reward)
    orms["vpo"] = plugin.reward_function
    for name in metric_names(reward.objectives, reward.method):
        orms[f"vpo/{name}"] = partial(plugin.metric_function, f"vpo/{name}")


class SwiftPlugin:
    """Makes the functions that ms-swift calls in turn for each batch: `vpo` first, then each metric of that batch."""

    def __init__(self, reward: RewardFunction) -> None:
        """The arguments of the trainer come later."""
        self.reward = reward
        self.args: Any = None  # of the trainer, once ms-swift has made the function `vpo`
        self.metrics: dict[str, float] = {}  # of the last batch

    def reward_function(self, args: Any = None, **_: Any) -> SwiftFunction:
        """The function that returns the rewards; ms-swift passes the arguments of its trainer."""
        if args is not None:
            check_arguments(self.reward, args)
        self.args = args

        def vpo(completions: Sequence[str], messages: Sequence[Any], **columns: Any) -> list[float]:
            return self.rewards(completions, messages, **columns)

        return vpo

    def metric_function(self, name: str, args: Any = None, **_: Any) -> SwiftFunction:
        """A function that returns a metric of the batch that `vpo` has just scored."""
        if args is not None and self.args is not args:
            raise InputError(f"--reward_funcs must name vpo before {name}, which is a metric of its batch")
        if args is not None and not args.reward_weights:
            raise InputError(f"--reward_weights must be given with {name}: 1 for vpo, 0 for what is only logged")

        def metric(completions: Sequence[str], **columns: Any) -> list[float | None]:
            return [self.metrics.get(name)] * len(completions)

        metric.__name__ = name  # under which ms-swift logs it
        return metric

    def rewards(
        self,
        completions: Sequence[str],
        messages: Sequence[Any],
        completion_ids: Sequence[Sequence[int]] = (),
        trainer_state: Any = None,
        **columns: Any,
    ) -> list[float]:
        """The reward of each completion.

        ms-swift counts an unknown reward as 0, which is a bad one: it gets the mean of its group instead.
        """
        prompts = [each[:-1] for each in messages]  # the last message is the completion
        caller = Caller(
            step=getattr(trainer_state, "global_step", 0),
            group_size=getattr(self.args, "num_generations", None),
            max_completion_length=getattr(self.args, "max_completion_length", None),
            batches=getattr(trainer_state, "max_steps", None),
        )
        result = self.reward.score(rows_of(prompts, columns), completions, caller.truncated(completion_ids), caller)
        self.reward.check_known(result.known, caller)
        self.metrics = result.metrics
        rewards = [0.0] * len(completions)
        for indices in group_indices([{"prompt": prompt} for prompt in prompts], 0):
            group = with_group_mean([result.rewards[index] for index in indices])
            for index, reward in zip(indices, group, strict=True):
                rewards[index] = reward
        return rewards


def check_arguments(reward: RewardFunction, args: Any) -> None:
    """Refuse arguments of ms-swift under which it would not train on the method's advantages."""
    method = reward.method
    if not hasattr(args, "per_device_train_batch_size"):
        raise InputError("train with swift rlhf: the arguments of megatron are others, and were not tried")
    if args.advantage_estimator != "grpo":
        raise InputError(f"--advantage_estimator must be grpo, not {args.advantage_estimator}")
    if args.kl_in_reward and args.beta:
        raise InputError("--kl_in_reward must be false: it subtracts KL from the rewards before they are compared")
    if getattr(args, "multi_turn_scheduler", None):
        raise InputError(
            f"--multi_turn_scheduler must not be given, not {args.multi_turn_scheduler}: earlier turns would be read "
            "as the prompt, and the group of a rollout would not be known"
        )
    weights = args.reward_weights
    if weights and (weights[0] != 1 or any(weights[1:])):
        raise InputError(
            f"--reward_weights must be 1 for vpo, which stands first, and 0 for the others, not {weights}: what else "
            "counts belongs into the vector"
        )
    if method.whole_batch and args.dynamic_sample:
        raise InputError(f"--dynamic_sample must be false for {method.name}, which divides by the spread of the batch")
    if method.whole_batch and args.world_size > 1:
        raise InputError(
            f"{method.name} divides by the spread of the whole batch: train in 1 process, not {args.world_size}"
        )
    rollouts = args.per_device_train_batch_size * args.steps_per_generation
    if method.whole_group and rollouts % args.num_generations:
        raise InputError(
            f"{method.name} needs whole groups in one process: per_device_train_batch_size × steps_per_generation is "
            f"{rollouts}, and must be divisible by num_generations, {args.num_generations}"
        )
    check(reward, args)  # they are those of TRL, and more
