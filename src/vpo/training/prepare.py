"""From a `TrainConfig` to everything that a run needs: settings chosen and checked, model loaded, reward made."""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from vpo.core.targets import scaled, weights_for
from vpo.methods import get as get_method
from vpo.models.forced_tags import ForcedTags
from vpo.models.locate import EMBEDDED, ResolvedModel, absolute, locate
from vpo.models.policy import Policy, load
from vpo.models.prompt_format import PromptFormat
from vpo.tasks import Task
from vpo.training.config import TrainConfig
from vpo.training.evaluating import eval_settings
from vpo.training.held_out import RunProblems, run_problems
from vpo.training.machine import precision
from vpo.util import processes
from vpo.util.errors import InputError
from vpo.util.packages import check_installed

if TYPE_CHECKING:
    from vpo.engines.reward import RewardFunction


@dataclass(frozen=True)
class PreparedRun:
    """Everything that a run needs, loaded and checked.

    Attributes:
        config: with every setting chosen.
        task: of the config.
        policy: the model to train, with its tokenizer.
        reward: the reward function of the trainer.
        format: the prompt format that the trained model will have.
        forced: the tags that are forced into completions; None without prefill.
        problems: to train on, and held out.
        weights: a hash of those that the run starts from.
    """

    config: TrainConfig
    task: Task[Any]
    policy: Policy
    reward: "RewardFunction"
    format: PromptFormat
    forced: ForcedTags | None
    problems: RunProblems
    weights: str

    @property
    def weights_precision(self) -> str:
        """The precision that the weights are loaded in."""
        return weights_precision(self.config)


def weights_precision(config: TrainConfig) -> str:
    """The precision that the weights of a run are loaded in."""
    return "bfloat16" if config.precision == "bfloat16" else "float32"


def prepare(config: TrainConfig) -> PreparedRun:
    """Load and check everything that a run needs, the cheap checks first."""
    from vpo.engines.reward import reward_function
    from vpo.rewards.scoring_model import weights_hash

    config, model = resolve(config)
    task = model.task
    for tracker in config.report_to:
        check_installed(tracker, f"report_to {tracker!r}", extra=None)
    task.probe()
    divided = run_problems(task, config)
    problems = divided.trained
    config = replace(config, eval_problems=len(divided.held_out) or None)
    task.prepare([*problems, *divided.held_out])
    method = get_method(config.method, **config.method_settings)
    target = None if config.target is None else weights_for(config.target, task.names).tolist()
    reward = reward_function(task, method, problems=problems, target=target, group=config.group, seed=config.seed)
    prompt_format = model.trained_format(
        task.ask(problems[0], method.answers, reward.prompt_target(problems[0].id)),
        target=config.target,
        target_in_prompt=method.target_in_prompt,
        prefill=model.prefill,
    )
    policy = load(model.path, precision=weights_precision(config))
    forced, weights = model.forced_tags(policy.tokenizer), weights_hash(policy.model)
    return PreparedRun(config, task, policy, reward, prompt_format, forced, divided, weights)


def resolve(config: TrainConfig) -> tuple[TrainConfig, ResolvedModel]:
    """Choose every setting that is None to fit the model; the config, and the model with its task."""
    located = locate(config.model, config.task, config.task_settings)
    method = get_method(config.method, **config.method_settings)
    method.check_group_size(config.group)
    model = located.resolve(answers=method.answers, max_tokens=config.max_tokens, prefill=config.prefill)
    if model.prefill:
        _check_forcing(config)
    if method.target_in_prompt and not model.format.reads_target:
        raise InputError(
            f"{config.method} states a weighting in each prompt, which this model never learned to read: build one "
            "that did with vpo policy build --goals, or give another model"
        )
    small = config.model == EMBEDDED
    chosen: dict[str, Any] = {
        "task": located.task,
        "model": config.model if small else absolute(config.model),
        "task_settings": located.settings,
        "method_settings": {name: value for name, value in vars(method).items() if value is not None},
        "learning_rate": config.learning_rate or (1e-4 if small else 1e-5 if config.lora else 1e-6),
        "kl": (0.0 if small else 1e-3) if config.kl is None else config.kl,
        "max_tokens": model.max_tokens,
        "prefill": model.prefill,
        "micro_batch": config.micro_batch or _micro_batch(config, small=small),
        "precision": precision(config.precision, small=small, lora=bool(config.lora)),
        "target": scaled(config.target) if config.target else model.task.target,
        **eval_settings(config, model.task, method.answers),
    }
    return replace(config, **chosen), model


def _check_forcing(config: TrainConfig) -> None:
    """Refuse prefill where nothing forces tags while completions are sampled."""
    batching = "use_transformers_continuous_batching"
    generation = config.trainer.get("generation_kwargs")
    beams = generation.get("num_beams", 1) if isinstance(generation, dict) else 1
    refused = {
        "engine verl": config.engine == "verl",
        "generator vllm": config.generator == "vllm",
        f"{batching} of the trainer": config.trainer.get(batching),
        f"num_beams {beams} of the trainer": beams != 1,
    }
    for setting, given in refused.items():
        if given:
            raise InputError(f"prefill does not work with {setting}: change that, or give --no-prefill")


def _micro_batch(config: TrainConfig, *, small: bool) -> int:
    """Rollouts in a backward pass: all of a process for a small model, else at most a group."""
    share = config.rollouts // processes.count()
    return math.gcd(share, config.rollouts if small else config.group)
