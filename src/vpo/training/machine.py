"""The machine that trains: precision, disk space, versions, device."""

import platform
from importlib.metadata import version
from pathlib import Path

from vpo import __version__
from vpo.models.precision import check_bf16
from vpo.training.config import TrainConfig
from vpo.util.errors import InputError
from vpo.util.files import free_bytes

PACKAGES = ("torch", "transformers", "trl", "accelerate", "datasets", "peft")


def precision(setting: str, *, small: bool, lora: bool) -> str:
    """The precision to train in. bf16 makes small models no faster, and crashes some CPUs, so those are asked first."""
    import torch

    if setting == "bfloat16" and not lora:
        raise InputError(
            "precision 'bfloat16' needs lora: most weights in bf16 would not change, since an update is smaller than "
            "the distance to the next bf16 number; choose 'mixed', or set lora"
        )
    on_gpu = torch.cuda.is_available()
    if setting == "auto":
        return "mixed" if on_gpu and torch.cuda.is_bf16_supported() and not small else "float32"
    if setting != "float32":
        check_bf16()
    return setting


def check_disk(folder: Path, config: TrainConfig, parameters: int) -> None:
    """Raise where checkpoints and model do not fit on the disk: weights, and two moments of each that is trained."""
    weights = 4 * parameters
    best = config.eval_every is not None and config.keep_best != "none"
    # A checkpoint may refer to a best model of its own.
    checkpoint = 0 if config.lora else (4 if best else 3) * weights
    needed = weights + (config.keep_checkpoints + 1) * checkpoint
    free = free_bytes(folder)
    if free < needed:
        raise InputError(
            f"{folder}: the disk has {free / 1e9:.2g} GB free, and checkpoints and the model take up to "
            f"{needed / 1e9:.2g} GB: lower keep_checkpoints, or choose another folder with --out"
        )


def versions() -> dict[str, str]:
    """The versions of Python, vpo and the packages that train."""
    own = {"python": platform.python_version(), "vpo": __version__}
    return {**own, **{name: version(name) for name in PACKAGES}}


def device() -> str:
    """The GPU by name, or the CPU with its threads."""
    import torch

    threads = torch.get_num_threads()
    cpu = f"CPU, {threads} thread{'s' if threads > 1 else ''}"
    return torch.cuda.get_device_name() if torch.cuda.is_available() else cpu
