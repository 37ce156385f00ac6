"""The prompt format of a trained model, saved beside it, so that anybody can ask it as it was trained to be asked."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from vpo.util.errors import InputError
from vpo.util.files import write_json

FILE = "vpo.json"
MAX_TOKENS = 256  # where nothing is known of a model


@dataclass(frozen=True, kw_only=True)
class PromptFormat:
    """How a model is asked.

    Attributes:
        task: whose problems it was trained on, a name or a file.
        task_name: its name.
        task_settings: of the task.
        answers: m, how many answers a prompt asks for.
        max_tokens: room for each answer; None where nothing is known.
        most_answers: how many it can be asked for; None where there is no bound.
        target: w*, objective → weight, what it was trained for; None where that is the task's own.
        target_in_prompt: whether a prompt states the weighting.
        reads_target: whether it can: a small policy that never saw one cannot.
        example: a prompt, as chat messages.
    """

    task: str
    task_name: str = ""
    task_settings: dict[str, Any] = field(default_factory=dict)
    answers: int = 1
    max_tokens: int | None = None
    most_answers: int | None = None
    target: dict[str, float] | None = None
    target_in_prompt: bool = False
    reads_target: bool = True
    example: list[dict[str, str]] = field(default_factory=list)

    def check_answers(self, answers: int) -> None:
        """Refuse more answers than the model can be asked for."""
        if self.most_answers is not None and answers > self.most_answers:
            raise InputError(f"answers must be at most {self.most_answers} for this model, not {answers}")

    def save(self, folder: Path) -> None:
        """Write the format into the folder of a model."""
        write_json(folder / FILE, asdict(self))


def format_of(folder: str | Path) -> PromptFormat | None:
    """Return the prompt format of the model in a folder, or None where it has none."""
    path = Path(folder) / FILE
    if not path.is_file():
        return None
    try:
        return PromptFormat(**json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise InputError(f"{path}: this is not the prompt format of a model ({error})") from None
