"""Where a model is and how it is prompted: a run, a folder, a name on the hub, or embedded in this package."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vpo.core.checks import as_integer
from vpo.models.forced_tags import ForcedTags, check_budget, tags_of
from vpo.models.model_files import check_model_files
from vpo.models.prompt_format import FILE, PromptFormat, format_of
from vpo.models.run_folder import RunFolder, is_run
from vpo.tasks import Message, Task, find, get
from vpo.tasks.forms import ONE_SHOT, TAGS
from vpo.tasks.registry import FORMAT, settings_of
from vpo.util.errors import InputError

EMBEDDED = "embedded"  # as a model's name: the policy that ships with the package for the task
SHIPPED = Path(__file__).parent / "embedded"


@dataclass(frozen=True)
class LocatedModel:
    """Where a model is, and the task that it is prompted on.

    Attributes:
        task: a task's name or file.
        path: a folder, or a name on the hub.
        format: how the model was trained to be prompted on this task; the defaults where nothing is known.
        settings: of the task; the caller's, over those that the model was trained with.
    """

    task: str
    path: str
    format: PromptFormat
    settings: dict[str, Any]

    def resolve(
        self, *, answers: int | None = None, max_tokens: int | None = None, prefill: bool | None = None
    ) -> "ResolvedModel":
        """Make the task, and choose the numbers of a prompt: what is None is as the model was trained."""
        answers = as_integer(self.format.answers if answers is None else answers, "answers", 1)
        self.format.check_answers(answers)
        task = get(self.task, **self.settings)
        if max_tokens is None:
            max_tokens = self.format.max_tokens or task.answer_tokens
        prefill = self.format.prefill if prefill is None else prefill
        if prefill:
            tags_of(task, answers)  # refuses answers without tags
        return ResolvedModel(self, task, answers, as_integer(max_tokens, "max_tokens", 1), prefill)


@dataclass(frozen=True)
class ResolvedModel:
    """A model, its task, and the numbers of a prompt, checked.

    Attributes:
        located: the model.
        task: its task.
        answers: m, how many answers a prompt asks for.
        max_tokens: token budget of each answer.
        prefill: whether the tags that open answers are forced.
    """

    located: LocatedModel
    task: Task[Any]
    answers: int
    max_tokens: int
    prefill: bool

    @property
    def path(self) -> str:
        """Of the model: a folder, or a name on the hub."""
        return self.located.path

    @property
    def format(self) -> PromptFormat:
        """How the model was trained to be prompted."""
        return self.located.format

    def forced_tags(self, tokenizer: Any) -> ForcedTags | None:
        """The tags to force; None without prefill."""
        if not self.prefill:
            return None
        forced = ForcedTags(tokenizer, tags_of(self.task, self.answers))
        check_budget(forced, self.max_tokens * self.answers)
        return forced

    def trained_format(self, example: list[Message], **trained: Any) -> PromptFormat:
        """The prompt format of a model that is trained from this one: it keeps this one's limits.

        Args:
            example: a prompt.
            trained: further fields of the format.
        """
        return PromptFormat(
            task=self.located.task,
            task_name=self.task.name,
            task_settings=self.located.settings,
            answers=self.answers,
            max_tokens=self.max_tokens,
            most_answers=self.format.most_answers,
            reads_target=self.format.reads_target,
            example=example,
            **trained,
        )


def locate(model: str, task: str | None, settings: Mapping[str, Any]) -> LocatedModel:
    """Find a model, and what it was trained on. Paths that exist become absolute, so that records of them stay valid.

    Args:
        model: "embedded", the folder of a finished run or of a model, or a name on the hub.
        task: a task's name or file; by default what the model was trained on.
        settings: of the task.
    """
    if task is None and model == EMBEDDED:
        raise InputError("task must be given for the embedded model: each task has its own")
    name = None if task is None else find(task).name  # refuses what is not a task
    path = embedded(str(name), **settings) if model == EMBEDDED else _in_run(model)
    trained = format_of(path)
    if task is None:
        if trained is None and not Path(path).exists():
            raise InputError(f"{model}: no such folder; for a model's name on the hub, give a task too")
        if trained is None:
            raise InputError(f"task must be given for {model}: it has no vpo.json that names one")
        task, name = trained.task, trained.task_name
    if trained is not None and trained.task_name != name:
        trained = None  # of another task
    task = absolute(task) if task.endswith(".py") else task
    settings = _with_form({**(trained.task_settings if trained else {}), **settings}, task, trained=trained is not None)
    return LocatedModel(task, absolute(path), trained or PromptFormat(task=task), with_absolute_files(settings, task))


def with_absolute_files(settings: Mapping[str, Any], task: str) -> dict[str, Any]:
    """Settings of a task with absolute paths, so that records of them stay valid."""
    files = find(task).files
    return {name: absolute(value) if name in files else value for name, value in settings.items()}


def _with_form(settings: Mapping[str, Any], task: str, *, trained: bool) -> dict[str, Any]:
    """Settings that name the form of several answers, so that records of them stay valid; tags need no name.

    A trained model that names none is of the time when all tasks that now show a worked example had tags.
    """
    kind = find(task)
    if FORMAT in settings or FORMAT in settings_of(kind) or kind.form is TAGS:
        return dict(settings)
    form = TAGS if trained and kind.form is ONE_SHOT else kind.form
    return {**settings, FORMAT: form.name}


def absolute(path: str) -> str:
    """A path that exists as an absolute one, anything else as it is."""
    return str(Path(path).absolute()) if Path(path).exists() else path


def embedded(task: str, **settings: Any) -> str:
    """The folder of the policy that ships for a task, such as maze with size=9."""
    name = task
    if task == "maze":
        get(task, **settings)  # refuses what no maze has
        name = f"maze-{settings.get('size', 9)}"
    folder = SHIPPED / name
    if not folder.is_dir():
        shipped = ", ".join(sorted(path.name for path in SHIPPED.glob("*") if path.is_dir()))
        advice = "`vpo policy build` makes one" if task == "maze" else "name a model folder, or a model on the hub"
        raise InputError(f"no policy is shipped for {name}, only for {shipped}: {advice}")
    return str(folder)


def _in_run(model: str) -> str:
    """The trained model in the folder of a finished run; anything else as it is."""
    if not is_run(model):
        return model
    run = RunFolder(Path(model))
    if run.engine() == "verl":
        raise InputError(
            f"{model}: verl's checkpoints must be merged first: python -m verl.model_merger merge --backend fsdp "
            f"--local_dir {run.checkpoints}/global_step_N/actor --target_dir merged; then give merged"
        )
    if run.trained and not run.finished:  # the merged model may have been too large to copy
        return str(run.adapter)
    if not run.finished:
        best = f", or give its best model so far, {run.best}" if run.best.is_dir() else ""
        raise InputError(f"{model}: this run is not finished; resume it with vpo train --resume {model}{best}")
    check_model_files(run.model, needed=("generation_config.json", "tokenizer_config.json", FILE))
    return str(run.model)
