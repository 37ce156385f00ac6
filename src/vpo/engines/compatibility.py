"""Which arguments of a GRPO trainer fit a method, and which do not."""

from typing import TYPE_CHECKING, Any

from vpo.methods import Method
from vpo.util.errors import InputError

if TYPE_CHECKING:
    from trl import GRPOConfig

    from vpo.engines.scorer import RewardScorer


def required_settings(method: Method) -> dict[str, str]:
    """The settings of `GRPOConfig` that a method must have."""
    settings = {
        "multi_objective_aggregation": "sum_then_normalize",  # the other ignores scale_rewards
        "scale_rewards": method.scale_rewards,
    }
    if method.loss_type is not None:
        settings["loss_type"] = method.loss_type
    return settings


def check(reward: "RewardScorer", args: "GRPOConfig") -> None:
    """Refuse a config under which a trainer would not train on the method's advantages, with the setting to change.

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


def check_method(method: Method, args: "GRPOConfig") -> None:
    """Refuse a config that does not fit a method, with the setting to change."""
    for name, value in required_settings(method).items():
        if getattr(args, name) != value:
            raise InputError(f"{name} must be {value!r} for {method.name}, not {getattr(args, name)!r}")
    method.check_group_size(args.num_generations)


def check_trainer(reward: "RewardScorer", trainer: Any) -> None:
    """Refuse a `trl.GRPOTrainer` that adds other rewards, or whose completions are not the policy's own text alone."""
    if getattr(trainer, "rollout_func", None) is not None:
        raise InputError(
            "rollout_func is not supported, since what an environment writes would be read as the policy's answers: "
            "use tools or environment_factory of the trainer"
        )
    functions = getattr(trainer, "reward_funcs", [])
    if len(functions) > 1:
        weights = trainer.reward_weights.tolist()
        rows = zip(functions, trainer.reward_func_names, weights, strict=True)
        others = [name for function, name, weight in rows if function is not reward and weight != 0]
        if others:
            raise InputError(
                f"reward_weights must be 0 for {', '.join(others)}, which would be added to the reward of "
                f"{reward.method.name}: what else counts belongs into its vector"
            )


def check_single_turn(trainer: Any, name: str, hint: str = "") -> None:
    """Refuse tools and environments where each token must belong to the one turn of a completion.

    Args:
        trainer: of TRL.
        name: of its class.
        hint: what to do instead, as the end of the message.
    """
    uses = {
        "environment_factory": trainer.environment_factories,  # whose methods are among the tools
        "tools": trainer.tools,
        "rollout_func": trainer.rollout_func,
    }
    for setting, value in uses.items():
        if value:
            raise InputError(
                f"{setting} is not supported by {name}, since tokens of earlier turns and of their results belong to "
                f"no answer: train with trl.GRPOTrainer{hint}"
            )


def check_stock_trainer(method: Method) -> None:
    """Refuse to be called by `trl.GRPOTrainer` itself where each answer has an advantage of its own."""
    if method.per_answer:
        raise InputError(
            f"{method.name} has an advantage for each answer: train with vpo.engines.answer_trainer.AnswerTrainer"
            f"{single_reward_hint(method)}"
        )


def check_one_reward(method: Method, trainer: str) -> None:
    """Refuse a method with an advantage for each answer, where the trainer has one advantage per completion."""
    if method.per_answer:
        raise InputError(
            f"{method.name} has an advantage for each answer, and {trainer} has one for a completion: train with TRL "
            f"or verl{single_reward_hint(method)}"
        )


def single_reward_hint(method: Method) -> str:
    """How to give the whole set one reward instead, as the end of a message; empty without such a way."""
    if method.single_reward is None:
        return ""
    settings = ", ".join(f"{name}={value!r}" for name, value in method.single_reward.items())
    return f", or give the set one reward by the setting {settings} of the method"
