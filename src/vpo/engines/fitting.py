"""Which arguments of a GRPO trainer fit a method, and which do not."""

from typing import TYPE_CHECKING, Any

from vpo.methods import Method
from vpo.util.errors import InputError

if TYPE_CHECKING:
    from trl import GRPOConfig

    from vpo.engines.reward import RewardFunction


def fitting(method: Method) -> dict[str, str]:
    """Return the settings of `GRPOConfig` that a method must have."""
    fitting = {"multi_objective_aggregation": "sum_then_normalize"}  # the other ignores scale_rewards
    fitting["scale_rewards"] = "none" if method.whole_group or method.name == "dr_grpo" else "group"
    if method.name == "dr_grpo":
        fitting["loss_type"] = "dr_grpo"
    return fitting


def check(reward: "RewardFunction", args: "GRPOConfig") -> None:
    """Refuse a config that would not train what the reward function delivers, with the setting to change.

    A reward function checks the trainer that calls it, before its first update.
    """
    method = reward.method
    check_method(method, args)
    if reward.group not in (None, args.num_generations):
        raise InputError(f"num_generations must be {reward.group}, the group of the reward, not {args.num_generations}")
    if method.whole_group and args.num_generations_eval not in (None, args.num_generations):
        raise InputError(
            f"num_generations_eval must be {reward.group} for {method.name}, not {args.num_generations_eval}"
        )
    reward.longest = args.max_completion_length


def check_trainer(reward: "RewardFunction", trainer: Any) -> None:
    """Refuse a trainer that cannot give each answer an advantage of its own, where the method needs that."""
    if reward.method.per_answer and getattr(trainer, "reward", None) is not reward:
        raise InputError(
            f"{reward.method.name} pays each answer by itself: train with vpo.engines.answer_trainer.AnswerTrainer, or "
            f"give the set one reward: vpo.methods.get({reward.method.name!r}, anchor=0.9)"
        )


def check_method(method: Method, args: "GRPOConfig") -> None:
    """Refuse a config that does not fit a method, with the setting to change."""
    for name, value in fitting(method).items():
        if getattr(args, name) != value:
            raise InputError(f"{name} must be {value!r} for {method.name}, not {getattr(args, name)!r}")
    method.check_group(args.num_generations)
