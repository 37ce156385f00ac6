"""The command line of verl out of a `TrainConfig`."""

import re
from pathlib import Path
from typing import Any

from vpo.engines.verl.export import TRAIN
from vpo.engines.verl.fitting import ACTOR, MODEL, ROLLOUT, bare, check_own, fitting, is_stock
from vpo.methods import Method
from vpo.models.locate import absolute
from vpo.training.config import TrainConfig
from vpo.util.errors import InputError

# Settings of verl that have a name of their own in `TrainConfig`.
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
# Settings of `TrainConfig` that verl has others for, which are not the same thing.
NOT_VERLS = {
    "generator": f"verl generates with what {ROLLOUT}.name says",
    "precision": f"verl has {ACTOR}.fsdp_config.dtype and others",
    "rollouts_every": "verl has trainer.rollout_data_dir",
}
SCHEDULES = {"constant_with_warmup": "constant", "constant": "constant", "cosine": "cosine"}
LONGEST_PROMPT = 2048  # tokens; verl leaves out problems with longer prompts
PLAIN = re.compile(r"[A-Za-z_/][\w./:@-]*")
WORDS = ("true", "false", "null", "nan", "inf", "on", "off", "yes", "no")  # what Hydra reads as no text


def check_engine(config: TrainConfig) -> None:
    """Refuse settings that mean nothing to verl."""
    for name, reason in NOT_VERLS.items():
        if getattr(config, name) != getattr(TrainConfig(task=config.task), name):
            raise InputError(f"{name} is not a setting of verl's: {reason}; give that with --trainer-set")
    if config.schedule not in SCHEDULES:
        raise InputError(f"schedule must be one of {', '.join(SCHEDULES)} under verl, not {config.schedule!r}")


def overrides(
    config: TrainConfig, method: Method, *, model: str, data: Path, checkpoints: Path, problems: int
) -> list[str]:
    """Return what to give to `python -m verl.trainer.main_ppo`.

    Args:
        config: with every setting chosen, by `vpo.training.prepare.resolve`.
        method: of the config.
        model: a folder, or a name on the hub.
        data: the exported folder.
        checkpoints: where verl puts its own.
        problems: how many rows there are to train on.
    """
    check_engine(config)
    if config.prompts_per_step > problems:
        raise InputError(
            f"prompts_per_step must be at most the {problems} problems under verl, not {config.prompts_per_step}"
        )
    assert config.max_tokens is not None  # all is resolved
    longest = config.max_tokens * method.answers
    fixed = fitting(method, data, stock=is_stock(config.trainer), longest=longest)
    check_own(config.trainer, method, fixed, RENAMED)
    settings = {**_defaults(config, data), **_of_run(config, model, data, checkpoints, longest), **fixed}
    given = {bare(name) for name in config.trainer}
    ours = [f"{name}={hydra(value)}" for name, value in settings.items() if bare(name) not in given]
    # A text of the user's is written as verl's own command line takes it.
    return ours + [_own(name, value) for name, value in config.trainer.items()]


def _own(name: str, value: Any) -> str:
    if bare(name) == "data.val_files":
        value = [absolute(each) for each in _listed(value)]  # verl runs elsewhere
    return f"{name}={value if isinstance(value, str) else hydra(value)}"


def _listed(value: Any) -> list[str]:
    """Return the texts of a list, of one written as Hydra's command line takes it, or one text alone."""
    if not isinstance(value, str):
        return list(value)
    return [part.strip() for part in value[1:-1].split(",")] if value.startswith("[") else [value]


def _of_run(config: TrainConfig, model: str, data: Path, checkpoints: Path, longest: int) -> dict[str, Any]:
    """Return the settings of a run by their names in verl."""
    found: dict[str, Any] = {
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
        "trainer.total_epochs": config.steps,  # more than it takes: how many rows verl leaves out is not known here
        "trainer.save_freq": config.save_every,
        "trainer.max_actor_ckpt_to_keep": config.keep_checkpoints,
        "trainer.logger": ["console", *config.report_to],
        "trainer.default_local_dir": str(checkpoints),
    }
    if config.kl:
        found[f"{ACTOR}.kl_loss_coef"] = config.kl
    if config.lora:
        found |= {f"{MODEL}.lora_rank": config.lora, f"{MODEL}.lora_alpha": 2 * config.lora}
    return found


def _defaults(config: TrainConfig, data: Path) -> dict[str, Any]:
    """Return what verl must be told and a user may tell otherwise: one GPU, vLLM, and no validation."""
    found: dict[str, Any] = {
        "data.val_files": str(data / TRAIN),
        "data.max_prompt_length": LONGEST_PROMPT,
        "data.filter_overlong_prompts": True,  # verl would cut them off on the left
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
        found[f"{ROLLOUT}.load_format"] = "safetensors"  # vLLM must know the weights that an adapter is put on
    if config.micro_batch is None:
        return {**found, f"{ACTOR}.use_dynamic_bsz": True}  # as many rollouts in a backward pass as tokens allow
    sizes = (f"{ACTOR}.ppo", f"{ROLLOUT}.log_prob", "actor_rollout_ref.ref.log_prob")
    return found | {f"{name}_micro_batch_size_per_gpu": config.micro_batch for name in sizes}


def hydra(value: Any) -> str:
    """Return a value as Hydra reads it on a command line."""
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
