"""Jobs in processes of their own, several at once: what is done is not done again, and all end with their parent."""

import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Protocol, TypeVar

from vpo.util.errors import InputError


class Job(Protocol):
    """Something to do once. It must be picklable."""

    @property
    def folder(self) -> Path:
        """Where it is done, one for each job; what its process says goes into a file of that name and .log."""

    @property
    def done(self) -> bool:
        """Whether there is nothing left to do."""

    @property
    def key(self) -> object:
        """What tells it from others."""

    @property
    def length(self) -> float:
        """How long it takes, next to others."""

    def do(self) -> None:
        """Do it."""


J = TypeVar("J", bound=Job)

NO_ROOM = 75  # what a process ends with that found no memory on the GPU
OUT_OF_MEMORY = ("OutOfMemoryError", "CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED")  # as torch says it


def finish(begin: Sequence[J], following: Callable[[J], list[J]], at_once: int, total: int) -> None:
    """Do what is missing, each job in a process of its own; where some fail, the others are done first.

    A job that finds no memory on a GPU beside others is taken up again, with fewer at once from then on.

    Args:
        begin: the jobs to begin with.
        following: the jobs that can be done once this one and others like it are; the last of them gives them.
        at_once: how many run at a time.
        total: how many there will be.
    """
    from tqdm import tqdm

    context = _processes()
    waiting: list[J] = []
    running: dict[Any, tuple[J, BaseProcess]] = {}
    failed, known = [], set()
    beside: set[object] = set()  # keys of those that were not alone all the time
    with tqdm(total=total, desc="runs", disable=None) as bar:

        def add(jobs: Sequence[J]) -> None:
            for job in jobs:
                if job.key in known:
                    continue
                known.add(job.key)
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
                    job = waiting.pop()
                    process = context.Process(target=_live, args=(job,))
                    process.start()
                    running[process.sentinel] = (job, process)
                    beside.discard(job.key)
                    if len(running) > 1:
                        beside.update(each.key for each, _ in running.values())
                for sentinel in connection.wait(list(running)):
                    job, ended = running.pop(sentinel)
                    ended.join()
                    if ended.exitcode == NO_ROOM and job.key in beside:
                        at_once = max(1, len(running))
                        waiting.append(job)
                        tqdm.write(f"vpo: {job.folder}: no room on the GPU; {at_once} at once from now on", sys.stderr)
                        continue
                    bar.update()
                    if job.done:
                        if bar.disable:  # where there is no terminal for it
                            print(f"{job.folder}: done", file=sys.stderr, flush=True)
                        add(following(job))
                    else:
                        words = _last_words(job, killed=(ended.exitcode or 0) < 0)
                        failed.append(f"{job.folder}: {words}")
                        tqdm.write(f"vpo: {job.folder}: failed: {words}", sys.stderr)
        except BaseException:
            for _, other in running.values():
                other.terminate()  # it stops with a checkpoint
            for _, other in running.values():
                other.join()
            raise
    if failed:
        raise InputError(f"{len(failed)} of {len(known)} runs failed: {failed[0]}")


def _processes() -> Any:
    """Return how processes are made: out of one that has imported everything, where the system can do that."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    # What is imported looks for a GPU, which must not be taken hold of in a process that others come out of.
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    # Caches that grow token by token leave pieces of every size, which would fill a GPU that many share.
    os.environ.setdefault("PYTORCH_ALLOC_CONF", "expandable_segments:True")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["vpo.training.train", "vpo.evaluation.evaluate", "vpo.engines.answer_trainer"])
    return context


def _last_words(job: Job, *, killed: bool) -> str:
    log = _log(job)
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() if log.is_file() else []
    return f"{'it was killed' if killed or not lines else lines[-1]} (see {log})"


def _log(job: Job) -> Path:
    return job.folder.with_name(f"{job.folder.name}.log")


def _live(job: Job) -> None:
    """Do a job: the life of a process."""
    os.setsid()  # a Ctrl-C in the terminal would be a second asking to stop
    watch_parent(lambda: os.kill(os.getpid(), signal.SIGTERM))
    with open(_log(job), "a") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    try:
        job.do()
    except RuntimeError as error:
        if not any(sign in f"{type(error).__name__}: {error}" for sign in OUT_OF_MEMORY):
            raise
        traceback.print_exc()
        sys.exit(NO_ROOM)


def watch_parent(then: Callable[[], None]) -> None:
    """Do something once the process that started this one is gone, even if it was killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        connection.wait([parent.sentinel])
        then()

    threading.Thread(target=wait, daemon=True).start()
