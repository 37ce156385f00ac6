"""The prompt format of a trained model, saved beside it: how to prompt it as it was prompted in training."""

from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, get_type_hints

from vpo.util.errors import InputError, nearest
from vpo.util.files import write_json
from vpo.util.stored import read_object
from vpo.util.type_checks import matches_type, type_name

FILE = "vpo.json"
FORMER_NAMES = {"tokens_per_answer": "max_tokens"}  # in vpo.json


@dataclass(frozen=True, kw_only=True)
class PromptFormat:
    """How a model is prompted.

    Attributes:
        task: whose problems it was trained on, a name or a file.
        task_name: its name.
        task_settings: of the task.
        answers: m, how many answers a prompt asks for.
        max_tokens: token budget of each answer; None where nothing is known.
        most_answers: the largest m that the model supports; None where there is no bound.
        target: w*, objective → weight, that it was trained for; None for the task's own.
        target_in_prompt: whether a prompt states the weighting.
        prefill: whether completions are begun with the tag of the first answer, and further tags are forced.
        reads_target: whether the model can read a weighting: a small policy that never saw one cannot.
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
    prefill: bool = False
    reads_target: bool = True
    example: list[dict[str, str]] = field(default_factory=list)

    def check_answers(self, answers: int) -> None:
        """Refuse more answers than the model supports."""
        if self.most_answers is not None and answers > self.most_answers:
            raise InputError(f"answers must be at most {self.most_answers} for this model, not {answers}")

    def save(self, folder: Path) -> None:
        """Write the format into the folder of a model."""
        write_json(folder / FILE, asdict(self))


def format_of(folder: str | Path) -> PromptFormat | None:
    """The prompt format of the model in a folder; None where it has none."""
    path = Path(folder) / FILE
    if not path.is_file():
        return None
    try:
        stored = read_object(path, {"task": str})
        return PromptFormat(**_checked({FORMER_NAMES.get(name, name): value for name, value in stored.items()}))
    except InputError as error:
        raise InputError(f"{path}: this is not the prompt format of a model ({error})") from None


def _checked(settings: dict[str, Any]) -> dict[str, Any]:
    """Refuse names that a prompt format does not have, and values of other types."""
    kinds, known = get_type_hints(PromptFormat), [each.name for each in fields(PromptFormat)]
    for name, value in settings.items():
        if name not in known:
            raise InputError(f"it has {name!r}: {nearest(name, known)}")
        if not matches_type(value, kinds[name]):
            raise InputError(f"{name} must be {type_name(kinds[name])}, not {value!r}")
    return settings
