"""Which settings of verl fit a method, which of its trainers can train it, and which are refused."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vpo.engines.compatibility import single_reward_hint
from vpo.methods import Method
from vpo.util.errors import InputError

MODE = "vpo"  # of the plugin's trainer
STOCK = ("sync", "colocate_async", "separate_async")  # modes of verl's own
TRAINER = "trainer.v1.trainer_mode"

ACTOR, ROLLOUT, MODEL = "actor_rollout_ref.actor", "actor_rollout_ref.rollout", "actor_rollout_ref.model"
FUNCTION = "reward.custom_reward_function"

# Settings of other versions, which verl 0.9 silently drops.
DROPPED = ("custom_reward_function", "reward_model.reward_manager")

# What verl calls the losses of TRL: how the terms of tokens are summed up.
LOSSES = {"grpo": "seq-mean-token-mean", "dapo": "token-mean", "dr_grpo": "seq-mean-token-sum-norm"}


def check_stock(method: Method) -> None:
    """Refuse a method that needs more than one reward per completion, normalised in the group."""
    way = f"leave {TRAINER} at {MODE}, the plugin's"
    if method.whole_group:
        raise InputError(
            f"{method.name} looks at the rewards of a whole group, and verl calls a reward function for one completion "
            f"at a time: {way}"
        )
    if method.per_answer:
        raise InputError(
            f"{method.name} has an advantage for each answer, and verl's own trainers have one for a completion: "
            f"{way}{single_reward_hint(method)}"
        )
    if method.draws_weightings and not method.target_in_prompt:
        raise InputError(
            f"{method.name} draws weightings for each step, and verl tells a reward function no step: {way}"
        )


def required_settings(method: Method, folder: Path, *, stock: bool, longest: int) -> dict[str, Any]:
    """The settings of verl that a method must have.

    Args:
        method: the method.
        folder: the exported one.
        stock: whether one of verl's own trainers trains.
        longest: tokens of a completion.
    """
    if stock:
        check_stock(method)
    settings: dict[str, Any] = {
        "algorithm.adv_estimator": "grpo",
        "algorithm.norm_adv_by_std_in_grpo": method.normalize_by_std,
        "algorithm.use_kl_in_reward": False,  # the KL term is the loss's
        "trainer.use_v1": True,
        "reward.reward_manager.name": "naive",  # the others change what the function returns
        f"{FUNCTION}.path": "pkg://vpo.engines.verl.reward",
        f"{FUNCTION}.name": "compute_score",
        f"+{FUNCTION}.reward_kwargs.folder": str(folder),
        f"{ROLLOUT}.multi_turn.enable": False,
        f"{ROLLOUT}.agent.default_agent_loop": "single_turn_agent",
    }
    if not stock:
        settings[TRAINER] = MODE
    if method.loss_type is not None:
        if method.loss_type not in LOSSES:
            raise InputError(f"loss_type of {method.name} must be one of {', '.join(LOSSES)} under verl")
        settings[f"{ACTOR}.loss_agg_mode"] = LOSSES[method.loss_type]
    if method.loss_type == "dr_grpo":
        # Without the factor verl divides by the longest completion of a micro batch, which is no constant.
        settings[f"{ACTOR}.loss_scale_factor"] = longest
    return settings


def is_stock(settings: Mapping[str, Any]) -> bool:
    """Whether a user's settings of verl choose one of its own trainers."""
    mode = settings.get(TRAINER, MODE)
    if mode not in (MODE, *STOCK):
        raise InputError(f"{TRAINER} must be one of {MODE}, {', '.join(STOCK)}, not {mode!r}")
    return bool(mode != MODE)


def check_user_settings(
    settings: Mapping[str, Any], method: Method, required: Mapping[str, Any], renamed: Mapping[str, str]
) -> None:
    """Refuse settings of a user's that the method requires otherwise, that `TrainConfig` has, or that verl drops.

    Args:
        settings: the user's.
        method: the method.
        required: its `required_settings`.
        renamed: settings of verl that `TrainConfig` has under another name → that name.
    """
    needed = {bare(name): value for name, value in required.items()}
    for key, value in settings.items():
        name = bare(key)
        for old in DROPPED:
            if name == old or name.startswith(f"{old}."):
                raise InputError(f"{name} is a setting of an older verl, which 0.9 silently drops: remove it")
        if name in renamed:
            raise InputError(f"set {renamed[name]} of the run, not {name} of verl")
        if name in needed and (value != needed[name] or key.startswith("~")):
            raise InputError(f"{name} must be {needed[name]!r} for {method.name}, not {value!r}")


def bare(name: str) -> str:
    """A setting of verl without the prefix + or ~ that adds or removes it."""
    return name.lstrip("+~")
