"""One search from a request: a model or an endpoint, problems, goals and a strategy, into a folder."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vpo.evaluation.eval_folder import FACTS, read_facts
from vpo.models.generate import Sampling
from vpo.models.locate import EMBEDDED, Located, locate
from vpo.models.policy import load
from vpo.models.prompt_format import PromptFormat
from vpo.models.run_folder import is_run
from vpo.search import openevolve
from vpo.search.candidates import SearchProblem
from vpo.search.config import SearchConfig
from vpo.search.generators import EndpointGenerator, Generator, TransformersGenerator, VllmGenerator
from vpo.search.goals import goals_of
from vpo.search.log import Log
from vpo.search.loop import Search, Settings
from vpo.search.operators import check_operators, default_operators
from vpo.search.result import SearchResult, archives_of, read_result
from vpo.search.scoring import ScoringPool, TaskSource, check_limits
from vpo.search.strategies import BestOfN, Evolve, Strategy
from vpo.tasks import Task
from vpo.tasks.task import scoring_note
from vpo.util.errors import InputError
from vpo.util.files import locked, now, write_json

PRELOAD = ("torch", "transformers", "vpo.search.run")  # what a process that searches imports
ENDED, ARCHIVE = "ended.json", "archive.json"  # are there once a search went through its iterations


@dataclass(frozen=True)
class Parts:
    """All that a search is made of, chosen and checked.

    Attributes:
        found: the model.
        task: what asks.
        source: where the task, its problems and the goals come from.
        cases: the problems, each with each goal.
        settings: how the search goes.
        sampling: how the model is sampled.
        operators: of `evolve`, with their shares.
    """

    found: Located
    task: Task[Any]
    source: TaskSource
    cases: tuple[SearchProblem, ...]
    settings: Settings
    sampling: Sampling
    operators: dict[str, float]


def prepare(request: SearchConfig) -> Parts:
    """Return the parts of a search: what is wrong with a request is refused here."""
    check_limits(request.processes, request.limit)
    found, answers = _located(request)
    model = found.resolve(answers=answers, max_tokens=request.max_tokens)
    task, answers = model.task, model.answers
    given = {"targets": request.targets, "conditions": request.conditions, "functions": request.rewards}
    wanted = {kind: list(texts) for kind, texts in given.items()}
    goals = goals_of(task, **wanted)
    problems = task.problems(request.split, count=request.problems)
    if not problems:
        raise InputError(f"there are no problems in split {request.split!r}")
    for problem in problems:
        names = task.names_of(problem)
        for feature in request.features:
            if feature not in names:
                raise InputError(f"features names {feature!r}, and the objectives are {', '.join(names)}")
        for goal in goals:
            goal.check(problem)
    unable = _writer_kind(request).unable
    operators = dict(request.operators or default_operators(answers, unable))
    return Parts(
        found,
        task,
        TaskSource(found.task, found.settings, request.split, request.problems, wanted),
        tuple(SearchProblem(problem, goal) for problem in problems for goal in goals),
        Settings(
            iterations=request.iterations,
            budget=request.budget,
            answers=answers,
            per_iteration=request.per_iteration,
            told=model.format.target_in_prompt,
            seed=request.seed,
        ),
        Sampling(
            temperature=request.temperature,
            top_p=request.top_p,
            max_new_tokens=model.max_tokens * answers,
            batch=request.batch,
            thinking=request.thinking,
        ),
        check_operators(operators, answers, unable),
    )


def search_into(
    folder: Path, request: SearchConfig, show: Callable[[int, int, int], None] | None = None
) -> SearchResult:
    """Search, or go on with a search, in a folder, and return what it came to.

    Args:
        folder: for the log.
        request: what to do.
        show: told after each iteration (of OpenEvolve: case) how many there will be, how many cases are solved, and
            how many cases there are.
    """
    parts = prepare(request)
    made = _strategy(request, parts.operators)
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder, "searching in this folder"):
        log = Log(folder, _noted(request, parts))
        if not _went_through(folder, request):
            if request.strategy == "openevolve":
                _let_openevolve(folder, request, parts, log, show or _silent)
            else:
                _search(request, parts, made, log, show or _silent)
            write_json(folder / ARCHIVE, archives_of(folder))
            write_json(folder / ENDED, {"iterations": request.iterations, "ended": now()})
    return read_result(folder, request.iterations)


def _noted(request: SearchConfig, parts: Parts) -> dict[str, Any]:
    """Return what makes a search the same search: all but what may change from call to call."""
    free = ("iterations", "processes", "limit", "endpoint")
    chosen = {"answers": parts.settings.answers, "operators": parts.operators}
    chosen |= {"task": parts.found.task, "task_settings": parts.found.settings}
    chosen["cases"] = [[case.problem.id, case.goal.name] for case in parts.cases]
    chosen |= scoring_note(parts.task)
    return {**{name: value for name, value in asdict(request).items() if name not in free}, **chosen}


def _search(
    request: SearchConfig,
    parts: Parts,
    made: Callable[[], Strategy],
    log: Log,
    show: Callable[[int, int, int], None],
) -> None:
    problems = list({case.problem.id: case.problem for case in parts.cases}.values())
    judge = ScoringPool(parts.source, request.processes, request.limit, problems)
    try:
        writer = _writer(request, parts.found, parts.sampling)
        search = Search(writer, parts.task, parts.cases, made, judge, log, parts.settings)
        for solved in search.run():
            show(request.iterations, solved, len(parts.cases))
    finally:
        judge.close()


def _let_openevolve(
    folder: Path, request: SearchConfig, parts: Parts, log: Log, show: Callable[[int, int, int], None]
) -> None:
    assert request.endpoint is not None
    place = folder / openevolve.PROJECTS
    told = (parts.source, request.endpoint, _served_name(request), parts.sampling)
    projects = [
        openevolve.Project(
            place / str(number),
            case,
            *told,
            request.features or parts.task.names_of(case.problem),
            request.limit,
        )
        for number, case in enumerate(parts.cases)
    ]
    count = len(projects)
    openevolve.evolve(projects, parts.task, parts.settings, log, lambda solved: show(count, solved, count))


def _went_through(folder: Path, request: SearchConfig) -> bool:
    """Return whether the search in a folder went through as many iterations as are asked for."""
    path = folder / ENDED
    return path.is_file() and json.loads(path.read_text(encoding="utf-8"))["iterations"] >= request.iterations


@dataclass(frozen=True)
class SearchJob:
    """A search to be done in a process of its own."""

    folder: Path
    request: SearchConfig

    @property
    def done(self) -> bool:
        """Whether it went through all of its iterations."""
        return _went_through(self.folder, self.request)

    @property
    def length(self) -> float:
        """All take about as long."""
        return 0.0

    def do(self) -> None:
        """Search."""
        search_into(self.folder, self.request)


def _located(request: SearchConfig) -> tuple[Located, int | None]:
    """Return the model, and how many answers it is asked for: as it was evaluated; None: as it was trained."""
    settings = dict(request.task_settings)
    folder = Path(request.model)
    if request.endpoint is None and (folder / FACTS).is_file() and not is_run(folder):
        known = read_facts(folder)
        found = locate(known["model"], request.task or known["task"], {**known["task_settings"], **settings})
        return found, known["answers_per_generation"] if request.answers is None else request.answers
    if request.endpoint is not None and request.model != EMBEDDED and not Path(request.model).exists():
        if request.task is None:
            raise InputError("task must be given with an endpoint whose model is not here")
        return Located(request.task, request.model, PromptFormat(task=request.task), settings), request.answers
    return locate(request.model, request.task, settings), request.answers


def _silent(total: int, solved: int, cases: int) -> None:
    """Show nothing."""


def _served_name(request: SearchConfig) -> str:
    """Return by what name an endpoint knows a model: as `vpo serve` calls it, where it is here."""
    return Path(request.model).absolute().name if Path(request.model).exists() else request.model


def _writer_kind(request: SearchConfig) -> type[EndpointGenerator | VllmGenerator | TransformersGenerator]:
    if request.endpoint is not None:
        return EndpointGenerator
    return VllmGenerator if request.generator == "vllm" else TransformersGenerator


def _writer(request: SearchConfig, found: Located, sampling: Sampling) -> Generator:
    kind = _writer_kind(request)
    if kind is EndpointGenerator:
        return EndpointGenerator(str(request.endpoint), _served_name(request), sampling, limit=request.limit)
    return (
        VllmGenerator(found.path, sampling)
        if kind is VllmGenerator
        else TransformersGenerator(load(found.path), sampling)
    )


def _strategy(request: SearchConfig, operators: Mapping[str, float]) -> Callable[[], Strategy]:
    if request.strategy == "best_of_n":
        return BestOfN
    Evolve(operators=operators, parents=request.parents, size=request.size)  # refuses what cannot be
    return lambda: Evolve(operators=operators, parents=request.parents, size=request.size)
