"""`vpo search --strategy openevolve`: one OpenEvolve project after another, and their results into the search's log."""

import asyncio
import json
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from vpo.models.remote import TRIES, served_name
from vpo.search.log import Log
from vpo.search.loop import LoopConfig
from vpo.search.openevolve.children import read_children
from vpo.search.openevolve.project import SLACK_SECONDS, SOLVED, Project, program_config, program_file
from vpo.search.scorer import ScoredAnswer, TaskSource
from vpo.search.setup import SearchSetup
from vpo.tasks import Task, get
from vpo.tasks.evaluator import EvaluatorTask
from vpo.util.errors import InputError
from vpo.util.jobs import watch_parent
from vpo.util.packages import check_installed

PROJECTS = "openevolve"


def search(setup: SearchSetup, log: Log, progress: Callable[[int, int, int], None]) -> None:
    """Search each problem with OpenEvolve; `progress` is called after each with total, solved and number of problems.

    The projects keep all results; the log is written from them after each problem.
    """
    check_installed("openevolve", "strategy openevolve", extra="search")
    steps = _children_budget(setup.loop)
    generations: list[dict[str, Any]] = []
    candidates: list[dict[str, Any]] = []
    for number, problem in enumerate(setup.problems):
        project = Project(
            log.folder / PROJECTS / str(number),
            problem,
            setup.source,
            str(setup.config.endpoint),
            served_name(setup.config.model),
            setup.sampling,
            setup.config.features or setup.task.names_of(problem.problem),
            setup.config.limit,
        )
        if not _is_done(project, steps):
            project.write(setup.task, setup.loop)
            _run(project, setup.loop.answers, steps)
        new_generations, new_candidates = log_rows(project, setup.task, setup.loop, len(generations))
        generations += new_generations
        candidates += new_candidates
        log.replace(generations, candidates)
        solved = len({row["case"] for row in candidates if row["solved"]})
        progress(len(setup.problems), solved, len(setup.problems))


def _children_budget(config: LoopConfig) -> int:
    """How many children OpenEvolve may make for a problem."""
    children_per_unit = {"answers": 1, "generations": config.answers}
    budgets = [most * children_per_unit[unit] for unit, most in config.budget.items()]
    return min([config.iterations * config.per_iteration, *budgets])


def _is_done(project: Project, steps: int) -> bool:
    """Whether a project is solved or has made all of its children."""
    children = read_children(project.output)
    solved = any((row["metrics"] or {}).get(SOLVED) for row in children)
    return solved or max((row["iteration"] for row in children), default=0) >= steps


def _run(project: Project, answers: int, steps: int) -> None:
    """Run a project in another process: OpenEvolve sets up the root logger and global random numbers."""
    context = multiprocessing.get_context("spawn")
    errors, errors_there = context.Pipe(duplex=False)
    arguments = (project.folder, project.source, project.limit, answers, steps, errors_there)
    process = context.Process(target=run_project, args=arguments)
    process.start()
    errors_there.close()
    try:
        # The limits of requests and scoring hold by themselves; this is for a process that hangs.
        process.join(steps * (2 * TRIES * project.limit + 2 * SLACK_SECONDS))
        if process.exitcode is None:
            raise InputError(f"{project.folder}: OpenEvolve did not end; its log is in {project.output / 'logs'}")
    finally:
        if process.is_alive():
            process.terminate()
            process.join(SLACK_SECONDS)
            process.kill()
    if process.exitcode < 0:
        raise InputError(
            f"{project.folder}: the process of OpenEvolve was killed by signal {-process.exitcode}; "
            "resume with the same command"
        )
    if process.exitcode:
        with suppress(EOFError):
            raise InputError(f"{project.folder}: {errors.recv()}")
        raise InputError(f"{project.folder}: OpenEvolve failed (exit code {process.exitcode}): see its messages above")


def run_project(folder: Path, source: TaskSource, limit: float, answers: int, steps: int, errors: Any) -> None:
    """The main function of the process of a project; it is killed when its parent ends.

    Args:
        folder: of the project.
        source: of the task that reads the answers.
        limit: seconds for a request.
        answers: m, per completion.
        steps: children to make.
        errors: a pipe for the message of an `InputError`.
    """
    watch_parent(lambda: os.kill(os.getpid(), signal.SIGKILL))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent too, which terminates this process
    os.environ.setdefault("OPENAI_API_KEY", "none")
    task = get(source.task, **source.settings)
    has_programs = isinstance(task, EvaluatorTask)
    os.environ.setdefault("ENABLE_ARTIFACTS", json.dumps(has_programs))
    from openevolve.config import load_config

    from vpo.search.openevolve.evolution import SetEvolution

    config = load_config(folder / "config.yaml")
    config.llm.update_model_params({"timeout": limit}, overwrite=True)
    if isinstance(task, EvaluatorTask):
        config = program_config(config, task)
    evolution = SetEvolution(
        folder / program_file(task),
        folder / "evaluator.py",
        config,
        folder / "out",
        answers=answers,
        task=None if has_programs else task,
        until=SOLVED,
    )
    try:
        asyncio.run(evolution.run(steps))
    except InputError as error:
        errors.send(str(error))
        sys.exit(1)


def log_rows(
    project: Project, task: Task[Any], config: LoopConfig, first_number: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The generations and the candidates of a project, as the log of a search has them.

    Args:
        project: that was run.
        task: of its problem.
        config: of the search.
        first_number: of its first generation.
    """
    steps = config.iterations * config.per_iteration
    generations: list[dict[str, Any]] = []
    candidates: list[dict[str, Any]] = []
    candidate_numbers: dict[str, int] = {}  # by the id of the program
    objectives = task.names_of(project.problem.problem)
    for child in read_children(project.output):
        if child["iteration"] > steps:
            break
        if child["place"] == 0:
            generations.append(
                {
                    "number": first_number + len(generations),
                    "iteration": (child["iteration"] - 1) // config.per_iteration,
                    "case": project.problem.name,
                    "parent": candidate_numbers.get(child["parent"]),
                    "first": len(candidates),
                    "answers": 0,
                    **_generation_fields(child),
                }
            )
        generations[-1]["answers"] += 1
        if child["id"]:
            candidate_numbers[child["id"]] = len(candidates)
        candidates.append(
            {
                **_candidate_fields(child, generations[-1], objectives),
                "of": config.answers,
                "number": len(candidates),
            }
        )
    for index, row in enumerate(generations):
        row |= {"place": index, "of": len(generations)}
    return generations, candidates


def _generation_fields(child: dict[str, Any]) -> dict[str, Any]:
    """What the log has of a completion, from the row of its first child."""
    return {
        "operator": "openevolve",
        "known": 0,
        "text": child["text"] or "",
        "tokens": child["tokens"],
        "failure": None if child["text"] else child["error"],
    }


def _candidate_fields(child: dict[str, Any], generation: dict[str, Any], objectives: tuple[str, ...]) -> dict[str, Any]:
    """What the log has of a child, besides its number."""
    return {
        **{name: generation[name] for name in ("case", "iteration", "operator", "parent")},
        "generation": generation["number"],
        "position": child["place"] + 1,
        **asdict(_scored_answer(child, objectives)),
    }


def _scored_answer(child: dict[str, Any], objectives: tuple[str, ...]) -> ScoredAnswer:
    """The scores of a child, from OpenEvolve's metrics."""
    metrics = child["metrics"] or {}
    if child["error"]:
        return ScoredAnswer(child["code"], failure=child["error"])
    scores = tuple(metrics[name] for name in objectives)
    return ScoredAnswer(child["code"], None, scores, metrics["combined_score"], bool(metrics[SOLVED]))
