"""Every method side by side: rates chosen on validation problems, then several seeds on test problems that nobody saw.

A folder holds it all, and a call that was interrupted goes on with what is missing:

=============================  =======================================================================================
``plan.toml``                  what is trained and how; another plan needs another folder
``policy/``                    what all start from, built or warmed up, unless another is given
``runs/METHOD-RATE-SEED``      a run folder each; its ``validation/`` is an evaluation, so is the run itself, on test;
                               further pools of a run are in ``evaluations/2`` and so on
``runs/base``, ``base_single`` evaluations of what all start from, asked for sets and for single answers
``results.json``               the rates and why, every seed, and the comparison
``report.html``                the page
=============================  =======================================================================================
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vpo.core.checks import as_integer
from vpo.evaluation.eval_folder import FACTS, Evaluation, oracle_of, read_evaluation
from vpo.evaluation.evaluate import EvalConfig, evaluate_into
from vpo.evaluation.measure import Comparison, compare, compare_groups
from vpo.methods import get as get_method
from vpo.models.locate import locate
from vpo.models.memory import free_gpu
from vpo.models.policy import load
from vpo.training import runs
from vpo.training.plan import Plan, split_method
from vpo.util.errors import InputError
from vpo.util.files import command_line, locked, write_text
from vpo.util.jobs import finish

CHOSEN_BY = (1, 3, 5, 10, 30)  # a rate is chosen by the mean of best@k over these
PLAN, RESULTS = "plan.toml", "results.json"
BASES = {"base": None, "base_single": 1}  # and how many answers they are asked for; None is what sets have


@dataclass(frozen=True)
class Job:
    """One run: trained, then evaluated on some problems. No method is the untrained policy."""

    folder: Path
    plan: Plan
    model: str
    method: str | None
    rate: float
    seed: int
    split: str
    answers: int | None = None

    @property
    def evaluations(self) -> list[Path]:
        """Where the evaluations go; the place of each is the seed of its pool."""
        if self.split == "validation":
            return [self.folder / "validation"]
        further = range(2, self.plan.evaluations + 1)
        return [self.folder, *(self.folder / "evaluations" / str(number) for number in further)]

    @property
    def length(self) -> int:
        """How long it takes, next to others: by the answers that it trains on."""
        if self.method is None:
            return 0
        name, settings = split_method(self.method)
        return get_method(name, **settings).answers

    @property
    def key(self) -> object:
        """What tells it from others: a run may be done on validation and on test problems."""
        return self.evaluations[0]

    @property
    def done(self) -> bool:
        """Whether there is nothing left to do."""
        return all((folder / FACTS).is_file() for folder in self.evaluations)

    def do(self) -> None:
        """Train and evaluate it."""
        from vpo.training.train import resume, train

        if self.method is not None and not runs.Run(self.folder).finished:
            config = self.plan.config(self.model, self.method, self.rate, self.seed)
            outcome = resume(self.folder) if self.folder.exists() else train(config, self.folder)
            if not outcome.finished:
                print("it was interrupted", flush=True)
                sys.exit(1)
        count = self.plan.validation_problems if self.split == "validation" else self.plan.test_problems
        for seed, folder in enumerate(self.evaluations):
            if (folder / FACTS).is_file():
                continue
            evaluation = EvalConfig(
                model=self.model if self.method is None else str(self.folder),
                task=self.plan.task,
                task_settings=self.plan.settings,
                split=self.split,
                problems=count or None,
                answers=self.answers,
                pool=self.plan.pool,
                sampling={"seed": seed},
            )
            evaluate_into(folder, evaluation, overwrite=True)  # what is there is half an evaluation


def reproduce(plan: Plan, folder: Path, jobs: int) -> tuple[Comparison, list[list[Evaluation]], dict[str, Any]]:
    """Train and evaluate everything that is missing, and return the comparison, its evaluations and all results.

    Rates are chosen with seed 0, where there are several; the seeds that are reported are others, from 1 on.
    """
    as_integer(jobs, "jobs", 1)
    if plan.model:  # what is not a model is refused before anything is made
        load(locate(plan.model, plan.task, plan.settings).path)
    _same_plan(plan, folder)
    with locked(folder, "reproducing in this folder"):
        groups, chosen = _everything(plan, folder, jobs)
    first = "vpo" if "vpo" in groups else next(name for name in groups if name not in BASES)
    names = [first, *(name for name in groups if name != first)]
    evaluations = [[read_evaluation(folder) for job in groups[name] for folder in job.evaluations] for name in names]
    flat = [each for group in evaluations for each in group]
    target = flat[0].facts["target"]
    oracle = oracle_of(flat, target)
    comparison = compare_groups([[each.pool for each in group] for group in evaluations], target=target, oracle=oracle)
    seeds = {name: [_measures(each, oracle) for each in group] for name, group in zip(names, evaluations, strict=True)}
    results = {"command": command_line(), "plan": asdict(plan), "names": names, "rates": chosen, "seeds": seeds}
    return comparison, evaluations, results


def is_reproduction(folder: Path) -> bool:
    """Return whether a folder is one of `reproduce`."""
    return (folder / PLAN).is_file()


def reported_runs(folder: Path) -> dict[str, list[Path]]:
    """Return the runs that a finished reproduction reports, by name, those of each seed; the untrained policy too."""
    path = folder / RESULTS
    if not path.is_file():
        raise InputError(f"{folder}: this reproduction is not finished; go on with it by vpo reproduce")
    results = json.loads(path.read_text(encoding="utf-8"))
    seeds = range(1, results["plan"]["seeds"] + 1)
    place = folder / "runs"
    found: dict[str, list[Path]] = {}
    for name in results["names"]:
        rates = results["rates"].get(name)
        found[name] = [_folder(place, name, rates["rate"], seed) for seed in seeds] if rates else [place / name]
    return found


def _everything(plan: Plan, folder: Path, jobs: int) -> tuple[dict[str, list[Job]], dict[str, dict[str, Any]]]:
    """Do all jobs that are not done, and return those to report, by name, and the rates that were chosen."""
    model = plan.start(folder / "policy")
    free_gpu()  # the runs need the room
    place = folder / "runs"
    place.mkdir(exist_ok=True)
    tried = {
        method: [_job(place, plan, model, method, rate, 0, "validation") for rate in plan.rates]
        for method in plan.methods
        if len(plan.rates) > 1
    }
    answers = max(get_method(name, **settings).answers for name, settings in map(split_method, plan.methods))
    bases = {
        name: [Job(place / name, plan, model, None, 0.0, 0, "test", single or answers)]
        for name, single in BASES.items()
    }

    def chosen(method: str) -> dict[str, Any]:
        return _choose(tried[method]) if method in tried else {"rate": plan.rates[0], "validation": {}}

    def reported(method: str) -> list[Job]:
        rate = chosen(method)["rate"]
        return [_job(place, plan, model, method, rate, seed, "test") for seed in plan.reported]

    def following(job: Job) -> list[Job]:
        """Return the seeds of a method whose last rate this was."""
        if job.split == "test" or not all(each.done for each in tried[str(job.method)]):
            return []
        return reported(str(job.method))

    begin = [job for group in (*bases.values(), *tried.values()) for job in group]
    total = len(begin) + len(plan.methods) * plan.seeds
    begin += [job for method in plan.methods if method not in tried for job in reported(method)]
    finish(begin, following, jobs, total)
    rates = {method: chosen(method) for method in plan.methods}
    return {**bases, **{method: reported(method) for method in plan.methods}}, rates


def _same_plan(plan: Plan, folder: Path) -> None:
    """Write the plan into a new folder, and refuse to go on with another one."""
    import tomli_w

    path = folder / PLAN
    settings = asdict(plan)
    text = tomli_w.dumps({name: list(each) if isinstance(each, tuple) else each for name, each in settings.items()})
    if path.is_file() and path.read_text(encoding="utf-8") != text:
        raise InputError(f"{folder}: there is another plan in it already: choose another folder with --out")
    folder.mkdir(parents=True, exist_ok=True)
    write_text(path, text)


def _job(place: Path, plan: Plan, model: str, method: str, rate: float, seed: int, split: str) -> Job:
    return Job(_folder(place, method, rate, seed), plan, model, method, rate, seed, split)


def _folder(place: Path, method: str, rate: float, seed: int) -> Path:
    return place / f"{method.replace(':', '-').replace('=', '')}-{rate:g}-{seed}"


def _choose(jobs: Sequence[Job]) -> dict[str, Any]:
    """Return the rate whose best@k, averaged over some k, is best on the validation problems, and what each got."""
    scores = {job.rate: _validation_score(read_evaluation(job.evaluations[0])) for job in jobs}
    return {"rate": max(scores, key=scores.__getitem__), "validation": scores}


def _validation_score(evaluation: Evaluation) -> float:
    ks = [k for k in CHOSEN_BY if k <= min(len(each.scores_nD) for each in evaluation.pool.problems.values())]
    found = compare([evaluation.pool], target=evaluation.facts["target"], ks=ks)
    best = [each.values[0] for each in found.measures if (each.section, each.by) == ("best@k", "answers")]
    return float(np.mean([value.mean for value in best if value is not None]))


def _measures(evaluation: Evaluation, oracle: dict[str, float] | None) -> list[dict[str, Any]]:
    """Return every measure of one seed, without its interval."""
    found = compare([evaluation.pool], target=evaluation.facts["target"], oracle=oracle)
    return [
        {"section": each.section, "by": each.by, "at": each.at, "mean": each.values[0].mean}
        for each in found.measures
        if each.values[0]
    ]
