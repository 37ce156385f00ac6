"""Policies: language models with their tokenizers."""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vpo.models.model_files import check_model_files, is_adapter
from vpo.models.precision import check_bf16
from vpo.util.errors import InputError, one_line
from vpo.util.hub import loading_options
from vpo.util.progress import waiting


@dataclass(frozen=True)
class Policy:
    """A causal language model with its tokenizer, ready to be sampled from.

    Attributes:
        path: where it was loaded from.
        model: a transformers model.
        tokenizer: with a chat template, padding on the left.
    """

    path: str
    model: Any
    tokenizer: Any


def load(path: str, *, precision: str | None = None, base: str | None = None) -> Policy:
    """Load a policy from a folder or, by its name, from the hub. A LoRA adapter is merged into its base model.

    Args:
        path: the folder or the name.
        precision: of the weights, "float32" or "bfloat16"; by default bfloat16 on a GPU, else float32. A CPU that fails
            at bf16 products is refused.
        base: of an adapter: its base model, where it is not where it was when the adapter was trained.
    """
    import torch
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    folder = Path(path)
    on_gpu = torch.cuda.is_available()
    precision = precision or ("bfloat16" if on_gpu else "float32")
    if precision == "bfloat16":
        check_bf16()
    if is_adapter(folder):
        from vpo.models.adapters import load_adapter  # which loads the base model with this function

        return load_adapter(folder, precision=precision, base=base)
    if base is not None:
        raise InputError(f"base is for a LoRA adapter, and {path} is a whole model")
    if folder.exists():
        check_model_files(folder)
    elif path.startswith((".", "/", "~")) or path.count("/") > 1:  # no name on the hub
        raise InputError(f"{path}: no such folder")
    options = loading_options(path)
    try:
        with waiting(f"loading {Path(path).name if Path(path).is_absolute() else path}"):
            model, loading = AutoModelForCausalLM.from_pretrained(
                path, dtype=getattr(torch, precision), output_loading_info=True, **options
            )
    except Exception as error:  # of the hub, of files, of Rust code that has no type for its errors
        raise not_loaded(path, error) from None
    if missing := sorted(loading["missing_keys"]):  # transformers initialises them at random
        raise InputError(f"{path}: the model has no weights for {', '.join(missing[:3])}")
    return Policy(path, model.eval().to("cuda" if on_gpu else "cpu"), load_tokenizer(path))


def load_tokenizer(path: str) -> Any:
    """Load the tokenizer of a model, refusing one that cannot render prompts."""
    from transformers import AutoTokenizer

    options = loading_options(path)
    try:
        tokenizer = AutoTokenizer.from_pretrained(path, padding_side="left", **options)
    except Exception as error:  # as for the model
        raise not_loaded(path, error) from None
    _check_template(tokenizer, path)
    _check_end(tokenizer, path)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def not_loaded(path: str, error: Exception) -> InputError:
    """An error of another package as one line."""
    return InputError(f"{path}: the model cannot be loaded ({one_line(f'{type(error).__name__}: {error}')})")


def _check_template(tokenizer: Any, path: str) -> None:
    """Refuse a tokenizer whose chat template is missing or does not render what a user says."""
    if tokenizer.chat_template is None:
        raise InputError(f"{path}: the tokenizer has no chat template to render prompts with")
    prompt = [{"role": "user", "content": "QUESTION"}]
    try:
        text = tokenizer.apply_chat_template(prompt, tokenize=False, add_generation_prompt=True)
    except Exception as error:  # templates are programs
        raise InputError(f"{path}: the chat template cannot be rendered ({one_line(error)})") from None
    if "QUESTION" not in text:
        raise InputError(f"{path}: the chat template leaves out what the user says")


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
