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

import math
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, get_type_hints

from vpo.models.locate import EMBEDDED
from vpo.util.errors import InputError, nearest
from vpo.util.type_checks import matches_type, type_name

GENERATORS = ("transformers", "vllm")
VLLM_MODES = ("colocate", "server")
PRECISIONS = ("auto", "float32", "mixed", "bfloat16")
TRACKERS = ("tensorboard", "wandb", "trackio")
ENGINES = ("trl", "verl")


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """How a policy is trained. What is None is chosen to fit the model, by `vpo.training.train.resolve`.

    Attributes:
        task: a name from `vpo tasks`, or a .py file.
        method: one of `vpo.methods.METHODS`.
        model: a folder, a name on the hub, or "embedded".
        split: the problems to train on.
        problems: how many of them; all by default.
        steps: of the optimiser.
        prompts_per_step: problems a step.
        group: G, rollouts per problem.
        micro_batch: rollouts in one backward pass; the gradients of a step are accumulated over them.
        learning_rate: of AdamW.
        schedule: of the learning rate, by its name in transformers.
        warmup_steps: over which the learning rate rises.
        kl: weight of the KL term that holds the policy near where it began.
        temperature: of the rollouts.
        top_p: of the rollouts.
        max_tokens: after m times as many a completion is cut off.
        lora: rank of a low-rank adapter that is trained in place of all weights; 0 for none.
        generator: what samples the rollouts: "transformers" or "vllm".
        vllm_mode: vLLM inside this process ("colocate", the default) or a "server" that runs already.
        precision: "float32"; "mixed" (weights in float32, products in bf16); "bfloat16" (weights too, those of
            an adapter apart: for LoRA alone); "auto" is mixed on a GPU that has bf16, else float32.
        seed: of everything.
        save_every: steps between checkpoints.
        keep_checkpoints: how many of them stay.
        rollouts_every: steps between two samples of rollouts in the run folder.
        report_to: trackers to report to besides: "tensorboard", "wandb", "trackio".
        target: w*, objective → weight; the task's own by default.
        task_settings: of the task, such as size or data.
        method_settings: of the method, such as answers.
        engine: whose trainer trains: "trl" in this process, or "verl" in an environment of its own.
        trainer: further settings of `trl.GRPOConfig`, or of verl.
    """

    task: str
    method: str = "vpo"
    model: str = EMBEDDED
    split: str = "train"
    problems: int | None = None
    steps: int = 100
    prompts_per_step: int = 32
    group: int = 8
    micro_batch: int | None = None
    learning_rate: float | None = None
    schedule: str = "constant_with_warmup"
    warmup_steps: int = 10
    kl: float | None = None
    temperature: float = 1.0
    top_p: float = 1.0
    max_tokens: int | None = None
    lora: int = 0
    generator: str = "transformers"
    vllm_mode: str | None = None
    precision: str = "auto"
    seed: int = 0
    save_every: int = 20
    keep_checkpoints: int = 2
    rollouts_every: int = 10
    report_to: list[str] = field(default_factory=list)
    target: dict[str, float] | None = None
    task_settings: dict[str, Any] = field(default_factory=dict)
    method_settings: dict[str, Any] = field(default_factory=dict)
    engine: str = "trl"
    trainer: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse values of the wrong kind, and numbers that mean nothing."""
        for name, kind in get_type_hints(TrainConfig).items():
            value = getattr(self, name)
            if not matches_type(value, kind):
                raise InputError(f"{name} must be {type_name(kind)}, not {value!r}")
        positive = (
            "problems",
            "steps",
            "prompts_per_step",
            "micro_batch",
            "max_tokens",
            "save_every",
            "rollouts_every",
        )
        for name, least in {**dict.fromkeys(positive, 1), "keep_checkpoints": 1, "warmup_steps": 0, "lora": 0}.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise InputError(f"{name} must be {least} or more, not {value}")
        for name in ("learning_rate", "temperature"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise InputError(f"{name} must be greater than 0, not {value}")
        if self.kl is not None and not 0 <= self.kl < math.inf:
            raise InputError(f"kl must be 0 or more, not {self.kl}")
        if not 0 < self.top_p <= 1:
            raise InputError(f"top_p must be greater than 0 and at most 1, not {self.top_p}")
        if not 0 <= self.seed < 2**32:
            raise InputError(f"seed must lie in 0..{2**32 - 1}, not {self.seed}")
        chosen = {"generator": GENERATORS, "vllm_mode": (*VLLM_MODES, None), "precision": PRECISIONS, "engine": ENGINES}
        for name, allowed in chosen.items():
            if getattr(self, name) not in allowed:
                raise InputError(
                    f"{name} must be one of {', '.join(filter(None, allowed))}, not {getattr(self, name)!r}"
                )
        if self.vllm_mode is not None and self.generator != "vllm":
            raise InputError(f"vllm_mode needs generator vllm, not {self.generator}")
        for tracker in self.report_to:
            if tracker not in TRACKERS:
                raise InputError(f"report_to must name {', '.join(TRACKERS)}, not {tracker!r}")
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
    """Return the fields of `TrainConfig` that a TOML file names, refusing others."""
    try:
        with open(path, "rb") as file:
            found = tomllib.load(file)
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file (of settings)") from None
    except OSError as error:
        raise InputError(f"{path}: the settings cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: the file is not TOML ({error})") from None
    known = [each.name for each in fields(TrainConfig)]
    for name in found:
        if name not in known:
            raise InputError(f"{path}: setting {name!r} is not known: {nearest(name, known)}")
        kind = get_type_hints(TrainConfig)[name]
        if not matches_type(found[name], kind):
            raise InputError(f"{path}: {name} must be {type_name(kind)}, not {found[name]!r}")
    return found


def config_of(settings: Mapping[str, Any]) -> TrainConfig:
    """Return a config with some of its fields given."""
    if "task" not in settings:
        raise InputError("task must be given: a name from `vpo tasks`, or a .py file")
    return TrainConfig(**settings)


def as_toml(config: TrainConfig) -> str:
    """Return a config as a TOML file that `read_settings` reads back."""
    import tomli_w

    return tomli_w.dumps({name: value for name, value in asdict(config).items() if value is not None})
