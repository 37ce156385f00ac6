"""Makes the small policy for maze from nothing: demonstrations, then supervised training."""

import multiprocessing
import time
from functools import cache, partial
from pathlib import Path
from typing import Any

from vpo.core.checks import as_integer
from vpo.models.maze import examples, make_model, make_tokenizer, prompt_format, shape_for
from vpo.models.sft import Example, Schedule, encode, fine_tune
from vpo.tasks.maze.world import check_size
from vpo.util.errors import InputError
from vpo.util.files import new_folder
from vpo.util.progress import progress


def build_maze(
    out: str | Path,
    *,
    size: int = 9,
    mazes: int = 60_000,
    steps: int = 5_000,
    batch: int = 512,
    seed: int = 0,
    goals: bool = False,
    width: int | None = None,
) -> dict[str, Any]:
    """Make a policy in a folder, in Hugging Face's format, and return what was done and how long it took.

    Args:
        out: a new folder.
        size: of the mazes.
        mazes: how many to learn from, four examples each.
        steps: of training.
        batch: examples a step.
        seed: of the weights and of the order of the examples.
        goals: whether it learns to be told a weighting too, as goal_conditioned wants.
        width: of its layers, a multiple of 32; by default as the embedded policies have it.
    """
    import torch
    from transformers import set_seed

    as_integer(mazes, "mazes", 1)
    as_integer(steps, "steps", 1)
    as_integer(batch, "batch", 1)
    if 4 * mazes < batch:
        raise InputError(f"batch must be at most {4 * mazes}, the examples of {mazes} mazes, not {batch}")
    check_size(size)
    shape = shape_for(size, width)
    if Path(out).exists():
        raise InputError(f"{out}: there is something already, and nothing is overwritten")
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    set_seed(seed)
    started = time.perf_counter()
    tokenizer = make_tokenizer()
    with multiprocessing.get_context("spawn").Pool() as pool:
        made = pool.imap(partial(_encoded, size, goals), range(mazes), chunksize=64)
        rows = [row for few in progress(made, "demonstrations", mazes) for row in few]
    demonstrated = time.perf_counter() - started
    model = make_model(shape, len(tokenizer))
    schedule = Schedule(steps=steps, batch=batch, learning_rate=2e-3, seed=seed)
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
    """Return the examples of one maze as tokens."""
    made = examples(size, index, goals=goals)
    return [encode(_process_tokenizer(), messages, completion) for messages, completion in made]
