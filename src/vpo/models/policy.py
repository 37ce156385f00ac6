"""Policies: models and their tokenizers, by path, by name on the hub, or shipped inside this package."""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vpo.util.errors import InputError, one_line

TOKENIZER_FILES = ("tokenizer*", "vocab*", "*.model", "*.tiktoken")  # one of them is in every folder with a tokenizer


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


def load(path: str, *, precision: str | None = None) -> Policy:
    """Load a policy from a folder or, by its name, from the hub.

    Args:
        path: the folder or the name.
        precision: of the weights, "float32" or "bfloat16". By default bfloat16 on a GPU; bf16 products crash some CPUs.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    folder = Path(path)
    if folder.exists() and not (folder / "config.json").is_file():
        raise InputError(f"{path}: this is not the folder of a model: it has no config.json")
    if not folder.exists() and (path.startswith((".", "/", "~")) or path.count("/") > 1):  # no name on the hub
        raise InputError(f"{path}: there is no such folder (of a model)")
    if folder.exists() and not any(each for sign in TOKENIZER_FILES for each in folder.glob(sign)):
        raise InputError(f"{path}: there is no tokenizer in it, such as tokenizer.json")
    on_gpu = torch.cuda.is_available()
    precision = precision or ("bfloat16" if on_gpu else "float32")
    try:
        model = AutoModelForCausalLM.from_pretrained(path, dtype=getattr(torch, precision))
        tokenizer = AutoTokenizer.from_pretrained(path, padding_side="left")
    except (OSError, ValueError) as error:
        reason = one_line(error)
        raise InputError(f"{path}: the model cannot be loaded ({reason})") from None
    if tokenizer.chat_template is None:
        raise InputError(f"{path}: the tokenizer has no chat template, with which prompts are written")
    _check_end(tokenizer, path)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return Policy(path, model.eval().to("cuda" if on_gpu else "cpu"), tokenizer)


def _check_end(tokenizer: Any, path: str) -> None:
    """Warn of a tokenizer that ends completions otherwise than the chat template ends answers."""
    turns = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "ANSWER"}]
    try:
        _, answer, after = tokenizer.apply_chat_template(turns, tokenize=False).rpartition("ANSWER")
    except Exception:  # a template may refuse such turns; it is asked for prompts alone
        return
    end = after.strip()
    if answer and end and not end.startswith(tokenizer.eos_token or ""):
        warnings.warn(
            f"{path}: the chat template ends an answer with {end.splitlines()[0]!r}, and the tokenizer's end is "
            f"{tokenizer.eos_token!r}: completions may not end where the model ends them; set eos_token in "
            "tokenizer_config.json",
            stacklevel=3,
        )
