"""Policies: models and their tokenizers, by path, by name on the hub, or shipped inside this package."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vpo.errors import InputError

EMBEDDED = Path(__file__).parent / "embedded"


@dataclass(frozen=True)
class Policy:
    """A causal language model with its tokenizer, ready to write.

    Attributes:
        path: where it was loaded from.
        model: a transformers model, in float32 on a CPU.
        tokenizer: with a chat template, padding on the left.
    """

    path: str
    model: Any
    tokenizer: Any


def embedded(task: str, **settings: Any) -> str:
    """Return the folder of the policy that is shipped for a task, such as maze with size=9."""
    name = "-".join([task, *(str(value) for value in settings.values())])
    folder = EMBEDDED / name
    if not folder.is_dir():
        there = ", ".join(sorted(path.name for path in EMBEDDED.glob("*") if path.is_dir())) or "none"
        raise InputError(f"no policy is shipped for {name}: there are {there}; vpo policy build makes one")
    return str(folder)


def load(path: str) -> Policy:
    """Load a policy from a folder or, by its name, from the hub."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    folder = Path(path)
    if folder.exists() and not (folder / "config.json").is_file():
        raise InputError(f"{path}: this is not the folder of a model: it has no config.json")
    on_gpu = torch.cuda.is_available()
    try:
        # bf16 products crash some CPUs.
        model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.bfloat16 if on_gpu else torch.float32)
        tokenizer = AutoTokenizer.from_pretrained(path, padding_side="left")
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"{path}: the model cannot be loaded ({reason})") from None
    if tokenizer.chat_template is None:
        raise InputError(f"{path}: the tokenizer has no chat template, with which prompts are written")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return Policy(path, model.eval().to("cuda" if on_gpu else "cpu"), tokenizer)
