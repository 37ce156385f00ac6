"""Policies: models and their tokenizers, by path, by name on the hub, or shipped inside this package."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vpo.config import EMBEDDED
from vpo.errors import InputError, one_line
from vpo.policies.format import PromptFormat, format_of
from vpo.runs import Run, is_run
from vpo.tasks import Task, find, get

SHIPPED = Path(__file__).parent / "embedded"
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


@dataclass(frozen=True)
class Located:
    """Where a model is, and how it is asked.

    Attributes:
        task: what it is to be asked.
        path: a folder, or a name on the hub.
        format: its prompt format, None for a model that was not trained with this package.
        settings: those of the task, those of the format that were not given included.
    """

    task: str
    path: str
    format: PromptFormat | None
    settings: dict[str, Any]

    def trained_format(self, task: Task[Any], **asked: Any) -> PromptFormat:
        """Return the prompt format of what is trained from this model on a task: it keeps the limits of the model."""
        limits = self.format or PromptFormat(task=self.task)
        return PromptFormat(
            task=self.task,
            task_name=task.name,
            task_settings=self.settings,
            most_answers=limits.most_answers,
            reads_target=limits.reads_target,
            **asked,
        )


def locate(model: str, task: str | None, settings: Mapping[str, Any]) -> Located:
    """Find a model: "embedded", the folder of a finished run, that of a model, or a name on the hub.

    Paths that exist are made absolute, so that what is written down holds anywhere.

    Args:
        model: what to find.
        task: what it is to be asked; by default what it was trained on.
        settings: of the task.
    """
    if task is None and model == EMBEDDED:
        raise InputError("task must be given for the embedded model: there is one for each")
    name = find(task).name if task is not None else ""  # refuses what is not a task
    path = embedded(name, **settings) if model == EMBEDDED else model
    if is_run(path):
        run = Run(Path(path))
        if run.config().engine == "verl":
            raise InputError(
                f"{model}: verl's checkpoints are to be merged first: python -m verl.model_merger merge --backend fsdp "
                f"--local_dir {run.checkpoints}/global_step_N/actor --target_dir merged; then give merged"
            )
        if not run.finished:
            raise InputError(f"{model}: this run is not finished; go on with it by vpo train --resume {model}")
        path = str(run.model)
    found = format_of(path)
    if task is None:
        if found is None and not Path(path).exists():
            raise InputError(f"{model}: there is no such folder; if it is a model's name on the hub, give a task too")
        if found is None:
            raise InputError(f"task must be given for {model}: there is no vpo.json that names one")
        task, name = found.task, found.task_name
    if found is not None and found.task_name != name:
        found = None  # it was trained on another
    known = {**(found.task_settings if found else {}), **settings}
    for setting in find(task).files:
        if setting in known:
            known[setting] = absolute(known[setting])
    return Located(absolute(task) if task.endswith(".py") else task, absolute(path), found, known)


def absolute(path: str) -> str:
    """Return a path that exists as an absolute one, anything else as it is."""
    return str(Path(path).absolute()) if Path(path).exists() else path


def embedded(task: str, **settings: Any) -> str:
    """Return the folder of the policy that is shipped for a task, such as maze with size=9."""
    name = task
    if task == "maze":
        get(task, **settings)  # refuses what no maze has
        name = f"maze-{settings.get('size', 9)}"
    folder = SHIPPED / name
    if not folder.is_dir():
        there = ", ".join(sorted(path.name for path in SHIPPED.glob("*") if path.is_dir()))
        more = "vpo policy build makes one" if task == "maze" else "give a model"
        raise InputError(f"no policy is shipped for {name}: there are {there}; {more}")
    return str(folder)


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
