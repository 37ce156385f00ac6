"""A stock `trl.GRPOTrainer` out of a `TrainConfig`. Run against TRL 1.16."""

import difflib
import importlib.util
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vpo.config import TrainConfig
from vpo.engines.trl import RewardFunction, grpo_config, task_dataset
from vpo.errors import InputError
from vpo.policies import Policy

if TYPE_CHECKING:
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

# Settings of `GRPOConfig` that have a name of their own in `TrainConfig`, or that the run folder depends on.
OWN = {
    "max_steps": "steps",
    "num_generations": "group",
    "per_device_train_batch_size": "micro_batch",
    "gradient_accumulation_steps": "micro_batch",
    "lr_scheduler_type": "schedule",
    "beta": "kl",
    "max_completion_length": "tokens_per_answer",
    "use_vllm": "vllm",
    "vllm_mode": "vllm",
    "bf16": "precision",
    "fp16": "precision",
    "save_steps": "save_every",
    "save_total_limit": "keep_checkpoints",
}
FIXED = (
    "output_dir",
    "save_strategy",
    "shuffle_dataset",
    "logging_steps",
    "logging_strategy",
    "num_train_epochs",
    "data_seed",
)
# Above so many parameters activations are computed anew in the backward pass, to fit.
CHECKPOINTED = 100_000_000


def trainer_config(config: TrainConfig, reward: RewardFunction, output: Path, parameters: int) -> "GRPOConfig":
    """Return the arguments of the trainer, refusing those that do not fit each other."""
    import torch
    from trl import GRPOConfig

    known = {each.name for each in fields(GRPOConfig)}
    ours = {each.name for each in fields(TrainConfig)} - {"trainer"}
    for name in config.trainer:
        if name in OWN or name in ours:
            raise InputError(f"set {OWN.get(name, name)} of the run, not {name} of the trainer")
        if name in FIXED:
            raise InputError(f"{name} of the trainer cannot be set: the run folder depends on it")
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            raise InputError(
                f"trl.GRPOConfig has no setting {name!r}" + (f": did you mean {near[0]!r}?" if near else "")
            )
    assert config.micro_batch is not None  # all is resolved
    assert config.tokens_per_answer is not None
    on_gpu = torch.cuda.is_available()
    settings = {
        "output_dir": str(output),
        "max_steps": config.steps,
        "num_generations": config.group,
        "per_device_train_batch_size": config.micro_batch,
        "gradient_accumulation_steps": config.rollouts // config.micro_batch,
        "learning_rate": config.learning_rate,
        "lr_scheduler_type": config.schedule,
        "warmup_steps": config.warmup_steps,
        "beta": config.kl,
        "temperature": config.temperature,
        "top_p": config.top_p,
        "tokens_per_answer": config.tokens_per_answer,
        "bf16": config.precision != "float32",
        "seed": config.seed,
        "logging_steps": 1,
        "save_strategy": "no",  # `Watch` says when
        "shuffle_dataset": False,  # `in_order` does it
        "gradient_checkpointing": parameters > CHECKPOINTED,
        "report_to": config.report_to or "none",
        "run_name": output.parent.name,
        "disable_tqdm": True,  # `Watch` has a bar of its own
        "use_cpu": not on_gpu,
    }
    if config.vllm != "off":
        if importlib.util.find_spec("vllm") is None:
            raise InputError(f"vllm {config.vllm!r} needs vLLM: pip install vllm, or set vllm to 'off'")
        settings |= {"use_vllm": True, "vllm_mode": config.vllm}
    elif on_gpu and config.precision != "mixed":
        settings["cache_implementation"] = "static"  # of the weights' type, which products in bf16 would not fit
    try:
        return grpo_config(reward, **settings | config.trainer)
    except (ValueError, TypeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"the settings of the trainer do not fit each other ({error})") from None


def build_trainer(
    config: TrainConfig, reward: RewardFunction, policy: Policy, args: "GRPOConfig", callbacks: list[Any]
) -> "GRPOTrainer":
    """Return the trainer of a run, which trains a policy in place."""
    from transformers import PrinterCallback
    from trl import GRPOTrainer

    trainer = GRPOTrainer(
        policy.model,
        reward_funcs=reward,
        args=args,
        train_dataset=in_order(task_dataset(reward), config, updates_per_generation(args)),
        processing_class=policy.tokenizer,
        callbacks=callbacks,
        peft_config=_adapter(config.lora),
    )
    trainer.remove_callback(PrinterCallback)
    return trainer


def updates_per_generation(args: "GRPOConfig") -> int:
    """Return how many updates one batch of rollouts serves: between them there are rollouts that no checkpoint has."""
    served: int = args.steps_per_generation * args.num_iterations
    return max(1, served // int(args.gradient_accumulation_steps))


def in_order(dataset: "Dataset", config: TrainConfig, updates: int) -> "Dataset":
    """Return the prompts of all steps in their order, each epoch shuffled by the seed: one long epoch to the trainer.

    The sampler of a trainer that goes on from a checkpoint would replay the order of the first epoch.
    """
    needed = config.prompts * -(-config.steps // updates)
    epochs = -(-needed // len(dataset))
    places = [np.random.default_rng([config.seed, epoch]).permutation(len(dataset)) for epoch in range(epochs)]
    return dataset.select(np.concatenate(places)[:needed])


def _adapter(rank: int) -> Any:
    if rank == 0:
        return None
    from peft import LoraConfig

    return LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear", task_type="CAUSAL_LM")
