"""VPO and the methods beside it in ms-swift: a file for `--external_plugins`. Run on ms-swift 4.6.0.

    from vpo.engines.reward import reward_function
    from vpo.engines.swift import register

    register(reward_function(score=my_scorer, objectives=["correct", "short"], answers=3))

    --external_plugins that_file.py --scale_rewards group
    --reward_funcs vpo vpo/diversity vpo/objective/correct --reward_weights 1 0 0

`gdpo`, `maxrl`, `max_at_k` and `dr_grpo` want `--scale_rewards none`. ms-swift logs rewards and nothing else, so each
metric is a reward function too, whose weight must be 0; leave out those that you do not want to watch. Settings that do
not fit the method are refused when the trainer starts.
"""

from collections.abc import Sequence
from typing import Any

from vpo.engines.carrying import check_one_reward, filled
from vpo.engines.fitting import check
from vpo.engines.metrics import names
from vpo.engines.reward import RewardFunction
from vpo.util.errors import InputError


def register(reward: RewardFunction) -> None:
    """Make a reward function known to ms-swift as `vpo`, and each of its metrics as `vpo/…`."""
    check_one_reward(reward.method, "ms-swift")
    from swift.rewards import ORM, orms

    logged: dict[str, float] = {}  # of the last batch

    def call(self: Any, completions: Sequence[str], messages: Sequence[Any], **columns: Any) -> list[float]:
        logged.clear()
        return pay(reward, completions, messages, logged, **columns)

    def begin(self: Any, args: Any = None, **settings: Any) -> None:
        if args is not None:
            check_arguments(reward, args)

    orms["vpo"] = type("vpo", (ORM,), {"__init__": begin, "__call__": call})  # a class's name is its name in the log
    for name in names(reward.objectives):
        orms[f"vpo/{name}"] = _metric(ORM, f"vpo/{name}", reward, logged)


def _metric(base: type[Any], name: str, reward: RewardFunction, logged: dict[str, float]) -> type[Any]:
    """Return a reward function that only shows a metric of the batch that was just paid."""

    def begin(self: Any, args: Any = None, **settings: Any) -> None:
        if args is not None and reward.checked is not args:
            raise InputError(f"--reward_funcs must name vpo before {name}, which shows what vpo found")
        if args is not None and not args.reward_weights:
            raise InputError(f"--reward_weights must be given with {name}: 1 for vpo, 0 for what is only logged")

    def call(self: Any, completions: Sequence[str], **columns: Any) -> list[float | None]:
        return [logged.get(name)] * len(completions)

    return type(name, (base,), {"__init__": begin, "__call__": call})


def pay(
    reward: RewardFunction,
    completions: Sequence[str],
    messages: Sequence[Any],
    logged: dict[str, float],
    **columns: Any,
) -> list[float]:
    """Return what each completion is paid, and leave the metrics in `logged`.

    ms-swift counts an unknown reward as 0, which is a bad one: it is given the mean of its group instead.
    """
    prompts = [each[:-1] for each in messages]  # the last one is the completion
    paid = reward(prompts, completions, log_metric=logged.__setitem__, **columns)
    groups: dict[str, list[int]] = {}
    for place, prompt in enumerate(prompts):
        groups.setdefault(repr(prompt), []).append(place)
    found = [0.0] * len(paid)
    for places in groups.values():
        for place, each in zip(places, filled([paid[place] for place in places]), strict=True):
            found[place] = each
    return found


def check_arguments(reward: RewardFunction, args: Any) -> None:
    """Refuse arguments of ms-swift that would change what the reward function delivers, with the one to change."""
    method = reward.method
    if not hasattr(args, "per_device_train_batch_size"):
        raise InputError("train with swift rlhf: the arguments of megatron are others, and were not tried")
    if args.advantage_estimator != "grpo":
        raise InputError(f"--advantage_estimator must be grpo, not {args.advantage_estimator}")
    if args.kl_in_reward and args.beta:
        raise InputError("--kl_in_reward must be false: it takes KL off the rewards before they are compared")
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
    held = args.per_device_train_batch_size * args.steps_per_generation
    if method.whole_group and held % args.num_generations:
        raise InputError(
            f"{method.name} needs whole groups in one process: per_device_train_batch_size × steps_per_generation is "
            f"{held}, and must be divisible by num_generations, {args.num_generations}"
        )
    check(reward, args)  # they are those of TRL, and more
    reward.checked = args
