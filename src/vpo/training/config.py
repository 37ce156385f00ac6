"""The settings of a training run: typed, checked, read from TOML and written back.

A file names any of the fields of `TrainConfig`; settings of the task, of the method and of the trainer stand in
tables of their own:

    task = "maze"
    method = "vpo"
    steps = 80

    [task_settings]
    size = 7

    [trainer]              # any further setting of trl.GRPOConfig, or of verl
    epsilon_high = 0.28
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, get_type_hints

from vpo.methods import METHODS
from vpo.models.locate import EMBEDDED
from vpo.util.errors import InputError, nearest
from vpo.util.settings import SEEDS, check_settings, setting
from vpo.util.stored import read_toml
from vpo.util.type_checks import matches_type, type_name

GENERATORS = ("transformers", "vllm")
VLLM_MODES = ("colocate", "server")
PRECISIONS = ("auto", "float32", "mixed", "bfloat16")
TRACKERS = ("tensorboard", "wandb", "trackio")
ENGINES = ("trl", "verl")
# What says how `eval_every` evaluates.
EVAL_SETTINGS = ("eval_split", "eval_problems", "eval_pool", "eval_temperature", "keep_best")
FORMER_NAMES = {"prompts": "prompts_per_step", "tokens_per_answer": "max_tokens"}  # in config.toml of earlier runs


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """How a policy is trained. What is None is chosen to fit the model, by `vpo.training.prepare.resolve`.

    Attributes:
        task: a name from `vpo tasks`, or the path of a Python file that defines a task.
        target: w*, objective → weight; the task's own by default.
        task_settings: such as size or data.
        method_settings: such as answers.
        trainer: further settings of `trl.GRPOConfig`, or of verl.
    """

    task: str
    method: str = setting("vpo", f"how rewards become advantages: {', '.join(METHODS)}", metavar="NAME")
    model: str = setting(
        EMBEDDED,
        "a run, a model folder, a name on the Hugging Face hub, or `embedded`, the small policy of the task",
        metavar="MODEL",
    )
    split: str = setting("train", "the split of the problems", metavar="SPLIT")
    problems: int | None = setting(None, "how many problems to train on", shown="all of the split", least=1)
    steps: int = setting(100, "optimiser steps", least=1)
    prompts_per_step: int = setting(32, "problems in a step", metavar="P", least=1)
    group: int = setting(8, "rollouts of each problem in a step", metavar="G")
    micro_batch: int | None = setting(
        None, "rollouts in one backward pass; a step accumulates gradients", shown="one group; embedded: all", least=1
    )
    learning_rate: float | None = setting(
        None, "peak learning rate of AdamW", metavar="RATE", shown="1e-4 embedded, 1e-5 LoRA, else 1e-6", above=0
    )
    schedule: str = setting(
        "constant_with_warmup", "learning-rate schedule, by its name in transformers", metavar="NAME"
    )
    warmup_steps: int = setting(10, "steps in which the learning rate rises from 0", least=0)
    kl: float | None = setting(
        None, "weight of the KL term towards the initial policy", metavar="BETA", shown="0 embedded, else 1e-3", least=0
    )
    temperature: float = setting(1.0, "sampling temperature", metavar="T", above=0)
    top_p: float = setting(1.0, "probability mass of the tokens to sample from", metavar="P", above=0, most=1)
    max_tokens: int | None = setting(
        None,
        "token budget of an answer; a completion of m answers has m times as many",
        shown="as the model was trained; else as the task needs",
        least=1,
    )
    prefill: bool | None = setting(
        None,
        "begin each completion with the tag of its first answer, and force the next tag where an answer closes; forced "
        "tokens are not trained on",
        shown="as the model was trained; else off",
    )
    lora: int = setting(0, "rank of a low-rank adapter to train; 0 trains all weights", metavar="RANK", least=0)
    generator: str = setting("transformers", "what samples the completions", choices=GENERATORS)
    vllm_mode: str | None = setting(
        None, "vLLM in this process, or a vLLM server that is running", choices=VLLM_MODES, shown="colocate"
    )
    precision: str = setting(
        "auto",
        "weights and products in float32; products alone in bf16 (mixed); both (bfloat16, with --lora); "
        "auto is mixed on a GPU that has bf16, else float32",
        choices=PRECISIONS,
    )
    seed: int = setting(0, "random seed", least=0, most=SEEDS - 1)
    save_every: int = setting(20, "steps between checkpoints", least=1)
    keep_checkpoints: int = setting(2, "how many of the newest checkpoints are kept", least=1)
    rollouts_every: int = setting(10, "steps between the rollouts that are written to the run folder", least=1)
    report_to: list[str] = setting(list, "trackers: tensorboard, wandb, trackio", metavar="NAME,…", choices=TRACKERS)
    eval_every: int | None = setting(
        None, "steps between evaluations on held-out problems; the start and the end are evaluated too", least=1
    )
    eval_split: str | None = setting(
        None,
        "the split of the held-out problems; of the split that is trained on, they are left out of training",
        metavar="SPLIT",
        shown="validation, where the task has it; else that of the training problems",
    )
    eval_problems: int | None = setting(
        None,
        "how many problems are held out",
        shown="100, or as many as there are; of training problems at most a fifth",
        least=1,
    )
    eval_pool: int | None = setting(
        None,
        "answers sampled for each held-out problem, a multiple of M",
        shown="8, or the next multiple of M",
        least=1,
    )
    eval_temperature: float | None = setting(
        None, "sampling temperature of evaluations", metavar="T", shown="0.7, as in vpo eval", least=0
    )
    keep_best: str | None = setting(
        None,
        "what the best model is kept by, in RUN/best: best@K, pass@K, set, set_reward or first; or none",
        metavar="MEASURE",
        shown="best@8",
    )
    target: dict[str, float] | None = None
    task_settings: dict[str, Any] = field(default_factory=dict)
    method_settings: dict[str, Any] = field(default_factory=dict)
    engine: str = setting(
        "trl", "the trainer: TRL in this process, or verl in a Python environment of its own", choices=ENGINES
    )
    trainer: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse wrong types, values out of bounds, and settings that contradict each other."""
        check_settings(self)
        if self.vllm_mode is not None and self.generator != "vllm":
            raise InputError(f"vllm_mode needs generator vllm, not {self.generator}")
        if self.eval_every is None:
            for name in EVAL_SETTINGS:
                if getattr(self, name) is not None:
                    raise InputError(f"{name} needs eval_every: without it nothing is evaluated")
        if self.micro_batch is not None and self.rollouts % self.micro_batch:
            raise InputError(
                f"micro_batch must divide the {self.rollouts} rollouts of a step, prompts_per_step × group, and "
                f"{self.micro_batch} does not"
            )

    @property
    def rollouts(self) -> int:
        """Completions a step."""
        return self.prompts_per_step * self.group


def read_settings(path: str | Path) -> dict[str, Any]:
    """Read a TOML file of settings; only fields of `TrainConfig`, or their former names, are allowed in it."""
    settings, _ = read_toml(Path(path))
    return checked_settings(settings, path)


def checked_settings(settings: Mapping[str, Any], path: str | Path) -> dict[str, Any]:
    """Settings by their present names, checked for names and types; `path` is where they are from."""
    settings = _by_present_names(settings)
    known = [each.name for each in fields(TrainConfig)]
    for name in settings:
        if name not in known:
            raise InputError(f"{path}: setting {name!r} is not known: {nearest(name, known)}")
        kind = get_type_hints(TrainConfig)[name]
        if not matches_type(settings[name], kind):
            raise InputError(f"{path}: {name} must be {type_name(kind)}, not {settings[name]!r}")
    return settings


def _by_present_names(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by the names that they have now; `vllm` was off, or the mode of vLLM."""
    renamed = {FORMER_NAMES.get(name, name): value for name, value in settings.items()}
    mode = renamed.pop("vllm", "off")
    return renamed if mode == "off" else {"generator": "vllm", "vllm_mode": mode, **renamed}


def config_of(settings: Mapping[str, Any]) -> TrainConfig:
    """A config from some of its fields; the others have their defaults."""
    if "task" not in settings:
        raise InputError("task is missing: a name from `vpo tasks`, or a .py file")
    return TrainConfig(**settings)


def as_toml(config: TrainConfig) -> str:
    """A config as the text of a TOML file, for `read_settings`."""
    import tomli_w

    return tomli_w.dumps({name: value for name, value in asdict(config).items() if value is not None})
