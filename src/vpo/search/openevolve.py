"""OpenEvolve on the problems of a task: a project for each case, run in a process of its own, and read back.

A case's folder, ``openevolve/NUMBER``, is a project that `siblings` runs: ``config.yaml``, ``evaluator.py``
with every objective as a metric and the goal's value as `combined_score`, ``program.txt`` to begin with, a template
that asks for m answers. What came of it is written into the log of the search, as for any other strategy.
"""

import asyncio
import json
import math
import multiprocessing
import os
import shutil
import signal
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vpo.models.generate import Sampling
from vpo.search.candidates import SearchProblem
from vpo.search.log import Log
from vpo.search.loop import Settings
from vpo.search.scoring import ScoredAnswer, ScoringPool, ScoringRequest, TaskSource
from vpo.tasks import Task
from vpo.util.errors import InputError
from vpo.util.files import complete_lines, write_json, write_text
from vpo.util.jobs import watch_parent

PROJECTS = "openevolve"
SOLVED, FAILED = "vpo_solved", "vpo_failed"  # metrics besides the objectives
EVALUATOR = '''"""Scores an answer: every objective, and as combined_score what the goal gives it."""

from vpo.search.openevolve import evaluator

evaluate = evaluator({settings!r})
'''
TEMPLATE = """{question}

# An answer so far, and its scores
{{current_program}}

{{metrics}}

# Others
{{evolution_history}}

What counts now is: {goal}.

"""
WAITING = 60.0  # seconds beyond what the models and the scoring may take


@dataclass(frozen=True)
class Project:
    """What OpenEvolve is told of one case.

    Attributes:
        folder: of the project.
        case: its problem and goal.
        source: where the task comes from.
        endpoint: its address.
        model: its name there.
        sampling: how it is sampled.
        features: the objectives that span OpenEvolve's map.
        limit: seconds to score an answer, and for a completion.
    """

    folder: Path
    case: SearchProblem
    source: TaskSource
    endpoint: str
    model: str
    sampling: Sampling
    features: tuple[str, ...]
    limit: float

    def write(self, task: Task[Any], settings: Settings) -> None:
        """Write the files of the project."""
        from vpo.search.siblings import ask_for, escaped

        if "combined_score" in task.names:
            raise InputError("OpenEvolve has a metric combined_score of its own: give the objective another name")
        self.folder.mkdir(parents=True, exist_ok=True)
        write_json(self.folder / "config.yaml", self._config(settings))  # JSON is YAML
        told = {"source": asdict(self.source), "problem": self.case.problem.id, "goal": self.case.goal.name}
        told |= {"limit": self.limit, "objectives": task.names_of(self.case.problem)}
        write_text(self.folder / "evaluator.py", EVALUATOR.format(settings=json.dumps(told)))
        write_text(self.folder / "program.txt", "(none yet)")
        question = "\n\n".join(message["content"] for message in task.question(self.case.problem))
        text = TEMPLATE.format(question=escaped(question), goal=escaped(self.case.goal.name))
        ask_for(settings.answers, self.folder / "templates", text)

    def _config(self, settings: Settings) -> dict[str, Any]:
        return {
            "max_iterations": settings.iterations * settings.per_iteration,
            "checkpoint_interval": settings.per_iteration,
            "log_level": "WARNING",
            "random_seed": None,  # it would be sent with every request, and equal prompts get equal completions
            "language": "text",
            "file_suffix": ".txt",
            "diff_based_evolution": False,
            "max_code_length": 100_000,
            "llm": {
                "api_base": self.endpoint,
                "api_key": "${OPENAI_API_KEY}",
                "models": [{"name": self.model, "weight": 1.0}],
                "temperature": self.sampling.temperature,
                "top_p": self.sampling.top_p,
                "max_tokens": self.sampling.max_new_tokens,
                "timeout": math.ceil(self.limit),
                "retries": 1,
                "retry_delay": 1,
            },
            "prompt": {
                "template_dir": "templates",
                "system_message": "You answer as you are asked to.",
                "num_top_programs": 2,
                "num_diverse_programs": 1,
                "use_template_stochasticity": False,
                "include_artifacts": False,
            },
            "database": {
                "population_size": 100,
                "archive_size": 20,
                "num_islands": 1,
                "feature_dimensions": list(self.features),
                "feature_bins": 5,
                "random_seed": settings.seed,
            },
            "evaluator": {
                "timeout": math.ceil(2 * self.limit + WAITING),  # the limit itself is kept by the judge
                "max_retries": 0,
                "cascade_evaluation": False,
                "parallel_evaluations": 1,
            },
        }


def evaluator(settings: str) -> Callable[[str], dict[str, float]]:
    """Return the function by which OpenEvolve scores an answer. It gives every metric, whatever the scorer does."""
    told = json.loads(settings)
    source = TaskSource(**told["source"])
    judges: list[ScoringPool] = []  # one, in the process that scores first

    def evaluate(program_path: str) -> dict[str, float]:
        if not judges:
            judges.append(ScoringPool(source, 1, told["limit"]))
        text = Path(program_path).read_text(encoding="utf-8")
        try:
            ((_, verdict),) = judges[0].judge([ScoringRequest(0, told["problem"], told["goal"], text, 0)])
        except InputError as error:  # its process could not start; the next one may
            judges.pop().close()
            verdict = str(error)
        found = ScoredAnswer(None, failure=verdict) if isinstance(verdict, str) else verdict[0]
        names = told["objectives"]
        scores = dict.fromkeys(names, 0.0) if found.scores is None else dict(zip(names, found.scores, strict=True))
        return {**scores, "combined_score": found.value, SOLVED: float(found.solved), FAILED: float(not found.scores)}

    return evaluate


def evolve(
    projects: Sequence[Project], task: Task[Any], settings: Settings, log: Log, show: Callable[[int], None]
) -> None:
    """Let OpenEvolve search each case, one after another, and write what came of it into the log.

    Args:
        projects: one for each case.
        task: of all of them.
        settings: of the search.
        log: of the search.
        show: told after each case how many are solved.
    """
    rows: list[dict[str, Any]] = []
    found: list[dict[str, Any]] = []
    steps = settings.iterations * settings.per_iteration
    steps = min([steps, *(most * UNITS[unit](settings) for unit, most in settings.budget.items())])
    for project in projects:
        if not _done(project, steps):
            project.write(task, settings)
            _run(project, settings, steps)
        generations, candidates = read_back(project, task, settings, len(rows))
        rows += generations
        found += candidates
        log.replace(rows, found)  # the projects have it all
        show(len({row["case"] for row in found if row["solved"]}))


# What one of a budget's units is worth in children.
UNITS: dict[str, Callable[[Settings], int]] = {"answers": lambda _: 1, "generations": lambda settings: settings.answers}


def _children(project: Project) -> list[dict[str, Any]]:
    """Return what a project came to so far, by iterations."""
    from vpo.search.siblings import CHILDREN

    rows = [json.loads(line) for line in complete_lines(project.folder / "out" / CHILDREN)]
    return sorted(rows, key=lambda row: int(row["iteration"]))


def _done(project: Project, steps: int) -> bool:
    """Return whether a project is solved, or has come as far as it should."""
    children = _children(project)
    solved = any((row["metrics"] or {}).get(SOLVED) for row in children)
    return solved or max((row["iteration"] for row in children), default=0) >= steps


def _run(project: Project, settings: Settings, steps: int) -> None:
    """Run a project to its end in a process of its own: OpenEvolve takes hold of signals, logs and random numbers."""
    task = (project.source.task, project.source.settings)
    process = multiprocessing.get_context("spawn").Process(
        target=run_project, args=(project.folder, settings.answers, task, steps)
    )
    process.start()
    try:
        process.join(steps * 2 * (project.limit + WAITING))
        if process.exitcode is None:
            raise InputError(
                f"{project.folder}: OpenEvolve did not end; its log is in {project.folder / 'out' / 'logs'}"
            )
    finally:
        if process.is_alive():
            process.terminate()
            process.join(WAITING)
            process.kill()
    if process.exitcode:
        raise InputError(
            f"{project.folder}: OpenEvolve ended with exit code {process.exitcode}: see what it said above"
        )
    children = _children(project)
    if not any(row["text"] for row in children):
        shutil.rmtree(project.folder / "out")  # or it would not ask again
        reason = children[0]["error"] if children else "it made no child"
        raise InputError(f"{project.folder}: OpenEvolve made nothing of {project.endpoint}: {reason}")
    if not _done(project, steps):
        raise InputError(f"{project.folder}: OpenEvolve stopped before its end; go on with the same command")


def run_project(folder: Path, answers: int, task: tuple[str, dict[str, Any]], steps: int) -> None:
    """Run a project, from its last checkpoint if it has one: the life of a process, which ends with its parent."""
    watch_parent(lambda: os.kill(os.getpid(), signal.SIGKILL))
    from openevolve.config import load_config

    from vpo.search.siblings import Siblings, newest_checkpoint

    os.environ.setdefault("OPENAI_API_KEY", "none")
    os.environ.setdefault("ENABLE_ARTIFACTS", "false")
    before = newest_checkpoint(folder / "out")
    at, checkpoint = before if before else (0, None)
    _forget_after(folder, at)
    paths = [str(folder / name) for name in ("program.txt", "evaluator.py")]
    config = load_config(folder / "config.yaml")
    evolution = Siblings(*paths, config, str(folder / "out"), answers=answers, task=task, until=SOLVED)
    asyncio.run(evolution.run(iterations=steps - at, checkpoint_path=str(checkpoint) if checkpoint else None))


def _forget_after(folder: Path, iteration: int) -> None:
    """Remove what was noted after a checkpoint, which OpenEvolve will do again."""
    from vpo.search.siblings import CHILDREN

    path = folder / "out" / CHILDREN
    if path.is_file():
        kept = [line for line in complete_lines(path) if json.loads(line)["iteration"] <= iteration]
        write_text(path, "".join(f"{line}\n" for line in kept))


def read_back(
    project: Project, task: Task[Any], settings: Settings, number: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the generations and candidates of a case, as the log has them."""
    steps = settings.iterations * settings.per_iteration
    children = [row for row in _children(project) if row["iteration"] <= steps]
    rows: list[dict[str, Any]] = []
    found: list[dict[str, Any]] = []
    places: dict[str, int] = {}  # of programs among the candidates
    for child in children:
        if child["place"] == 0:
            iteration = (child["iteration"] - 1) // settings.per_iteration
            row = {"number": number + len(rows), "iteration": iteration, "case": project.case.name}
            row |= {"operator": "openevolve", "parent": places.get(child["parent"]), "known": 0, "first": len(found)}
            failed = None if child["text"] else child["error"]
            row |= {"text": child["text"] or "", "tokens": child["tokens"], "failure": failed}
            rows.append(row)
        metrics = child["metrics"] or {}
        failure = child["error"] or (None if metrics.get(FAILED) == 0 else "it was not scored")
        judged = ScoredAnswer(child["code"], failure=failure)
        if not failure:
            scores = tuple(metrics[name] for name in task.names_of(project.case.problem))
            judged = ScoredAnswer(child["code"], None, scores, metrics["combined_score"], bool(metrics[SOLVED]))
        if child["id"]:
            places[child["id"]] = len(found)
        made = {name: rows[-1][name] for name in ("case", "iteration", "operator", "parent")}
        made |= {"generation": rows[-1]["number"], "of": settings.answers, "number": len(found)}
        found.append({**made, "position": child["place"] + 1, **asdict(judged)})
    for place, row in enumerate(rows):
        row |= {"place": place, "of": len(rows)}
    return rows, found
