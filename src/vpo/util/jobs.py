"""Jobs in processes of their own, several in parallel. All end with the process that started them.

`concurrent.futures` does not fit: its workers outlive a job, so none can be stopped gently, have a log of its own, or
run out of memory without breaking the pool for the others.
"""

import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Protocol

from vpo.util.errors import InputError
from vpo.util.progress import Pace


class Job(Protocol):
    """A piece of work with a result on disk. It must be picklable."""

    @property
    def folder(self) -> Path:
        """Where the result goes. The output of its process goes to a file beside it, FOLDER.log."""

    @property
    def done(self) -> bool:
        """Whether the result is there."""

    @property
    def length(self) -> float:
        """How long it takes, relative to other jobs: the longest are started first."""

    def do(self) -> None:
        """Make the result."""


GPU_FULL = 75  # exit code of a process that ran out of GPU memory
OUT_OF_MEMORY = ("OutOfMemoryError", "CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED")  # as torch says it


def run_jobs(jobs: Sequence[Job], *, parallel: int, preload: Sequence[str] = ()) -> None:
    """Run all jobs that are not done, and raise once all have ended where some failed. See `JobPool`."""
    pool = JobPool(parallel, preload)
    pool.run(jobs)
    pool.check()


@dataclass
class _Running:
    job: Job
    process: BaseProcess
    alone: bool  # whether no other job ran at any time beside it


class JobPool:
    """Runs jobs, each in a process of its own.

    A job that runs out of GPU memory beside others is started again, and fewer run in parallel from then on.

    Attributes:
        parallel: how many jobs run at a time.
        failures: a line for each job that failed: its folder and the reason.
    """

    def __init__(self, parallel: int, preload: Sequence[str] = ()) -> None:
        """Set the number of jobs at a time, and the modules to import once for all processes."""
        self.parallel = parallel
        self.failures: list[str] = []
        self._count = 0
        self._context = _process_context(preload)
        self._waiting: list[Job] = []
        self._running: dict[Any, _Running] = {}  # by the sentinel of the process
        self._bar: Any = None
        self._ended_jobs, self._pace = 0, Pace()

    def run(self, jobs: Sequence[Job]) -> None:
        """Run the jobs that are not done. One that fails is reported, and the others go on."""
        from tqdm import tqdm

        self._count += len(jobs)
        self._waiting = sorted((job for job in jobs if not job.done), key=lambda job: job.length, reverse=True)
        done = len(jobs) - len(self._waiting)
        self._ended_jobs, self._pace = done, Pace(done)
        with tqdm(total=len(jobs), initial=done, desc="runs", disable=None) as self._bar:
            if self._bar.disable and self._waiting:
                self._report(f"{done} of {len(jobs)} runs done; {self.parallel} at a time, each with a log beside it")
            try:
                while self._waiting or self._running:
                    self._start_waiting()
                    for sentinel in connection.wait(list(self._running)):
                        self._ended(self._running.pop(sentinel))
            except BaseException:
                self._stop()
                raise

    def check(self) -> None:
        """Raise where jobs failed, with the first reason."""
        if self.failures:
            raise InputError(f"{len(self.failures)} of {self._count} runs failed: {self.failures[0]}")

    def _start_waiting(self) -> None:
        while self._waiting and len(self._running) < self.parallel:
            job = self._waiting.pop(0)
            process = self._context.Process(target=_run_process, args=(job,))
            process.start()
            self._running[process.sentinel] = _Running(job, process, alone=True)
            if len(self._running) > 1:
                for running in self._running.values():
                    running.alone = False

    def _ended(self, ended: _Running) -> None:
        job = ended.job
        ended.process.join()
        if ended.process.exitcode == GPU_FULL and not ended.alone:
            self.parallel = max(1, len(self._running))
            self._waiting.insert(0, job)
            self._report(f"vpo: {job.folder}: the GPU is full; {self.parallel} in parallel from now on")
            return
        self._bar.update()
        self._ended_jobs += 1
        if not job.done:
            reason = _failure(job, killed=(ended.process.exitcode or 0) < 0)
            self.failures.append(f"{job.folder}: {reason}")
            self._report(f"vpo: {job.folder}: failed: {reason}")
        elif self._bar.disable:  # no terminal, so no progress bar
            total = int(self._bar.total)
            left = self._pace.left(self._ended_jobs, total)
            self._report(f"{job.folder}: done, {self._ended_jobs} of {total} runs{left}")

    def _report(self, line: str) -> None:
        self._bar.write(line, sys.stderr)
        sys.stderr.flush()

    def _stop(self) -> None:
        """End all jobs: training stops at SIGTERM with a checkpoint."""
        for running in self._running.values():
            running.process.terminate()
        for running in self._running.values():
            running.process.join()


def _process_context(preload: Sequence[str]) -> Any:
    """Processes are forked from a server that has imported the modules, where the system has such servers."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    # Imports look for a GPU, and CUDA must not be initialised in a process that is forked.
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    # Key-value caches grow token by token and leave fragments of every size, which fill a shared GPU.
    os.environ.setdefault("PYTORCH_ALLOC_CONF", "expandable_segments:True")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(preload))
    return context


def _failure(job: Job, *, killed: bool) -> str:
    """The reason of a failure: the last line of the log, usually an exception."""
    log = _log(job)
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() if log.is_file() else []
    return f"{'killed' if killed or not lines else lines[-1]} (see {log})"


def _log(job: Job) -> Path:
    return job.folder.with_name(f"{job.folder.name}.log")


def _run_process(job: Job) -> None:
    """Do one job, in its own process."""
    os.setsid()  # a Ctrl-C in the terminal goes to the parent alone, which sends SIGTERM
    watch_parent(lambda: os.kill(os.getpid(), signal.SIGTERM))
    with open(_log(job), "a") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    try:
        job.do()
    except RuntimeError as error:
        if not any(text in f"{type(error).__name__}: {error}" for text in OUT_OF_MEMORY):
            raise
        traceback.print_exc()
        sys.exit(GPU_FULL)


def watch_parent(then: Callable[[], None]) -> None:
    """Call a function, in a thread, once the process that started this one has ended, even if it was killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        connection.wait([parent.sentinel])
        then()

    threading.Thread(target=wait, daemon=True).start()
