"""Makes the small policy for maze from nothing: demonstrations, then supervised training."""

import multiprocessing
import sys
import time
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from vpo.core.arrays import whole_number
from vpo.errors import InputError
from vpo.policies.maze import examples, make_model, make_tokenizer
from vpo.progress import progress
from vpo.tasks.maze.world import check_size


def build_maze(
    out: str | Path, *, size: int = 9, mazes: int = 60_000, steps: int = 5_000, batch: int = 512, seed: int = 0
) -> dict[str, Any]:
    """Make a policy in a folder, in Hugging Face's format, and return what was done and how long it took.

    Args:
        out: a new folder.
        size: of the mazes.
        mazes: how many to learn from, four examples each.
        steps: of training.
        batch: examples a step.
        seed: of the weights and of the order of the examples.
    """
    import torch
    from transformers import Trainer, TrainingArguments, set_seed

    whole_number(mazes, "mazes", 1)
    whole_number(steps, "steps", 1)
    whole_number(batch, "batch", 1)
    if 4 * mazes < batch:
        raise InputError(f"batch must be at most {4 * mazes}, the examples of {mazes} mazes, not {batch}")
    check_size(size)
    if Path(out).exists():
        raise InputError(f"{out}: there is something already, and nothing is overwritten")
    set_seed(seed)
    started = time.perf_counter()
    tokenizer = make_tokenizer()
    with multiprocessing.get_context("spawn").Pool() as pool:
        made = pool.imap(partial(_encoded, size), range(mazes), chunksize=64)
        rows = [row for few in progress(made, "demonstrations", mazes) for row in few]
    demonstrated = time.perf_counter() - started
    model = make_model(size, len(tokenizer))
    on_gpu = torch.cuda.is_available()
    args = TrainingArguments(
        output_dir=str(out),
        max_steps=steps,
        disable_tqdm=None if sys.stderr.isatty() else True,
        per_device_train_batch_size=batch,
        learning_rate=2e-3,
        lr_scheduler_type="cosine",
        warmup_steps=max(1, steps // 20),
        weight_decay=0.01,
        adam_beta2=0.98,
        bf16=on_gpu,
        logging_steps=max(1, steps // 20),
        save_strategy="no",
        report_to="none",
        seed=seed,
        dataloader_drop_last=True,
        dataloader_num_workers=4 if on_gpu else 0,
        use_cpu=not on_gpu,
    )
    trainer = Trainer(model, args, train_dataset=rows, data_collator=_collate)
    trainer.train()
    trained = time.perf_counter() - started - demonstrated
    model.to(torch.bfloat16).save_pretrained(out)  # half the size; it is loaded as float32 on a CPU
    tokenizer.save_pretrained(out)
    return {
        "parameters": model.num_parameters(),
        "examples": len(rows),
        "seconds_for_demonstrations": round(demonstrated, 1),
        "seconds_for_training": round(trained, 1),
        "loss": [round(entry["loss"], 4) for entry in trainer.state.log_history if "loss" in entry],
        "device": torch.cuda.get_device_name() if on_gpu else "CPU",
    }


_process_tokenizer = cache(make_tokenizer)  # one for each process that encodes


def _encoded(size: int, index: int) -> list[tuple[list[int], int]]:
    """Return the examples of one maze as tokens, each with the length of its prompt."""
    tokenizer = _process_tokenizer()
    rows = []
    for prompt, completion in examples(size, index):
        asked = tokenizer(prompt + ">")["input_ids"]
        rows.append(([*asked, *tokenizer(completion)["input_ids"], tokenizer.eos_token_id], len(asked)))
    return rows


def _collate(rows: Sequence[tuple[list[int], int]]) -> dict[str, Any]:
    """Return a batch, padded on the right, whose loss counts the completions alone."""
    import torch

    longest = max(len(tokens) for tokens, _ in rows)
    tokens = torch.zeros((len(rows), longest), dtype=torch.long)
    labels = torch.full((len(rows), longest), -100)
    mask = torch.zeros((len(rows), longest), dtype=torch.long)
    for place, (row, prompt) in enumerate(rows):
        tokens[place, : len(row)] = torch.tensor(row)
        labels[place, prompt : len(row)] = tokens[place, prompt : len(row)]
        mask[place, : len(row)] = 1
    return {"input_ids": tokens, "labels": labels, "attention_mask": mask}
