"""The command line of verl from a `TrainConfig`."""

import re
from pathlib import Path
from typing import Any

from vpo.engines.verl.compatibility import ACTOR, MODEL, ROLLOUT, bare, check_user_settings, is_stock, required_settings
from vpo.engines.verl.export import TRAIN
from vpo.methods import Method
from vpo.models.locate import absolute
from vpo.training.config import TrainConfig
from vpo.util.errors import InputError

# Settings of verl that have another name in `TrainConfig`.
RENAMED = {
    f"{MODEL}.path": "model",
    f"{MODEL}.lora_rank": "lora",
    "data.train_files": "task",
    "data.train_batch_size": "prompts_per_step",
    "data.max_response_length": "max_tokens",
    "data.seed": "seed",
    f"{ROLLOUT}.n": "group",
    f"{ROLLOUT}.temperature": "temperature",
    f"{ROLLOUT}.top_p": "top_p",
    f"{ACTOR}.optim.lr": "learning_rate",
    f"{ACTOR}.optim.lr_scheduler_type": "schedule",
    f"{ACTOR}.optim.lr_warmup_steps": "warmup_steps",
    f"{ACTOR}.use_kl_loss": "kl",
    f"{ACTOR}.kl_loss_coef": "kl",
    f"{ACTOR}.ppo_micro_batch_size_per_gpu": "micro_batch",
    "trainer.total_training_steps": "steps",
    "trainer.total_epochs": "steps",
    "trainer.save_freq": "save_every",
    "trainer.max_actor_ckpt_to_keep": "keep_checkpoints",
    "trainer.logger": "report_to",
    "trainer.default_local_dir": "out",
}
# Settings of `TrainConfig` without a counterpart in verl.
NOT_IN_VERL = {
    "generator": f"verl generates with {ROLLOUT}.name",
    "precision": f"verl has {ACTOR}.fsdp_config.dtype and others",
    "rollouts_every": "verl has trainer.rollout_data_dir",
    "eval_every": "verl validates with trainer.test_freq, data.val_files and actor_rollout_ref.rollout.val_kwargs",
}
SCHEDULES = {"constant_with_warmup": "constant", "constant": "constant", "cosine": "cosine"}
LONGEST_PROMPT = 2048  # tokens; verl skips problems with longer prompts
PLAIN = re.compile(r"[A-Za-z_/][\w./:@-]*")
WORDS = ("true", "false", "null", "nan", "inf", "on", "off", "yes", "no")  # what Hydra does not read as text


def check_engine(config: TrainConfig) -> None:
    """Raise for settings that verl does not have."""
    for name, reason in NOT_IN_VERL.items():
        if getattr(config, name) != getattr(TrainConfig(task=config.task), name):
            raise InputError(f"{name} is not a setting of verl: {reason}; use --trainer-set for it")
    if config.schedule not in SCHEDULES:
        raise InputError(f"schedule must be one of {', '.join(SCHEDULES)} under verl, not {config.schedule!r}")


def overrides(
    config: TrainConfig, method: Method, *, model: str, data: Path, checkpoints: Path, problems: int
) -> list[str]:
    """The arguments of `python -m verl.trainer.main_ppo`.

    Args:
        config: with every setting chosen, by `vpo.training.prepare.resolve`.
        method: of the config.
        model: a folder, or a name on the hub.
        data: the exported folder.
        checkpoints: the folder of verl's checkpoints.
        problems: how many rows the training data has.
    """
    check_engine(config)
    if config.prompts_per_step > problems:
        raise InputError(
            f"prompts_per_step must be at most the {problems} problems under verl, not {config.prompts_per_step}"
        )
    assert config.max_tokens is not None  # `resolve` has chosen it
    longest = config.max_tokens * method.answers
    required = required_settings(method, data, stock=is_stock(config.trainer), longest=longest)
    check_user_settings(config.trainer, method, required, RENAMED)
    settings = {**_defaults(config, data), **_run_settings(config, model, data, checkpoints, longest), **required}
    set_by_user = {bare(name) for name in config.trainer}
    arguments = [f"{name}={hydra(value)}" for name, value in settings.items() if bare(name) not in set_by_user]
    return arguments + [_user_argument(name, value) for name, value in config.trainer.items()]


def _user_argument(name: str, value: Any) -> str:
    """A setting of the user. Text is already in Hydra's syntax, as on verl's own command line."""
    if bare(name) == "data.val_files":
        value = [absolute(each) for each in _listed(value)]  # verl runs in another folder
    return f"{name}={value if isinstance(value, str) else hydra(value)}"


def _listed(value: Any) -> list[str]:
    """The texts of a list, of a list in Hydra's syntax, or a single text."""
    if not isinstance(value, str):
        return list(value)
    return [part.strip() for part in value[1:-1].split(",")] if value.startswith("[") else [value]


def _run_settings(config: TrainConfig, model: str, data: Path, checkpoints: Path, longest: int) -> dict[str, Any]:
    """The settings of the run, by their names in verl."""
    settings: dict[str, Any] = {
        f"{MODEL}.path": model,
        "data.train_files": str(data / TRAIN),
        "data.train_batch_size": config.prompts_per_step,
        "data.max_response_length": longest,
        "data.seed": config.seed,
        f"{ROLLOUT}.n": config.group,
        f"{ROLLOUT}.temperature": config.temperature,
        f"{ROLLOUT}.top_p": config.top_p,
        f"{ACTOR}.optim.lr": config.learning_rate,
        f"{ACTOR}.optim.lr_scheduler_type": SCHEDULES[config.schedule],
        f"{ACTOR}.optim.lr_warmup_steps": 0 if config.schedule == "constant" else config.warmup_steps,
        f"{ACTOR}.use_kl_loss": bool(config.kl),
        "trainer.total_training_steps": config.steps,
        "trainer.total_epochs": config.steps,  # an upper bound: how many rows verl skips is unknown here
        "trainer.save_freq": config.save_every,
        "trainer.max_actor_ckpt_to_keep": config.keep_checkpoints,
        "trainer.logger": ["console", *config.report_to],
        "trainer.default_local_dir": str(checkpoints),
    }
    if config.kl:
        settings[f"{ACTOR}.kl_loss_coef"] = config.kl
    if config.lora:
        settings |= {f"{MODEL}.lora_rank": config.lora, f"{MODEL}.lora_alpha": 2 * config.lora}
    return settings


def _defaults(config: TrainConfig, data: Path) -> dict[str, Any]:
    """Defaults that a user may override: one GPU, vLLM, and no validation."""
    settings: dict[str, Any] = {
        "data.val_files": str(data / TRAIN),
        "data.max_prompt_length": LONGEST_PROMPT,
        "data.filter_overlong_prompts": True,  # else verl truncates them on the left
        # Reasoning models think once, before the first answer, or not at all, as in the paper; others ignore this.
        "+data.apply_chat_template_kwargs.enable_thinking": False,
        f"{ROLLOUT}.name": "vllm",
        f"{ROLLOUT}.tensor_model_parallel_size": 1,
        f"{ROLLOUT}.seed": config.seed,
        f"{ACTOR}.ppo_mini_batch_size": config.prompts_per_step,  # one update a step
        f"{ACTOR}.data_loader_seed": config.seed,
        "trainer.n_gpus_per_node": 1,
        "trainer.nnodes": 1,
        "trainer.val_before_train": False,
        "trainer.test_freq": -1,
        "trainer.project_name": "vpo",
        "trainer.experiment_name": data.parent.name,
    }
    if config.lora:
        settings[f"{ROLLOUT}.load_format"] = "safetensors"  # vLLM needs the base weights of an adapter
    if config.micro_batch is None:
        return {**settings, f"{ACTOR}.use_dynamic_bsz": True}  # the token budget limits the rollouts in a backward pass
    sizes = (f"{ACTOR}.ppo", f"{ROLLOUT}.log_prob", "actor_rollout_ref.ref.log_prob")
    return settings | {f"{name}_micro_batch_size_per_gpu": config.micro_batch for name in sizes}


def hydra(value: Any) -> str:
    """A value in the syntax of Hydra's command line."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, list | tuple):
        return f"[{','.join(hydra(each) for each in value)}]"
    if not isinstance(value, str):
        return repr(value)
    if PLAIN.fullmatch(value) and value.lower() not in WORDS:
        return value
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
