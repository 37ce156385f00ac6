"""What the machine that trains offers, and whether it suffices."""

import platform
from importlib.metadata import version
from pathlib import Path

from vpo import __version__
from vpo.training.config import TrainConfig
from vpo.util.errors import InputError
from vpo.util.files import free_bytes

PACKAGES = ("torch", "transformers", "trl", "accelerate", "datasets", "peft")


def precision(wanted: str, *, small: bool, lora: bool) -> str:
    """Return the precision to train in; one small model alone gains nothing from bf16, which a CPU must not have."""
    import torch

    if wanted == "bfloat16" and not lora:
        raise InputError(
            "precision 'bfloat16' is for LoRA: a step is less than the next number that most weights in bf16 can have, "
            "and they would stay as they are; take 'mixed', or set lora"
        )
    on_gpu = torch.cuda.is_available()
    if wanted == "auto":
        return "mixed" if on_gpu and torch.cuda.is_bf16_supported() and not small else "float32"
    if wanted != "float32" and not on_gpu:
        raise InputError(f"precision must be float32 on a CPU, some of which bf16 products crash, not {wanted}")
    return wanted


def check_disk(folder: Path, config: TrainConfig, parameters: int) -> None:
    """Refuse a disk that cannot hold the checkpoints and the model: weights, and two moments where they are trained."""
    weights = 4 * parameters
    needed = weights + (config.keep_checkpoints + 1) * (0 if config.lora else 3 * weights)
    free = free_bytes(folder)
    if free < needed:
        raise InputError(
            f"{folder}: the disk has {free / 1e9:.2g} GB free, and checkpoints and the model take up to "
            f"{needed / 1e9:.2g} GB: lower keep_checkpoints, or choose another folder with --out"
        )


def versions() -> dict[str, str]:
    """Return the versions that a run is made with."""
    ours = {"python": platform.python_version(), "vpo": __version__}
    return {**ours, **{name: version(name) for name in PACKAGES}}


def device() -> str:
    """Return what a run is trained on, in words."""
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else f"CPU, {torch.get_num_threads()} threads"
