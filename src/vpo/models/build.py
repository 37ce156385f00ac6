"""Building the small policy for maze from nothing: demonstrations, then supervised fine-tuning."""

import multiprocessing
import time
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from vpo.models.maze import examples, make_model, make_tokenizer, prompt_format, shape_for
from vpo.models.sft import Example, Schedule, encode, fine_tune
from vpo.tasks.maze.generator import check_size
from vpo.util.errors import InputError
from vpo.util.files import new_folder
from vpo.util.progress import progress
from vpo.util.settings import check_settings, setting


@dataclass(frozen=True, kw_only=True)
class BuildConfig:
    """Settings of a small maze policy that is built from nothing."""

    size: int = setting(9, "width and height of the mazes")
    mazes: int = setting(80_000, "mazes to learn from, four examples each", least=1)
    steps: int = setting(8_000, "optimiser steps", least=1)
    batch: int = setting(512, "examples in a step", least=1)
    seed: int = setting(0, "random seed")
    goals: bool = setting(False, "learn to read a weighting in the prompt too, for goal_conditioned")
    width: int | None = setting(None, "width of the layers, a multiple of 32", shown="that of the embedded policy")

    def __post_init__(self) -> None:
        """Refuse values out of bounds, and a batch larger than the data."""
        check_settings(self)
        check_size(self.size)
        if 4 * self.mazes < self.batch:
            raise InputError(
                f"batch must be at most {4 * self.mazes}, the examples of {self.mazes} mazes, not {self.batch}"
            )


def build_maze(out: str | Path, config: BuildConfig) -> dict[str, Any]:
    """Make a policy in a new folder, in Hugging Face's format.

    The result has `parameters`, `examples`, `seconds_for_demonstrations`, `seconds_for_training`, `loss` (as training
    logged it) and `device`.
    """
    import torch
    from transformers import set_seed

    size, goals = config.size, config.goals
    shape = shape_for(size, config.width)
    if Path(out).exists():
        raise InputError(f"{out} exists: choose another folder")
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    set_seed(config.seed)
    started = time.perf_counter()
    tokenizer = make_tokenizer()
    with multiprocessing.get_context("spawn").Pool() as pool:
        of_mazes = pool.imap(partial(_encoded, size, goals), range(config.mazes), chunksize=64)
        rows = [example for few in progress(of_mazes, "demonstrations", config.mazes) for example in few]
    demonstrated = time.perf_counter() - started
    model = make_model(shape, len(tokenizer))
    schedule = Schedule(steps=config.steps, batch=config.batch, learning_rate=2e-3, seed=config.seed)
    with new_folder(Path(out)) as folder:
        losses = fine_tune(model, tokenizer, rows, folder, schedule)
        trained = time.perf_counter() - started - demonstrated
        model.to(torch.bfloat16).save_pretrained(folder)  # half the size; it is loaded as float32 on a CPU
        tokenizer.save_pretrained(folder)
        prompt_format(size, goals=goals).save(folder)
    return {
        "parameters": model.num_parameters(),
        "examples": len(rows),
        "seconds_for_demonstrations": round(demonstrated, 1),
        "seconds_for_training": round(trained, 1),
        "loss": losses,
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU",
    }


_process_tokenizer = cache(make_tokenizer)  # one for each process that encodes


def _encoded(size: int, goals: bool, index: int) -> list[Example]:
    """The examples of one maze, as tokens."""
    return [
        encode(_process_tokenizer(), messages, completion)
        for messages, completion in examples(size, index, goals=goals)
    ]
