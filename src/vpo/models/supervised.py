"""Supervised training on prompts and completions, with the trainer of transformers."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from vpo.util.progress import bar

# The tokens of a prompt with its completion, and how many of them are the prompt.
Example: TypeAlias = tuple[list[int], int]


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """How long and how fast to train: steps of some examples each, the peak of the rate, and the seed of the order."""

    steps: int
    batch: int
    learning_rate: float
    seed: int
    micro_batch: int | None = None


def encode(tokenizer: Any, messages: Sequence[dict[str, str]], completion: str) -> Example:
    """Return the tokens of a prompt, as the chat template writes it, and of a completion with its end."""
    prompt = tokenizer.apply_chat_template(
        list(messages), add_generation_prompt=True, tokenize=False, enable_thinking=False
    )
    asked = tokenizer(prompt, add_special_tokens=False)["input_ids"]
    written = tokenizer(completion, add_special_tokens=False)["input_ids"]
    return [*asked, *written, tokenizer.eos_token_id], len(asked)


def fit(model: Any, tokenizer: Any, rows: Sequence[Example], folder: Path, schedule: Schedule) -> list[float]:
    """Train a model in place on the completions alone, and return the loss as it went down."""
    import torch
    from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments
    from transformers.utils import logging

    from vpo.models.gradients import FiniteSteps, without_cudnn_attention

    class Bar(TrainerCallback):  # type: ignore[misc]  # transformers is not looked into
        """Shows how far training is, on standard error alone, and how the loss goes down."""

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            shown.update()

        def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any], **_: Any) -> None:
            if "loss" in logs:
                shown.set_postfix_str(f"loss {logs['loss']:.3f}")

    logging.disable_progress_bar()  # of saving
    on_gpu = torch.cuda.is_available()
    micro_batch = schedule.micro_batch or schedule.batch
    args = TrainingArguments(
        output_dir=str(folder),
        max_steps=schedule.steps,
        disable_tqdm=True,  # it writes the loss to standard output
        per_device_train_batch_size=micro_batch,
        gradient_accumulation_steps=schedule.batch // micro_batch,
        learning_rate=schedule.learning_rate,
        lr_scheduler_type="cosine",
        warmup_steps=max(1, schedule.steps // 20),
        weight_decay=0.01,
        adam_beta2=0.98,
        bf16=on_gpu,
        logging_steps=max(1, schedule.steps // 20),
        save_strategy="no",
        report_to="none",
        seed=schedule.seed,
        dataloader_drop_last=True,
        dataloader_num_workers=4 if on_gpu else 0,
        use_cpu=not on_gpu,
    )
    padded = partial(collate, padding=tokenizer.pad_token_id)
    trainer = Trainer(model, args, train_dataset=list(rows), data_collator=padded, callbacks=[Bar(), FiniteSteps()])
    trainer.remove_callback(PrinterCallback)
    with bar("training", schedule.steps) as shown, without_cudnn_attention():
        trainer.train()
    return [round(entry["loss"], 4) for entry in trainer.state.log_history if "loss" in entry]


def collate(rows: Sequence[Example], padding: int) -> dict[str, Any]:
    """Return a batch, padded on the right, whose loss counts the completions alone."""
    import torch

    longest = max(len(tokens) for tokens, _ in rows)
    tokens = torch.full((len(rows), longest), padding)
    labels = torch.full((len(rows), longest), -100)
    mask = torch.zeros((len(rows), longest), dtype=torch.long)
    for place, (row, prompt) in enumerate(rows):
        tokens[place, : len(row)] = torch.tensor(row)
        labels[place, prompt : len(row)] = tokens[place, prompt : len(row)]
        mask[place, : len(row)] = 1
    return {"input_ids": tokens, "labels": labels, "attention_mask": mask}
