"""Every method side by side: rates chosen on validation problems, then several seeds on unseen test problems.

One folder holds it all, and a call that was interrupted resumes with what is missing:

=============================  =======================================================================================
``plan.toml``                  what is trained and how; another plan needs another folder
``policy/``                    the model that all start from, where it is built or warmed up
``runs/METHOD-RATE-SEED``      a run folder each, with its evaluation on test problems; ``validation/`` is one on
                               validation problems, unless the run held them out of its training problems; further
                               evaluations are in ``evaluations/2`` and so on
``runs/base``, ``base_single`` evaluations of the model that all start from, prompted for sets and for single answers
``results.json``               the rates and why, every seed, and the comparison
``report.html``                the page
=============================  =======================================================================================
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from vpo.core.checks import as_integer
from vpo.evaluation.compare import Comparison, compare, compare_groups
from vpo.evaluation.eval_folder import Evaluation, oracle_of, read_evaluation
from vpo.evaluation.metrics import BEST, Budget
from vpo.models.locate import locate
from vpo.models.memory import free_gpu
from vpo.models.policy import load
from vpo.training.plan import Plan
from vpo.training.plan_jobs import PRELOAD, BaseJob, TrainJob
from vpo.training.runs import STEP, Run
from vpo.util.errors import InputError
from vpo.util.files import locked, write_text
from vpo.util.grouping import group_by
from vpo.util.jobs import JobPool
from vpo.util.records import command_line
from vpo.util.stored import read_log, read_object

CHOSEN_BY = (1, 3, 5, 10, 30)  # a rate is chosen by the mean of best@k over these k
PLAN, RESULTS, POLICY, RUNS = "plan.toml", "results.json", "policy", "runs"
BASES = ("base", "base_single")


def reproduce(plan: Plan, folder: Path, parallel: int) -> tuple[Comparison, list[list[Evaluation]], dict[str, Any]]:
    """Train and evaluate everything that is missing; the comparison, its evaluations by name, and all results.

    Where there are several learning rates, one is chosen for each method with seed 0; reported seeds start at 1. A run
    that fails does not stop the others: the first failure is raised once they are done.
    """
    as_integer(parallel, "jobs", 1)
    if plan.start.model:  # raises before anything is written
        load(locate(plan.start.model, plan.start.task, plan.start.task_settings).path)
    write_plan(plan, folder)
    with locked(folder, "reproducing in this folder"):
        model = starting_model(plan, folder)
        pool = JobPool(parallel, PRELOAD)
        pool.run(validation_jobs(plan, folder, model))
        rates = chosen_rates(plan, folder, model)
        groups = reported_jobs(plan, folder, model, rates)
        pool.run([job for jobs in groups.values() for job in jobs])
        pool.check()
    return compare_runs(plan, groups, rates)


def write_plan(plan: Plan, folder: Path) -> None:
    """Write the plan into the folder; raise where another plan is there."""
    import tomli_w

    path = folder / PLAN
    settings = {"task": plan.start.task, **asdict(plan)}
    text = tomli_w.dumps({name: list(each) if isinstance(each, tuple) else each for name, each in settings.items()})
    if path.is_file() and path.read_bytes() != text.encode():
        raise InputError(f"{folder} holds another plan, or {path} is damaged: choose another folder with --out")
    if not path.is_file() and (folder / RUNS).is_dir():
        raise InputError(f"{path}: the file is missing, and says what the runs of this folder are")
    folder.mkdir(parents=True, exist_ok=True)
    write_text(path, text)


def starting_model(plan: Plan, folder: Path) -> str:
    """The model that all methods start from, made unless it is there."""
    model = plan.start.make(folder / POLICY, plan.answers)
    free_gpu()  # for the runs
    (folder / RUNS).mkdir(exist_ok=True)
    return model


def validation_jobs(plan: Plan, folder: Path, model: str) -> list[TrainJob]:
    """A run for each method and learning rate; none of a method that has one rate."""
    return [
        _job(plan, folder, model, method, rate, 0, "validation")
        for method in plan.methods
        for rate in plan.rates_of(method)
        if len(plan.rates_of(method)) > 1
    ]


def chosen_rates(plan: Plan, folder: Path, model: str) -> dict[str, dict[str, Any]]:
    """For each method the rate with the best mean of best@k on validation problems, and the score of every rate.

    Methods of which a validation run failed are left out.
    """
    tried = group_by(validation_jobs(plan, folder, model), lambda job: job.method)
    chosen: dict[str, dict[str, Any]] = {}
    for method in plan.methods:
        jobs = tried.get(method, [])
        if not jobs:
            chosen[method] = {"rate": plan.rates_of(method)[0], "validation": {}}
        elif all(job.done for job in jobs):
            scores = {job.rate: _validation_score(job) for job in jobs}
            chosen[method] = {"rate": max(scores, key=scores.__getitem__), "validation": scores}
    return chosen


def reported_jobs(
    plan: Plan, folder: Path, model: str, rates: dict[str, dict[str, Any]]
) -> dict[str, list[TrainJob] | list[BaseJob]]:
    """What is measured on test problems, by name: the model that all start from, and every seed of every method."""
    groups: dict[str, list[TrainJob] | list[BaseJob]] = {
        name: [BaseJob(folder / RUNS / name, plan, model, answers)]
        for name, answers in zip(BASES, (plan.answers, 1), strict=True)
    }
    for method, chosen in rates.items():
        seeds = range(1, plan.seeds + 1)
        groups[method] = [_job(plan, folder, model, method, chosen["rate"], seed, "test") for seed in seeds]
    return groups


def compare_runs(
    plan: Plan, groups: dict[str, list[TrainJob] | list[BaseJob]], rates: dict[str, dict[str, Any]]
) -> tuple[Comparison, list[list[Evaluation]], dict[str, Any]]:
    """Compare what the jobs made. The reference comes first: the others are compared with it."""
    preferred = [name for name in (plan.reference, "vpo") if name in groups]
    first = next(iter(preferred), next(name for name in groups if name not in BASES))
    names = [first, *(name for name in groups if name != first)]
    evaluations = [[read_evaluation(folder) for job in groups[name] for folder in job.evaluations] for name in names]
    flat = [each for group in evaluations for each in group]
    target = flat[0].facts["target"]
    oracle = oracle_of(flat, target)
    comparison = compare_groups([[each.pool for each in group] for group in evaluations], target=target, oracle=oracle)
    seeds = {name: [_measures(each, oracle) for each in group] for name, group in zip(names, evaluations, strict=True)}
    results = {"command": command_line(), "plan": asdict(plan), "names": names, "rates": rates, "seeds": seeds}
    return comparison, evaluations, results


def is_reproduction(folder: Path) -> bool:
    """Whether a folder is one of `reproduce`."""
    return (folder / PLAN).is_file()


def reported_runs(folder: Path) -> dict[str, list[Path]]:
    """The runs of each name that a finished reproduction reports, one a seed; and the evaluations of its start."""
    path = folder / RESULTS
    if not path.is_file():
        raise InputError(f"{folder}: this reproduction is not finished: resume it with vpo reproduce")
    results = read_object(path, {"plan": dict, "rates": dict, "names": list[str]})
    try:
        seeds = range(1, results["plan"]["seeds"] + 1)
        rates = {name: float(each["rate"]) for name, each in results["rates"].items()}
    except (TypeError, KeyError, ValueError):
        raise InputError(f"{path}: the file is damaged: it has no seeds or no rates") from None
    return {
        name: [_run_folder(folder, name, rates[name], seed) for seed in seeds]
        if name in rates
        else [folder / RUNS / name]
        for name in results["names"]
    }


def _job(plan: Plan, folder: Path, model: str, method: str, rate: float, seed: int, split: str) -> TrainJob:
    return TrainJob(_run_folder(folder, method, rate, seed), plan, model, method, rate, seed, split)


def _run_folder(folder: Path, method: str, rate: float, seed: int) -> Path:
    return folder / RUNS / f"{method.replace(':', '-').replace('=', '')}-{rate:g}-{seed}"


def _validation_score(job: TrainJob) -> float:
    """The mean of best@k over the k of `CHOSEN_BY` that the pools have."""
    if not job.evaluations:  # training evaluated the model on problems that it held out
        *_, last = read_log(Run(job.folder).evaluations, STEP)
        return float(np.mean([last[f"best@{k}"] for k in CHOSEN_BY if f"best@{k}" in last]))
    evaluation = read_evaluation(job.evaluations[0])
    ks = [k for k in CHOSEN_BY if k <= min(len(each.scores_nD) for each in evaluation.pool.problems.values())]
    comparison = compare([evaluation.pool], target=evaluation.facts["target"], ks=ks)
    best = [row.values[0] for row in comparison.at_every_k(BEST, Budget.ANSWERS)]
    return float(np.mean([value.mean for value in best if value is not None]))


def _measures(evaluation: Evaluation, oracle: dict[str, float] | None) -> list[dict[str, Any]]:
    """Every measure of one seed, without its interval."""
    comparison = compare([evaluation.pool], target=evaluation.facts["target"], oracle=oracle)
    return [{**row.metric.data(), "mean": row.values[0].mean} for row in comparison.rows if row.values[0]]
