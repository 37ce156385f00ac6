"""A `trl.GRPOTrainer` from a `TrainConfig`: it computes little padding, and gives answers advantages of their own."""

import difflib
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import numpy as np

from vpo.engines.prompts import task_dataset
from vpo.engines.reward import RewardFunction
from vpo.engines.trl import grpo_config
from vpo.models.decoding import share_prompts
from vpo.models.forced_tags import ForcedTags
from vpo.models.policy import Policy
from vpo.training.config import TrainConfig
from vpo.util import processes
from vpo.util.errors import InputError
from vpo.util.packages import check_installed
from vpo.util.type_checks import matches_type, type_name

if TYPE_CHECKING:
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

# Settings of `GRPOConfig` that have another name in `TrainConfig`.
RENAMED = {
    "max_steps": "steps",
    "num_generations": "group",
    "per_device_train_batch_size": "micro_batch",
    "gradient_accumulation_steps": "micro_batch",
    "lr_scheduler_type": "schedule",
    "beta": "kl",
    "max_completion_length": "max_tokens",
    "use_vllm": "generator",
    "bf16": "precision",
    "fp16": "precision",
    "save_steps": "save_every",
    "save_total_limit": "keep_checkpoints",
}
# Settings that cannot be changed, and why.
FIXED = {
    "the run folder depends on it": ("output_dir", "logging_steps", "logging_strategy", "save_strategy"),
    "the run orders its prompts itself": ("shuffle_dataset", "data_seed", "num_train_epochs"),
    "a step is one batch of rollouts": ("steps_per_generation", "generation_batch_size"),
    "a resumed run would have another result": ("save_only_model", "ignore_data_skip", "sync_ref_model"),
    "the run has eval_every": (
        "do_eval",
        "eval_strategy",
        "eval_steps",
        "eval_on_start",
        "load_best_model_at_end",
    ),
}
# Above so many parameters activations are recomputed in the backward pass, to save memory.
CHECKPOINTED = 100_000_000


def trainer_config(config: TrainConfig, reward: RewardFunction, output: Path, parameters: int) -> "GRPOConfig":
    """The arguments of the trainer; raises where it refuses a setting."""
    import torch
    from transformers.utils import is_torch_tf32_available

    _check_trainer_settings(config.trainer)
    assert config.micro_batch is not None  # `resolve` has chosen it
    assert config.max_tokens is not None
    on_gpu = torch.cuda.is_available()
    settings = {
        "output_dir": str(output),
        "max_steps": config.steps,
        "num_generations": config.group,
        "per_device_train_batch_size": config.micro_batch,
        "gradient_accumulation_steps": _backward_passes(config),
        "learning_rate": config.learning_rate,
        "lr_scheduler_type": config.schedule,
        "warmup_steps": config.warmup_steps,
        "beta": config.kl,
        "temperature": config.temperature,
        "top_p": config.top_p,
        "max_tokens": config.max_tokens,
        "bf16": config.precision != "float32",
        "seed": config.seed,
        "logging_steps": 1,
        "save_strategy": "no",  # `RunCallback` saves
        "shuffle_dataset": False,  # `all_prompts` has
        "gradient_checkpointing": parameters > CHECKPOINTED,
        "report_to": [each for each in config.report_to if each != "tensorboard"] or "none",  # `train` adds its own
        "run_name": output.parent.name,
        "disable_tqdm": True,  # `RunCallback` has a progress bar
        "use_cpu": not on_gpu,
    }
    if on_gpu and is_torch_tf32_available():
        settings["tf32"] = True  # float32 products, those of small models: a sixth of a step less on an H200
    if config.generator == "vllm":
        check_installed("vllm", "generator vllm", extra=None)
        if config.vllm_mode == "server" and not on_gpu:
            raise InputError("vllm_mode server needs a GPU, since weights travel over NCCL: give --vllm-mode colocate")
        settings |= {"use_vllm": True, "vllm_mode": config.vllm_mode or "colocate"}
    try:
        return grpo_config(reward, **settings | config.trainer)
    except (ValueError, TypeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"trl.GRPOConfig refuses its settings ({error})") from None


def _backward_passes(config: TrainConfig) -> int:
    """Backward passes of a process in a step; raises where the rollouts cannot be divided evenly."""
    assert config.micro_batch is not None
    share, rest = divmod(config.rollouts, processes.count())
    if rest:
        raise InputError(
            f"{processes.count()} processes must share the {config.rollouts} rollouts of a step, prompts_per_step × "
            f"group, evenly: change prompts_per_step, {config.prompts_per_step}, or group, {config.group}"
        )
    if share % config.micro_batch:
        raise InputError(
            f"micro_batch must divide the {share} rollouts that each of {processes.count()} processes has a step, and "
            f"{config.micro_batch} does not"
        )
    return share // config.micro_batch


def _check_trainer_settings(settings: Mapping[str, Any]) -> None:
    """Raise for settings that the trainer does not have, that `TrainConfig` has, or that have the wrong type."""
    from trl import GRPOConfig

    types = get_type_hints(GRPOConfig)
    run_settings = {each.name for each in fields(TrainConfig)}
    for name, value in settings.items():
        if name in RENAMED or name in run_settings:
            raise InputError(f"set {RENAMED.get(name, name)} of the run, not {name} of the trainer")
        for reason, names in FIXED.items():
            if name in names:
                raise InputError(f"{name} of the trainer cannot be set: {reason}")
        if name not in types:
            similar = difflib.get_close_matches(name, types, n=1)
            hint = f": did you mean {similar[0]!r}?" if similar else ""
            raise InputError(f"trl.GRPOConfig has no setting {name!r}{hint}")
        if value is None or not matches_type(value, types[name]):
            raise InputError(f"{name} of the trainer must be {type_name(types[name])}, not {value!r}")
    if settings.get("num_iterations", 1) < 1:
        raise InputError(f"num_iterations of the trainer must be 1 or more, not {settings['num_iterations']}")


def build_trainer(
    config: TrainConfig,
    reward: RewardFunction,
    policy: Policy,
    args: "GRPOConfig",
    callbacks: list[Any],
    forced: ForcedTags | None = None,
) -> "GRPOTrainer":
    """The trainer of a run. It changes the weights of `policy`. `forced` are tags to force into completions."""
    from accelerate.utils import set_seed
    from transformers import PrinterCallback

    from vpo.engines.colocated_vllm import following_weights

    with following_weights() if args.use_vllm else nullcontext():
        trainer = _trainer_class(reward, forced=forced is not None)(
            policy.model,
            reward_funcs=reward,
            args=args,
            train_dataset=all_prompts(task_dataset(reward), config, args.num_iterations),
            processing_class=policy.tokenizer,
            callbacks=callbacks,
            peft_config=_adapter(config.lora),
        )
    if args.use_vllm:
        set_seed(args.seed, device_specific=True)  # a vLLM in this process has set its own: the same for every run
    trainer.remove_callback(PrinterCallback)
    if config.lora and is_sharded(trainer):
        raise InputError(
            "lora cannot be merged into weights that are sharded over processes: set lora to 0, or use neither FSDP "
            "nor ZeRO-3"
        )
    if not is_sharded(trainer):
        share_prompts(policy.model, trainer.accelerator.autocast)
    if forced:
        trainer.force_tags(policy.model, forced)
    return trainer


def _trainer_class(reward: RewardFunction, *, forced: bool) -> Any:
    """The stock trainer that computes less padding, with an advantage for each answer or forced tokens where needed."""
    if forced:
        from vpo.engines.forcing_trainer import ForcingAnswerTrainer, ForcingTrainer

        return ForcingAnswerTrainer if reward.method.per_answer else ForcingTrainer
    if reward.method.per_answer:
        from vpo.engines.answer_trainer import AnswerTrainer

        return AnswerTrainer
    from vpo.engines.padding import UnpaddedTrainer

    return UnpaddedTrainer


def full_weights(trainer: "GRPOTrainer") -> dict[str, Any] | None:
    """The gathered weights of a sharded model, in the main process; None where the model is not sharded.

    All processes must call it.
    """
    if not is_sharded(trainer):
        return None
    weights: dict[str, Any] = trainer.accelerator.get_state_dict(trainer.model_wrapped)
    return weights


def is_sharded(trainer: "GRPOTrainer") -> bool:
    """Whether each process has only a part of the weights, under FSDP or ZeRO-3."""
    zero = trainer.accelerator.state.deepspeed_plugin
    return bool(trainer.is_fsdp_enabled) or (zero is not None and zero.zero_stage == 3)


def all_prompts(dataset: "Dataset", config: TrainConfig, updates: int) -> "Dataset":
    """The prompts of all steps in their order, each epoch shuffled with the seed: one long epoch to the trainer.

    The sampler of a trainer that resumes from a checkpoint would repeat the order of the first epoch.

    Args:
        dataset: a prompt for each problem.
        config: of the run.
        updates: optimiser steps on each batch of rollouts.
    """
    needed = config.prompts_per_step * -(-config.steps // updates)
    epochs = -(-needed // len(dataset))
    orders = [np.random.default_rng([config.seed, epoch]).permutation(len(dataset)) for epoch in range(epochs)]
    return dataset.select(np.concatenate(orders)[:needed])


def _adapter(rank: int) -> Any:
    if rank == 0:
        return None
    from peft import LoraConfig

    return LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear", task_type="CAUSAL_LM")
