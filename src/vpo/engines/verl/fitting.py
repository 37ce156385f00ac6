"""Which settings of verl fit a method, which trainers can carry it, and what is refused with which reason."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vpo.methods import Method
from vpo.util.errors import InputError

MODE = "vpo"  # of the plugin's trainer
STOCK = ("sync", "colocate_async", "separate_async")  # modes of verl's own
TRAINER = "trainer.v1.trainer_mode"

ACTOR, ROLLOUT, MODEL = "actor_rollout_ref.actor", "actor_rollout_ref.rollout", "actor_rollout_ref.model"
FUNCTION = "reward.custom_reward_function"

# Settings of other versions, which verl 0.9 reads without a word and drops.
DROPPED = ("custom_reward_function", "reward_model.reward_manager")


def check_stock(method: Method) -> None:
    """Refuse a method that a reward of one number a completion, normalised in the group, cannot carry."""
    way = f"leave {TRAINER} at {MODE}, the plugin's"
    if method.whole_group:
        raise InputError(
            f"{method.name} looks at the rewards of a whole group, and verl asks a reward function for one completion "
            f"at a time: {way}"
        )
    if method.per_answer:
        raise InputError(
            f"{method.name} pays each answer by itself, and verl's own trainers give a completion one advantage: "
            f"{way}, or give the set one reward with --method-set anchor=0.9"
        )
    if method.keyed and not method.target_in_prompt:
        raise InputError(
            f"{method.name} draws weightings anew at each step, and verl tells a reward function no step: {way}"
        )


def fitting(method: Method, folder: Path, *, stock: bool, longest: int) -> dict[str, Any]:
    """Return the settings of verl that a method must have.

    Args:
        method: what trains.
        folder: that was exported.
        stock: whether one of verl's own trainers trains.
        longest: tokens of a completion.
    """
    if stock:
        check_stock(method)
    found: dict[str, Any] = {
        "algorithm.adv_estimator": "grpo",
        "algorithm.norm_adv_by_std_in_grpo": method.name != "dr_grpo",
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
        found[TRAINER] = MODE
    if method.name == "dr_grpo":
        # Without the factor verl divides by the longest completion of a micro batch, which is no constant.
        found |= {f"{ACTOR}.loss_agg_mode": "seq-mean-token-sum-norm", f"{ACTOR}.loss_scale_factor": longest}
    return found


def is_stock(own: Mapping[str, Any]) -> bool:
    """Return whether a user's settings of verl choose one of its own trainers."""
    mode = own.get(TRAINER, MODE)
    if mode not in (MODE, *STOCK):
        raise InputError(f"{TRAINER} must be one of {MODE}, {', '.join(STOCK)}, not {mode!r}")
    return bool(mode != MODE)


def check_own(own: Mapping[str, Any], method: Method, fixed: Mapping[str, Any], ours: Mapping[str, str]) -> None:
    """Refuse settings of a user's that the method fixes, that the run names itself, or that verl drops.

    Args:
        own: the user's.
        method: what trains.
        fixed: what it must have.
        ours: settings of verl that have a name of their own in `TrainConfig`, and that name.
    """
    needed = {bare(name): value for name, value in fixed.items()}
    for given, value in own.items():
        name = bare(given)
        for old in DROPPED:
            if name == old or name.startswith(f"{old}."):
                raise InputError(f"{name} is of an older verl, which 0.9 drops without a word: leave it out")
        if name in ours:
            raise InputError(f"set {ours[name]} of the run, not {name} of verl")
        if name in needed and (value != needed[name] or given.startswith("~")):
            raise InputError(f"{name} must be {needed[name]!r} for {method.name}, not {value!r}")


def bare(name: str) -> str:
    """Return a setting of verl without the sign that adds or removes it."""
    return name.lstrip("+~")
