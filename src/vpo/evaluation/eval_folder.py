"""Evaluations: a pool of answers and what was measured of it, in the folder of a run or in one of their own.

``pool.parquet`` holds the answers, ``eval.json``, written last, how they were drawn and what they measure.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vpo.core.targets import weights_for
from vpo.evaluation.pools import Pool, read_pool
from vpo.models.run_folder import RunFolder, is_run
from vpo.tasks import Task, find, get
from vpo.util.errors import InputError
from vpo.util.files import first_difference, write_json

POOL, FACTS = "pool.parquet", "eval.json"


@dataclass(frozen=True)
class Evaluation:
    """A pool, and how it was drawn: the fields of `eval.json`, or nothing for a pool of other origin.

    Attributes:
        pool: the answers.
        facts: the fields of `eval.json`.
        folder: where they are, None for a pool of other origin.
    """

    pool: Pool
    facts: Mapping[str, Any]
    folder: Path | None = None

    def commands(self) -> list[str]:
        """Return the commands that made the run and the evaluation, as far as they are known."""
        trained = RunFolder(self.folder).notes() if self.folder else {}
        return [each["command"] for each in (trained, self.facts) if "command" in each]


def check_free(folder: Path, *, overwrite: bool) -> None:
    """Refuse a folder that holds an evaluation already."""
    if any((folder / name).exists() for name in (FACTS, POOL)) and not overwrite:
        raise InputError(
            f"{folder}: there is an evaluation already: choose another folder with --out, or give --overwrite"
        )


def new_pool_path(folder: Path) -> Path:
    """Prepare a folder for a new pool: it exists, and the measures of an earlier pool are gone."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FACTS).unlink(missing_ok=True)
    return folder / POOL


def write_facts(folder: Path, facts: Mapping[str, Any]) -> None:
    """Write how a pool was drawn and what it measures, whereby the evaluation is whole."""
    write_json(folder / FACTS, facts)


def read_evaluation(path: str | Path) -> Evaluation:
    """Return the evaluation in a folder, or a pool file as one."""
    path = Path(path)
    if path.is_file():
        return Evaluation(read_pool(path), {})
    if not path.is_dir():
        raise InputError(f"{path}: there is no such run, folder or pool")
    if is_run(path) and not RunFolder(path).finished:
        raise InputError(f"{path}: the run is not finished; go on with it: vpo train --resume {path}")
    if not (path / FACTS).is_file():
        raise InputError(f"{path}: there is no evaluation here; make one: vpo eval {path}")
    return Evaluation(read_pool(path / POOL), read_facts(path), path)


def read_facts(folder: Path) -> dict[str, Any]:
    """Return how the pool in a folder was drawn, and what it measures."""
    path = folder / FACTS
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path}: the file is not JSON ({error})") from None
    if not isinstance(facts, dict) or not {"task", "task_settings", "split", "problems", "target"} <= facts.keys():
        raise InputError(f"{path}: this is not what vpo eval writes; make it anew: vpo eval … --overwrite")
    return facts


def read_whole(paths: Iterable[str | Path]) -> tuple[list[Evaluation], list[str]]:
    """Return the evaluations that are whole, and what is wrong with the others; refuse where none is."""
    whole, wrong = [], []
    for path in paths:
        try:
            whole.append(read_evaluation(path))
        except InputError as error:
            wrong.append(str(error))
    if not whole:
        raise InputError("; ".join(wrong))
    return whole, wrong


def has_own(evaluation: Evaluation, method: str) -> bool:
    """Return whether the task of an evaluation has a method of its own, without making it, which may load models."""
    try:
        return "task" in evaluation.facts and getattr(find(evaluation.facts["task"]), method) is not getattr(
            Task, method
        )
    except InputError:  # it is gone
        return False


def task_of(evaluation: Evaluation) -> Task[Any] | None:
    """Return the task that an evaluation asked, or None for a pool of other origin, or where it is gone."""
    facts = evaluation.facts
    try:
        return get(facts["task"], **facts["task_settings"]) if "task" in facts else None
    except InputError:
        return None


def shared_target(evaluations: Sequence[Evaluation]) -> Mapping[str, float] | None:
    """Return the weighting that all evaluations report, or None where none does; refuse different ones."""
    targets = [each.facts["target"] for each in evaluations if "target" in each.facts]
    if any(each != targets[0] for each in targets):
        raise InputError("the runs were evaluated under different targets: choose one with --target NAME=W,…")
    return targets[0] if targets else None


def scoring_notes(evaluations: Sequence[Evaluation]) -> list[str]:
    """Return a note for each evaluation whose answers were scored otherwise than those of the first that says how."""
    said = [each for each in evaluations if "scoring" in each.facts]
    return [
        f"{each.folder} was scored otherwise than {said[0].folder}, so their numbers are not of one kind: {changed}"
        for each in said[1:]
        if (changed := first_difference(said[0].facts["scoring"], each.facts["scoring"]))
    ]


def oracle_of(evaluations: Sequence[Evaluation], target: Mapping[str, float] | None) -> dict[str, float] | None:
    """Return the best that any answer can earn on each problem that is in all pools, where the task knows it."""
    keys = ("task", "task_settings", "split")
    first = evaluations[0].facts
    if "task" not in first or any(each.facts.get(key) != first[key] for each in evaluations for key in keys):
        return None
    task = task_of(evaluations[0]) if has_own(evaluations[0], "best") else None
    if task is None:
        return None
    wanted = set.intersection(*(set(each.pool.problems) for each in evaluations))
    problems = task.problems(first["split"], count=max(each.facts["problems"] for each in evaluations))
    best = {
        problem.id: task.best(problem, weights_for(target, task.names_of(problem)).tolist())
        for problem in problems
        if problem.id in wanted
    }
    return {name: value for name, value in best.items() if value is not None} if None not in best.values() else None
