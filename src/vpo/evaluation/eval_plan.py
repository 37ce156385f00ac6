"""What an evaluation samples and how: its settings, and with everything chosen that they leave open."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from vpo.core.checks import as_integer
from vpo.core.targets import weights_for
from vpo.models.forced_tags import check_thinking
from vpo.models.generate import Sampling
from vpo.models.locate import LocatedModel, ResolvedModel, locate
from vpo.models.precision import PRECISIONS, check_precision
from vpo.models.remote import CONCURRENT, GENERATORS, check_remote, chosen_generator, locate_remote
from vpo.tasks.task import scoring_note
from vpo.util.errors import InputError
from vpo.util.records import command_line
from vpo.util.settings import check_settings, setting


@dataclass(frozen=True, kw_only=True)
class EvalConfig:
    """An evaluation of a model on the problems of a task. What is None is as the model was trained."""

    model: str  # a run, a folder, a name on the hub, or "embedded"
    base: str | None = setting(
        None, "of a LoRA adapter: its base model", metavar="MODEL", shown="where it was when the adapter was trained"
    )
    task: str | None = None  # its name, or the path of a Python file that defines it
    task_settings: dict[str, Any] = field(default_factory=dict)
    split: str = setting("test", "the split of the problems", metavar="SPLIT")
    problems: int | None = setting(None, "how many problems", shown="all of the split", least=1)
    answers: int | None = setting(
        None, "answers that one completion is to hold", metavar="M", shown="as the model was trained; else 1"
    )
    pool: int = setting(30, "answers sampled for each problem, a multiple of M")
    target: dict[str, float] | None = None  # w*, objective → weight
    max_tokens: int | None = setting(
        None, "token budget of an answer", shown="as the model was trained; else as the task needs"
    )
    prefill: bool | None = setting(
        None,
        "begin each completion with the tag of its first answer, and force the next tag where an answer closes",
        shown="as the model was trained; else off",
    )
    sampling: dict[str, Any] = field(default_factory=dict)  # fields of `Sampling` but for max_new_tokens
    generator: str = setting(
        "",
        "what samples the completions",
        choices=GENERATORS,
        shown="endpoint where --endpoint is given, else transformers",
    )
    precision: str | None = setting(
        None,
        "of the weights, with transformers",
        choices=PRECISIONS,
        shown="bfloat16 on a GPU, else float32",
    )
    endpoint: str | None = setting(None, "address of an OpenAI-compatible server that has the models", metavar="URL")
    limit: float = setting(120.0, "seconds for an endpoint to answer", metavar="SECONDS", above=0)
    concurrent: int = setting(CONCURRENT, "requests in flight at an endpoint, within a batch", least=1)

    def __post_init__(self) -> None:
        """Choose the default generator; refuse wrong types, values out of bounds, and what an endpoint cannot do."""
        check_settings(self)
        object.__setattr__(self, "generator", chosen_generator(self.generator, self.endpoint))
        if self.endpoint is not None:
            check_remote(thinking=bool(self.sampling.get("thinking")), prefill=self.prefill)
        if self.base is not None and self.generator != "transformers":
            raise InputError(f"base is for adapters, which generator {self.generator} cannot load")
        check_precision(self.precision, self.generator)


@dataclass(frozen=True)
class EvalPlan:
    """An evaluation with everything chosen that its config leaves open, before the model is loaded.

    Attributes:
        config: of the evaluation.
        located: the model, its task and the task's settings.
        model: with its answers, token budget and prompt format.
        problems: to evaluate on.
        sampling: of the completions.
        target: w*, objective → weight.
    """

    config: EvalConfig
    located: LocatedModel
    model: ResolvedModel
    problems: Sequence[Any]
    sampling: Sampling
    target: Mapping[str, float] | None

    @property
    def prompted(self) -> dict[str, Any]:
        """How the problems are put to the model: arguments of `problem_prompts` and `evaluate`."""
        in_prompt = self.model.format.target_in_prompt
        return {"answers": self.model.answers, "target": self.target, "target_in_prompt": in_prompt}

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What `eval.json` says of it, beside its measures."""
        generator = self.config.generator
        return {
            "command": command_line(),
            "model": self.config.model,
            "task": self.located.task,
            "task_settings": self.located.settings,
            "split": self.config.split,
            "problems": len(self.problems),
            "answers_per_generation": self.model.answers,
            "prefill": self.model.prefill,
            "sampling": asdict(self.sampling),
            **({} if generator == "transformers" else {"generator": generator}),
            **({} if self.config.precision is None else {"precision": self.config.precision}),
            **scoring_note(self.model.task),
        }

    def settings(self) -> dict[str, Any]:
        """What an evaluation that is continued must agree in. An endpoint may have another address then."""
        facts = self.facts
        return {
            **{name: facts[name] for name in ("task", "task_settings", "split", "problems")},
            **{"model": self.model.path, "answers": self.model.answers, "pool": self.config.pool},
            "target": self.target,
            **asdict(self.sampling),
            # None as where they are not noted.
            "prefill": self.model.prefill or None,
            "generator": facts.get("generator"),
        }


def planned(config: EvalConfig) -> EvalPlan:
    """Choose what a config leaves open, the cheap checks first."""
    located = (locate if config.endpoint is None else locate_remote)(config.model, config.task, config.task_settings)
    model = located.resolve(answers=config.answers, max_tokens=config.max_tokens, prefill=config.prefill)
    check_pool_size(config.pool, model.answers)
    problems = model.task.problems(config.split, count=config.problems)
    model.task.prepare(problems)
    sampling = Sampling(max_new_tokens=model.max_tokens * model.answers, **config.sampling)
    check_thinking(prefill=model.prefill, thinking=sampling.thinking)
    if config.endpoint is not None:
        check_remote(thinking=sampling.thinking, prefill=model.prefill)  # as the model was trained
    target = config.target or model.format.target or model.task.target
    for problem in problems:
        weights_for(target, model.task.names_of(problem), f"problem {problem.id!r}")  # refuses objectives it lacks
    return EvalPlan(config, located, model, problems, sampling, target)


def check_pool_size(pool: int, answers: int) -> None:
    """Refuse a pool that does not consist of whole generations."""
    as_integer(answers, "answers", 1)
    if as_integer(pool, "pool", 1) % answers:
        raise InputError(f"pool must be a multiple of the {answers} answers of a generation, not {pool}")
