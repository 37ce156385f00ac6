"""The settings of a search: model, problems, goals, strategy and budgets."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vpo.evaluation.eval_plan import EvalConfig
from vpo.models.forced_tags import check_thinking
from vpo.models.generate import Sampling
from vpo.models.precision import check_precision
from vpo.models.remote import check_remote, chosen_generator
from vpo.util.errors import InputError
from vpo.util.settings import check_settings, setting, setting_like


@dataclass(frozen=True, kw_only=True)
class SearchConfig:
    """What to search with, on which problems, for which goals. What is None is as the model was trained.

    At an endpoint the model is requested by the name of its folder, as `vpo serve` has it, or else by the name given.
    """

    model: str  # a run, an evaluation of a model, a folder, a name on the hub, or "embedded"
    generator: str = setting_like(EvalConfig, "generator")
    endpoint: str | None = setting_like(EvalConfig, "endpoint")
    precision: str | None = setting_like(EvalConfig, "precision")
    strategy: str = setting("evolve", "how to search", choices=("evolve", "best_of_n", "tree", "openevolve"))
    task: str | None = None  # its name, or the path of a Python file that defines it
    task_settings: Mapping[str, Any] = field(default_factory=dict)
    split: str = setting_like(EvalConfig, "split")
    problems: int | None = setting_like(EvalConfig, "problems")
    unsolved_by: tuple[str, ...] = ()  # evaluations or pools: search the problems that no answer of theirs solves
    answers: int | None = setting_like(EvalConfig, "answers")
    # Goals, each of which is searched for in every problem; without any, the task's own.
    targets: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    rewards: tuple[str, ...] = ()
    operators: Mapping[str, float] | None = None  # of evolve or tree: how often each is used, in proportion
    parents: str | None = setting(
        None,
        "how evolve chooses parents: by target, best, weighting, lexicase or novelty",
        metavar="NAME",
        shown="target; weighting where the task says what is wrong, as code does",
    )
    population: int = setting(20, "candidates that evolve keeps", least=1)
    features: tuple[str, ...] = setting(
        (), "objectives that span OpenEvolve's map of elites", metavar="NAME,…", shown="all"
    )
    iterations: int = setting(100, "iterations for each problem and goal")
    budget: Mapping[str, int] = field(default_factory=dict)  # answers, generations or tokens → at most
    per_iteration: int = setting(3, "answers per iteration")
    seed: int = setting_like(Sampling, "seed")
    max_tokens: int | None = setting_like(EvalConfig, "max_tokens")
    temperature: float = setting_like(Sampling, "temperature")
    top_p: float = setting_like(Sampling, "top_p")
    batch: int = setting_like(Sampling, "batch")
    thinking: bool = setting_like(Sampling, "thinking")
    prefill: bool | None = setting_like(EvalConfig, "prefill")
    processes: int = setting(2, "processes that score; 0 scores in this process, without a time limit")
    limit: float = setting(60.0, "seconds to score a generation, and for an endpoint to answer", metavar="SECONDS")

    def __post_init__(self) -> None:
        """Choose the default generator, and refuse settings that contradict each other."""
        check_settings(self)
        object.__setattr__(self, "generator", chosen_generator(self.generator, self.endpoint))
        if self.endpoint is not None:
            check_remote(thinking=self.thinking, prefill=self.prefill)
        check_precision(self.precision, self.generator)
        check_thinking(prefill=bool(self.prefill), thinking=self.thinking)
        if self.strategy == "openevolve" and (self.operators is not None or "tokens" in self.budget):
            raise InputError("strategy openevolve takes neither operators nor a budget in tokens")
        if self.strategy == "openevolve" and self.endpoint is None:
            raise InputError("strategy openevolve needs an endpoint: serve the model with vpo serve, and give its URL")
