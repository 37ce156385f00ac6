"""Supervised fine-tuning on prompts and completions with TRL's `SFTTrainer`; the loss counts completions alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from vpo.util.errors import InputError
from vpo.util.progress import progress_bar

if TYPE_CHECKING:
    from datasets import Dataset
    from trl import SFTConfig

IGNORED = -100  # the label of a token that the loss does not count


class Example(NamedTuple):
    """A prompt and its completion.

    Attributes:
        tokens: of both, and the end-of-sequence token.
        prompt_length: how many of the tokens are the prompt.
    """

    tokens: list[int]
    prompt_length: int

    @property
    def completion_length(self) -> int:
        """Tokens of the completion, its end included."""
        return len(self.tokens) - self.prompt_length


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """How long and how fast to train.

    Attributes:
        steps: optimizer steps.
        batch: examples a step.
        micro_batch: examples in one backward pass, a divisor of the batch; by default all.
        learning_rate: its peak; it rises over a twentieth of the steps and falls along a cosine.
        seed: of the order of the examples.
    """

    steps: int
    batch: int
    learning_rate: float
    seed: int
    micro_batch: int | None = None


def encode(tokenizer: Any, messages: Sequence[dict[str, str]], completion: str) -> Example:
    """Tokenize a prompt, as the chat template renders it, and a completion separately, as they meet in sampling."""
    text = tokenizer.apply_chat_template(
        list(messages), add_generation_prompt=True, tokenize=False, enable_thinking=False
    )
    prompt = tokenizer(text, add_special_tokens=False)["input_ids"]
    answer = tokenizer(completion, add_special_tokens=False)["input_ids"]
    return Example([*prompt, *answer, tokenizer.eos_token_id], len(prompt))


def fine_tune(model: Any, tokenizer: Any, examples: Sequence[Example], folder: Path, schedule: Schedule) -> list[float]:
    """Train a model in place; the result is the loss, logged about twenty times.

    Args:
        model: to be trained, in float32.
        tokenizer: of the model.
        examples: at least a batch.
        folder: for files of the trainer, which saves nothing itself.
        schedule: how long and how fast.
    """
    from transformers import PrinterCallback
    from transformers.utils import logging
    from trl import SFTTrainer

    from vpo.models.gradients import FiniteSteps, without_cudnn_attention

    logging.disable_progress_bar()  # of saving
    try:
        trainer = SFTTrainer(
            model,
            _arguments(folder, schedule),
            train_dataset=to_dataset(examples),
            processing_class=tokenizer,
            callbacks=[FiniteSteps()],
        )
    except ValueError as error:
        raise InputError(f"the trainer refuses its settings ({error})") from error
    trainer.remove_callback(PrinterCallback)  # it writes to standard output
    with progress_bar("training", schedule.steps) as bar, without_cudnn_attention():
        trainer.add_callback(_progress_callback(bar))
        trainer.train()
    return [round(entry["loss"], 4) for entry in trainer.state.log_history if "loss" in entry]


def _progress_callback(bar: Any) -> Any:
    """A callback of the trainer that advances a progress bar and shows the loss beside it."""
    from transformers import TrainerCallback

    class ShowProgress(TrainerCallback):  # type: ignore[misc]  # transformers is untyped
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            bar.update()

        def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any], **_: Any) -> None:
            if "loss" in logs:
                bar.set_postfix_str(f"loss {logs['loss']:.3f}")

    return ShowProgress()


def to_dataset(examples: Sequence[Example]) -> "Dataset":
    """Lay out examples as `SFTTrainer` takes them when they are tokenized already."""
    from datasets import Dataset

    return Dataset.from_dict(
        {
            "input_ids": [example.tokens for example in examples],
            "labels": [[IGNORED] * each.prompt_length + each.tokens[each.prompt_length :] for each in examples],
        }
    ).with_format("numpy")  # three times as fast to read as lists


def _arguments(folder: Path, schedule: Schedule) -> "SFTConfig":
    import torch
    from trl import SFTConfig

    on_gpu = torch.cuda.is_available()
    micro_batch = schedule.micro_batch or schedule.batch
    return SFTConfig(
        output_dir=str(folder),
        max_steps=schedule.steps,
        max_length=None,  # nothing is cut off
        per_device_train_batch_size=micro_batch,
        gradient_accumulation_steps=schedule.batch // micro_batch,
        gradient_checkpointing=False,
        learning_rate=schedule.learning_rate,
        lr_scheduler_type="cosine",
        warmup_steps=max(1, schedule.steps // 20),
        weight_decay=0.01,
        adam_beta2=0.98,
        bf16=on_gpu,
        use_cpu=not on_gpu,
        seed=schedule.seed,
        logging_steps=max(1, schedule.steps // 20),
        disable_tqdm=True,  # it writes the loss to standard output
        report_to="none",
        save_strategy="no",
        dataloader_drop_last=True,
        dataloader_num_workers=4 if on_gpu else 0,
    )
