"""Policies: language models with their tokenizers."""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vpo.util.errors import InputError, one_line

TOKENIZER_FILES = ("tokenizer*", "vocab*", "*.model", "*.tiktoken")  # a folder with a tokenizer has one of them


@dataclass(frozen=True)
class Policy:
    """A causal language model with its tokenizer, ready to be sampled from.

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
        raise InputError(f"{path}: no such folder")
    if folder.exists() and not any(file for pattern in TOKENIZER_FILES for file in folder.glob(pattern)):
        raise InputError(f"{path}: this folder has no tokenizer, such as tokenizer.json")
    on_gpu = torch.cuda.is_available()
    precision = precision or ("bfloat16" if on_gpu else "float32")
    try:
        model = AutoModelForCausalLM.from_pretrained(path, dtype=getattr(torch, precision))
        tokenizer = AutoTokenizer.from_pretrained(path, padding_side="left")
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: the model cannot be loaded ({one_line(error)})") from None
    if tokenizer.chat_template is None:
        raise InputError(f"{path}: the tokenizer has no chat template to render prompts with")
    _check_end(tokenizer, path)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return Policy(path, model.eval().to("cuda" if on_gpu else "cpu"), tokenizer)


def _check_end(tokenizer: Any, path: str) -> None:
    """Warn of a tokenizer whose end-of-sequence token is not the one that ends an answer in the chat template."""
    turns = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "ANSWER"}]
    try:
        _, answer, after = tokenizer.apply_chat_template(turns, tokenize=False).rpartition("ANSWER")
    except Exception:  # a template may refuse such turns; only prompts are rendered with it
        return
    end = after.strip()
    if answer and end and not end.startswith(tokenizer.eos_token or ""):
        warnings.warn(
            f"{path}: the chat template ends an answer with {end.splitlines()[0]!r}, and the tokenizer's end is "
            f"{tokenizer.eos_token!r}: completions may not end where the model ends them; set eos_token in "
            "tokenizer_config.json",
            stacklevel=3,
        )
