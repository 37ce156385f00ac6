"""The folder of an evaluation, which may be that of a run: a pool of answers, how it was sampled, and its measures.

``pool.parquet`` has the answers. ``eval.json`` has the rest; it is written last, so an evaluation with it is complete.
Until then ``eval.partial`` has what was sampled and scored so far (`vpo.evaluation.eval_log`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vpo.core.targets import weights_for
from vpo.evaluation.eval_log import EvalLog
from vpo.evaluation.pools import Pool, read_pool
from vpo.models.run_folder import RunFolder, is_run
from vpo.tasks import Task, find, get
from vpo.util.errors import InputError
from vpo.util.files import write_json
from vpo.util.records import first_difference
from vpo.util.stored import read_object

POOL, FACTS = "pool.parquet", "eval.json"
# Of eval.json, with their types; others are for people.
FIELDS = {
    "task": str,
    "task_settings": dict[str, Any],
    "split": str,
    "problems": int,
    "target": dict[str, float] | None,
}


@dataclass(frozen=True)
class Evaluation:
    """A pool, and how it was sampled.

    Attributes:
        pool: the answers.
        facts: the fields of `eval.json`; none for a pool that is a file alone.
        folder: of both; None for a pool that is a file alone.
    """

    pool: Pool
    facts: Mapping[str, Any]
    folder: Path | None = None

    def commands(self) -> list[str]:
        """The commands that made the run and the evaluation, as far as they are known."""
        trained = RunFolder(self.folder).notes() if self.folder else {}
        return [each["command"] for each in (trained, self.facts) if "command" in each]


def check_free(folder: Path, *, overwrite: bool) -> None:
    """Refuse a folder that has an evaluation; one that is not complete may be continued."""
    complete = (folder / FACTS).exists() or ((folder / POOL).exists() and not EvalLog(folder).started)
    if complete and not overwrite:
        raise InputError(
            f"{folder} has an evaluation: choose another folder with --out, or replace it with --overwrite"
        )


def new_pool_path(folder: Path) -> Path:
    """Prepare a folder for a new pool: it exists, and the measures of an earlier pool are gone."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FACTS).unlink(missing_ok=True)
    return folder / POOL


def write_facts(folder: Path, facts: Mapping[str, Any]) -> None:
    """Write eval.json, which completes the evaluation."""
    write_json(folder / FACTS, facts)


def read_evaluation(path: str | Path) -> Evaluation:
    """Read the evaluation in a folder, or a pool file."""
    path = Path(path)
    if path.is_file():
        return Evaluation(read_pool(path), {})
    if not path.is_dir():
        raise InputError(f"no such run, folder or pool: {path}")
    if is_run(path) and not RunFolder(path).trained:
        raise InputError(
            f"{path}: the run is not finished: follow it with `vpo watch {path}`, or resume it with "
            f"`vpo train --resume {path}`"
        )
    if not (path / FACTS).is_file():
        if command := EvalLog(path).command():
            raise InputError(f"{path}: the evaluation is not finished: continue it with `{command}`")
        raise InputError(f"{path} has no evaluation: make one with `vpo eval {path}`")
    return Evaluation(read_pool(path / POOL), read_facts(path), path)


def read_facts(folder: Path) -> dict[str, Any]:
    """Read eval.json."""
    try:
        return read_object(folder / FACTS, FIELDS)
    except InputError as error:
        raise InputError(f"{error}; evaluate again with `vpo eval … --overwrite`") from None


def read_all(paths: Iterable[str | Path]) -> list[Evaluation]:
    """Read evaluations; where some cannot be read, all of those are named: none is left out of a comparison."""
    evaluations, reasons = [], []
    for path in paths:
        try:
            evaluations.append(read_evaluation(path))
        except InputError as error:
            reasons.append(str(error))
    if reasons:
        raise InputError("; ".join(reasons))
    return evaluations


def has_own(evaluation: Evaluation, method: str) -> bool:
    """Whether the task's class overrides a method of `Task`; the task is not made, since that may load models."""
    if "task" not in evaluation.facts:
        return False
    try:
        return getattr(find(evaluation.facts["task"]), method) is not getattr(Task, method)
    except InputError:  # the task is no longer installed
        return False


def task_of(evaluation: Evaluation) -> Task[Any] | None:
    """The task of an evaluation; None for a pool that is a file alone, or where the task is no longer installed."""
    facts = evaluation.facts
    try:
        return get(facts["task"], **facts["task_settings"]) if "task" in facts else None
    except InputError:
        return None


def task_notes(evaluations: Sequence[Evaluation]) -> list[str]:
    """A note for each task that can no longer be made, though its oracle or its pictures would be shown."""
    known = {str(each.facts["task"]): each for each in evaluations if "task" in each.facts}
    notes = []
    for name, evaluation in known.items():
        try:
            task = find(name)
            if task.best is not Task.best or task.scene is not Task.scene:
                get(name, **evaluation.facts["task_settings"])
        except InputError as error:
            notes.append(f"no share of the oracle and no pictures, since task {name} cannot be made: {error}")
    return notes


def scoring_notes(evaluations: Sequence[Evaluation]) -> list[str]:
    """A note for each evaluation whose scores were made differently from those of the first that records how."""
    recorded = [each for each in evaluations if "scoring" in each.facts]
    return [
        f"{each.folder} was scored differently from {recorded[0].folder}, so their numbers do not compare: {changed}"
        for each in recorded[1:]
        if (changed := first_difference(recorded[0].facts["scoring"], each.facts["scoring"]))
    ]


def oracle_of(evaluations: Sequence[Evaluation], target: Mapping[str, float] | None) -> dict[str, float] | None:
    """The best possible score of each problem that is in all pools, where all share a task that knows it."""
    keys = ("task", "task_settings", "split")
    first = evaluations[0].facts
    if "task" not in first or any(each.facts.get(key) != first[key] for each in evaluations for key in keys):
        return None
    task = task_of(evaluations[0]) if has_own(evaluations[0], "best") else None
    if task is None:
        return None
    shared = set.intersection(*(set(each.pool.problems) for each in evaluations))
    problems = task.problems(first["split"], count=max(each.facts["problems"] for each in evaluations))
    best = {
        problem.id: task.best(problem, weights_for(target, task.names_of(problem)).tolist())
        for problem in problems
        if problem.id in shared
    }
    known = {name: value for name, value in best.items() if value is not None}
    return known if known.keys() == shared else None
