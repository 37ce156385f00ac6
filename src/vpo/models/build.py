"""Building the small policy for maze from nothing: demonstrations, then supervised fine-tuning."""

import multiprocessing
import time
from functools import cache, partial
from pathlib import Path
from typing import Any

from vpo.models.build_config import BuildConfig
from vpo.models.maze import examples, make_model, make_tokenizer, prompt_format, shape_for
from vpo.models.sft import Example, Schedule, encode, fine_tune
from vpo.util.files import check_new, new_folder
from vpo.util.progress import progress


def build_maze(out: str | Path, config: BuildConfig) -> dict[str, Any]:
    """Make a policy in a new folder, in Hugging Face's format.

    The result has `parameters`, `examples`, `seconds_for_demonstrations`, `seconds_for_training`, `loss` (as training
    logged it) and `device`.
    """
    import torch
    from transformers import set_seed

    size, goals = config.size, config.goals
    shape = shape_for(size, config.width)
    check_new(out)
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
