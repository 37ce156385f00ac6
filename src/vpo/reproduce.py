"""Every method side by side: rates chosen on validation problems, then several seeds on test problems that nobody saw.

A folder holds it all, and a call that was interrupted goes on with what is missing:

=============================  =======================================================================================
``plan.toml``                  what is trained and how; another plan needs another folder
``policy/``                    the policy that all start from, built from nothing unless another is given
``runs/METHOD-RATE-SEED``      a run folder each; its ``validation/`` is an evaluation, so is the run itself, on test
``runs/base``, ``base_single`` evaluations of the untrained policy, asked for sets and for single answers
``results.json``               the rates and why, every seed, and the comparison
``report.html``                the page
=============================  =======================================================================================
"""

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np

from vpo import runs
from vpo.core.arrays import whole_number
from vpo.errors import InputError
from vpo.evaluate import Request, evaluate_into
from vpo.evaluations import FACTS, Evaluation, oracle_of, read_evaluation
from vpo.files import command_line, locked, write_text
from vpo.measure import Comparison, compare, compare_groups
from vpo.methods import get as get_method
from vpo.plan import Plan, split_method
from vpo.policies import load, locate
from vpo.policies.build import build_maze

CHOSEN_BY = (1, 3, 5, 10, 30)  # a rate is chosen by the mean of best@k over these
PR_SET_PDEATHSIG = 1  # of prctl
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
    def evaluation(self) -> Path:
        """Where the evaluation goes."""
        return self.folder / "validation" if self.split == "validation" else self.folder

    @property
    def length(self) -> int:
        """How long it takes, next to others: by the answers that it trains on."""
        if self.method is None:
            return 0
        name, settings = split_method(self.method)
        return get_method(name, **settings).answers

    @property
    def log(self) -> Path:
        """What its process says."""
        return self.folder.with_name(f"{self.folder.name}.log")

    @property
    def done(self) -> bool:
        """Whether there is nothing left to do."""
        return (self.evaluation / FACTS).is_file()


def reproduce(plan: Plan, folder: Path, jobs: int) -> tuple[Comparison, list[list[Evaluation]], dict[str, Any]]:
    """Train and evaluate everything that is missing, and return the comparison, its evaluations and all results.

    Rates are chosen with seed 0; the seeds that are reported are others, from 1 on.
    """
    whole_number(jobs, "jobs", 1)
    if plan.model:  # what is not a model is refused before anything is made
        load(locate(plan.model, "maze", {"size": plan.size}).path)
    _same_plan(plan, folder)
    with locked(folder, "reproducing in this folder"):
        groups, chosen = _everything(plan, folder, jobs)
    first = "vpo" if "vpo" in groups else next(name for name in groups if name not in BASES)
    names = [first, *(name for name in groups if name != first)]
    evaluations = [[read_evaluation(job.folder) for job in groups[name]] for name in names]
    flat = [each for group in evaluations for each in group]
    target = flat[0].facts["target"]
    oracle = oracle_of(flat, target)
    comparison = compare_groups([[each.pool for each in group] for group in evaluations], target=target, oracle=oracle)
    seeds = {name: [_measures(each, oracle) for each in group] for name, group in zip(names, evaluations, strict=True)}
    results = {"command": command_line(), "plan": asdict(plan), "names": names, "rates": chosen, "seeds": seeds}
    return comparison, evaluations, results


def _everything(plan: Plan, folder: Path, jobs: int) -> tuple[dict[str, list[Job]], dict[str, dict[str, Any]]]:
    """Do all jobs that are not done, and return those to report, by name, and the rates that were chosen."""
    model = plan.model or _built(plan, folder / "policy")
    place = folder / "runs"
    place.mkdir(exist_ok=True)
    tried = {
        method: [_job(place, plan, model, method, rate, 0, "validation") for rate in plan.rates]
        for method in plan.methods
    }
    answers = max(get_method(name, **settings).answers for name, settings in map(split_method, plan.methods))
    bases = {
        name: [Job(place / name, plan, model, None, 0.0, 0, "test", single or answers)]
        for name, single in BASES.items()
    }

    def reported(method: str) -> list[Job]:
        rate = _choose(tried[method])["rate"]
        return [_job(place, plan, model, method, rate, seed, "test") for seed in plan.reported]

    def following(job: Job) -> list[Job]:
        """Return the seeds of a method whose last rate this was."""
        if job.split == "test" or not all(each.done for each in tried[str(job.method)]):
            return []
        return reported(str(job.method))

    begin = [job for group in (*bases.values(), *tried.values()) for job in group]
    _finish(begin, following, jobs, len(begin) + len(plan.methods) * plan.seeds)
    chosen = {method: _choose(each) for method, each in tried.items()}
    return {**bases, **{method: reported(method) for method in plan.methods}}, chosen


def _same_plan(plan: Plan, folder: Path) -> None:
    """Write the plan into a new folder, and refuse to go on with another one."""
    import tomli_w

    path = folder / "plan.toml"
    settings = asdict(plan)
    text = tomli_w.dumps({name: list(each) if isinstance(each, tuple) else each for name, each in settings.items()})
    if path.is_file() and path.read_text(encoding="utf-8") != text:
        raise InputError(f"{folder}: there is another plan in it already: choose another folder with --out")
    folder.mkdir(parents=True, exist_ok=True)
    write_text(path, text)


def _built(plan: Plan, folder: Path) -> str:
    """Return the policy that all start from, built if it is not there."""
    if not folder.is_dir():
        build_maze(
            folder,
            size=plan.size,
            mazes=plan.policy_mazes,
            steps=plan.policy_steps,
            batch=plan.policy_batch,
            goals=True,
            width=plan.policy_width,
        )
    return str(folder)


def _job(place: Path, plan: Plan, model: str, method: str, rate: float, seed: int, split: str) -> Job:
    name = method.replace(":", "-").replace("=", "")
    return Job(place / f"{name}-{rate:g}-{seed}", plan, model, method, rate, seed, split)


def _finish(begin: Sequence[Job], following: Callable[[Job], list[Job]], at_once: int, total: int) -> None:
    """Do what is missing, each job in a process of its own; those that fail are named once the others are done.

    Args:
        begin: the jobs to begin with.
        following: the jobs that can be done once this one and others like it are; the last of them gives them.
        at_once: how many run at a time.
        total: how many there will be.
    """
    from tqdm import tqdm

    context = _processes()
    waiting: list[Job] = []
    running: dict[Any, tuple[Job, BaseProcess]] = {}
    failed, known = [], set()
    with tqdm(total=total, desc="runs", disable=None) as bar:

        def add(jobs: Sequence[Job]) -> None:
            for job in jobs:
                if job.evaluation in known:
                    continue
                known.add(job.evaluation)
                if job.done:
                    bar.update()
                    add(following(job))
                else:
                    waiting.append(job)
            waiting.sort(key=lambda job: job.length)  # the longest is taken first

        try:
            add(begin)
            while waiting or running:
                while waiting and len(running) < at_once:
                    process = context.Process(target=do, args=(waiting[-1],))
                    process.start()
                    running[process.sentinel] = (waiting.pop(), process)
                for sentinel in connection.wait(list(running)):
                    job, ended = running.pop(sentinel)
                    ended.join()
                    bar.update()
                    if job.done:
                        add(following(job))
                    else:
                        failed.append(job)
        except BaseException:
            for _, other in running.values():
                other.terminate()  # it stops with a checkpoint
            for _, other in running.values():
                other.join()
            raise
    if failed:
        raise InputError(f"{len(failed)} of {len(known)} runs failed: {failed[0].folder}: {_last_words(failed[0])}")


def _processes() -> Any:
    """Return how processes are made: out of one that has imported everything, where the system can do that."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    # What is imported looks for a GPU, which must not be taken hold of in a process that others come out of.
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["vpo.train", "vpo.evaluate", "vpo.engines.answer_trainer"])
    return context


def _last_words(job: Job) -> str:
    lines = job.log.read_text(encoding="utf-8", errors="replace").strip().splitlines() if job.log.is_file() else []
    return f"{lines[-1] if lines else 'it was killed'} (see {job.log})"


def do(job: Job) -> None:
    """Train and evaluate one run, in a process of its own that ends with its parent."""
    from vpo.train import resume, train

    _end_with_parent()
    with open(job.log, "a") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    if job.method is not None and not runs.Run(job.folder).finished:
        config = job.plan.config(job.model, job.method, job.rate, job.seed)
        outcome = resume(job.folder) if job.folder.exists() else train(config, job.folder)
        if not outcome.finished:
            print("it was interrupted", flush=True)
            sys.exit(1)
    request = Request(
        model=job.model if job.method is None else str(job.folder),
        task="maze",
        settings={"size": job.plan.size},
        split=job.split,
        count=job.plan.validation if job.split == "validation" else job.plan.test,
        answers=job.answers,
        pool=job.plan.pool,
    )
    evaluate_into(job.evaluation, request, overwrite=True)  # what is there is half an evaluation


def _end_with_parent() -> None:
    """Leave it to the parent to ask this process to stop; on Linux the system does if the parent was killed."""
    os.setsid()  # a Ctrl-C in the terminal would be a second asking
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        parent = multiprocessing.parent_process()
        if parent is None or not parent.is_alive():  # gone already
            sys.exit(1)


def _choose(jobs: Sequence[Job]) -> dict[str, Any]:
    """Return the rate whose best@k, averaged over some k, is best on the validation problems, and what each got."""
    scores = {job.rate: _validation_score(read_evaluation(job.evaluation)) for job in jobs}
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
