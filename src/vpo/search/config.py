"""The settings of a search: model, problems, goals, strategy and budgets."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vpo.util.errors import InputError

STRATEGIES = ("best_of_n", "evolve", "openevolve")
GENERATORS = ("transformers", "vllm", "endpoint")


@dataclass(frozen=True, kw_only=True)
class SearchConfig:
    """The settings of a search. Those that are None are as the model was trained.

    Attributes:
        model: a run, an evaluation of a model, a folder, a name on the hub, or "embedded". At an endpoint: the name of
            its folder, as `vpo serve` names it, or any other name that the endpoint knows.
        generator: what generates the completions: "transformers" or "vllm" in this process, or an "endpoint"; by
            default the endpoint where one is given, else transformers.
        endpoint: the URL of an OpenAI-compatible endpoint.
        strategy: by name.
        task: name or file.
        task_settings: of the task.
        split: of the problems.
        problems: how many; all by default.
        answers: m, per generation.
        targets, conditions, rewards: goals, each searched for in every problem; the task's own goal without any.
        operators: of `evolve`, how often each is used, in proportion.
        parents: how `evolve` chooses them.
        size: of the population of `evolve`.
        features: objectives that span the map of `openevolve`, all by default.
        iterations, budget, per_iteration, seed: see `vpo.search.loop.LoopConfig`.
        max_tokens: token budget of an answer.
        temperature, top_p, batch, thinking: see `vpo.models.generate.Sampling`.
        processes: that score; 0 to score in this process.
        limit: seconds to score a generation, and for a request to an endpoint.
    """

    model: str
    generator: str = ""
    endpoint: str | None = None
    strategy: str = "evolve"
    task: str | None = None
    task_settings: Mapping[str, Any] = field(default_factory=dict)
    split: str = "test"
    problems: int | None = None
    answers: int | None = None
    targets: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    rewards: tuple[str, ...] = ()
    operators: Mapping[str, float] | None = None
    parents: str = "target"
    size: int = 20
    features: tuple[str, ...] = ()
    iterations: int = 100
    budget: Mapping[str, int] = field(default_factory=dict)
    per_iteration: int = 3
    seed: int = 0
    max_tokens: int | None = None
    temperature: float = 0.7
    top_p: float = 1.0
    batch: int = 512
    thinking: bool = False
    processes: int = 2
    limit: float = 60.0

    def __post_init__(self) -> None:
        """Choose the default generator, and check the settings that depend on each other."""
        if self.strategy not in STRATEGIES:
            raise InputError(f"strategy must be one of {', '.join(STRATEGIES)}, not {self.strategy!r}")
        if not self.generator:
            object.__setattr__(self, "generator", "transformers" if self.endpoint is None else "endpoint")
        if self.generator not in GENERATORS:
            raise InputError(f"generator must be one of {', '.join(GENERATORS)}, not {self.generator!r}")
        if self.generator == "endpoint" and self.endpoint is None:
            raise InputError("generator endpoint needs its URL: give --endpoint URL")
        if self.generator != "endpoint" and self.endpoint is not None:
            raise InputError(f"endpoint {self.endpoint} needs generator endpoint, not {self.generator}")
        if self.endpoint is not None and self.thinking:
            raise InputError("thinking cannot be set for an endpoint: it is a setting of its server")
        if self.strategy == "openevolve" and (self.operators is not None or "tokens" in self.budget):
            raise InputError("strategy openevolve has operators of its own, and no budget in tokens")
        if self.strategy == "openevolve" and self.endpoint is None:
            raise InputError("strategy openevolve needs an endpoint: serve the model with vpo serve, and give its URL")
