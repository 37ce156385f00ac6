"""From a `SearchConfig` to the parts of a search: the model and its task, the problems with goals, the generator."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vpo.evaluation.eval_folder import FACTS, read_facts
from vpo.models.forced_tags import check_thinking
from vpo.models.generate import Sampling
from vpo.models.locate import LocatedModel, ResolvedModel, locate
from vpo.models.policy import load
from vpo.models.remote import check_remote, locate_remote, served_name
from vpo.models.run_folder import is_run
from vpo.models.vllm_model import VllmModel, forced_opening
from vpo.search.candidates import SearchProblem
from vpo.search.config import SearchConfig
from vpo.search.generators import EndpointGenerator, Generator, TransformersGenerator, VllmGenerator
from vpo.search.goals import goals_of
from vpo.search.loop import LoopConfig
from vpo.search.operators import check_operators, default_operators
from vpo.search.problems import search_problems
from vpo.search.scorer import TaskSource
from vpo.search.scoring_pool import check_limits
from vpo.search.strategies import BestOfN, Evolve, Strategy
from vpo.search.tree import Tree, tree_operators
from vpo.tasks import Task
from vpo.tasks.task import scoring_note
from vpo.util.errors import InputError

GENERATORS: dict[str, type[EndpointGenerator | VllmGenerator | TransformersGenerator]] = {
    "transformers": TransformersGenerator,
    "vllm": VllmGenerator,
    "endpoint": EndpointGenerator,
}
CHANGEABLE = ("iterations", "processes", "limit", "endpoint")  # when a search is resumed
ELSEWHERE = ("precision", "prefill", "unsolved_by")  # the first two where they are set, the third among the cases


@dataclass(frozen=True)
class SearchSetup:
    """The checked parts of a search.

    Attributes:
        config: that they follow from.
        model: with its task, answers per generation and tokens per answer.
        source: for the processes that score.
        problems: each problem with each goal.
        loop: budgets and seed.
        sampling: of the generator.
        operators: of `evolve` or `tree`, with their shares.
    """

    config: SearchConfig
    model: ResolvedModel
    source: TaskSource
    problems: tuple[SearchProblem, ...]
    loop: LoopConfig
    sampling: Sampling
    operators: dict[str, float]

    @property
    def task(self) -> Task[Any]:
        """The task of the problems."""
        return self.model.task

    @property
    def parents(self) -> str:
        """How `evolve` chooses parents."""
        return self.config.parents or ("weighting" if self.task.repairs else "target")

    def note(self) -> dict[str, Any]:
        """The settings that must be the same when the search is resumed, for `search.json`."""
        settings = {name: value for name, value in asdict(self.config).items() if name not in (*CHANGEABLE, *ELSEWHERE)}
        return {
            **({"prefill": True} if self.model.prefill else {}),
            **({} if self.config.precision is None else {"precision": self.config.precision}),
            **settings,
            # A search may continue with the same model behind an endpoint.
            "generator": "vllm" if self.config.generator == "vllm" else "transformers",
            "answers": self.model.answers,
            "operators": self.operators,
            "parents": self.parents,
            "task": self.model.located.task,
            "task_settings": self.model.located.settings,
            "cases": [[each.problem.id, each.goal.name] for each in self.problems],
            **scoring_note(self.task),
        }

    def new_generator(self) -> Generator:
        """Load the model, or connect to its endpoint."""
        config = self.config
        if config.generator == "endpoint":
            name = served_name(config.model)
            return EndpointGenerator(str(config.endpoint), name, self.sampling, timeout=config.limit)
        if config.generator == "vllm":
            return VllmGenerator(VllmModel(self.model.path, self.sampling, forced_opening(self.model)))
        policy = load(self.model.path, precision=config.precision)
        return TransformersGenerator(policy, self.sampling, self.model.forced_tags(policy.tokenizer))

    def new_strategy(self, problem: SearchProblem) -> Strategy:
        """The strategy of one search problem."""
        if self.config.strategy == "best_of_n":
            return BestOfN()
        if self.config.strategy == "tree":
            return Tree(task=self.task, problem=problem, operators=self.operators)
        return Evolve(operators=self.operators, parents=self.parents, size=self.config.population)


def prepare(config: SearchConfig) -> SearchSetup:
    """Check a config and choose the parts of its search; no model is loaded yet."""
    check_limits(config.processes, config.limit)
    located, evaluated = locate_model(config)
    model = located.resolve(
        answers=evaluated.get("answers_per_generation") if config.answers is None else config.answers,
        max_tokens=config.max_tokens,
        prefill=evaluated.get("prefill") if config.prefill is None else config.prefill,
    )
    if model.prefill:
        _check_forcing(config, model)
    goal_texts = {
        "targets": list(config.targets),
        "conditions": list(config.conditions),
        "functions": list(config.rewards),
    }
    unsupported = {**GENERATORS[config.generator].unsupported, **_unsupported_by(model.task)}
    if config.strategy == "tree":
        operators = tree_operators(config.operators, unsupported)
    else:
        operators = dict(config.operators or default_operators(model.task, model.answers, unsupported))
    setup = SearchSetup(
        config,
        model,
        TaskSource(located.task, located.settings, config.split, config.problems, goal_texts),
        search_problems(config, model.task, goals_of(model.task, **goal_texts)),
        LoopConfig(
            iterations=config.iterations,
            budget=config.budget,
            answers=model.answers,
            per_iteration=config.per_iteration,
            max_tokens=model.max_tokens * model.answers,
            target_in_prompt=model.format.target_in_prompt,
            seed=config.seed,
        ),
        Sampling(
            temperature=config.temperature,
            top_p=config.top_p,
            max_new_tokens=model.max_tokens * model.answers,
            batch=config.batch,
            thinking=config.thinking,
        ),
        check_operators(operators, model.answers, unsupported),
    )
    setup.new_strategy(setup.problems[0])  # raises for settings that it cannot use
    return setup


def _unsupported_by(task: Task[Any]) -> dict[str, str]:
    """The operators that a task does not support, and why."""
    if type(task).resolve is Task.resolve:
        return {}
    why = f"continues the text of an answer, and one of task {task.name} may be changes to its parent"
    return dict.fromkeys(("regrow", "branch", "extend"), why)


def _check_forcing(config: SearchConfig, model: ResolvedModel) -> None:
    """Refuse prefill where the generator cannot force tags."""
    check_thinking(prefill=True, thinking=config.thinking)
    if config.generator == "endpoint":
        check_remote(thinking=config.thinking, prefill=True)
    if config.generator == "vllm":
        forced_opening(model)


def locate_model(config: SearchConfig) -> tuple[LocatedModel, dict[str, Any]]:
    """The model, and how it was evaluated, where an evaluation of it is given."""
    settings = dict(config.task_settings)
    folder = Path(config.model)
    if config.endpoint is None and (folder / FACTS).is_file() and not is_run(folder):
        facts = read_facts(folder)
        if not {"model", "answers_per_generation"} <= facts.keys():
            raise InputError(f"{folder / FACTS}: the file is damaged: it names no model")
        located = locate(facts["model"], config.task or facts["task"], {**facts["task_settings"], **settings})
        return located, facts
    if config.endpoint is not None:
        return locate_remote(config.model, config.task, settings), {}
    return locate(config.model, config.task, settings), {}
