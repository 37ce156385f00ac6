"""Jobs in processes: one that runs out of GPU memory is started again, and one that fails is named."""

import time
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from vpo.util.errors import InputError
from vpo.util.jobs import run_jobs


@dataclass(frozen=True)
class Job:
    """Does what `what` says; "work" waits until the greedy job has started."""

    folder: Path
    what: str = "work"

    @property
    def done(self) -> bool:
        return (self.folder / "done").exists()

    @property
    def length(self) -> float:
        return 1.0 if self.what == "work" else 2.0  # taken first

    def do(self) -> None:
        self.folder.mkdir(exist_ok=True)
        tried = len(list(self.folder.iterdir()))
        (self.folder / str(tried)).touch()
        if self.what == "memory error at first" and not tried:
            raise torch.OutOfMemoryError("CUDA out of memory")
        if self.what == "memory error":
            raise torch.OutOfMemoryError("CUDA out of memory")
        if self.what == "memory error beside others" and not tried:
            while len(list(self.folder.parent.glob("*/0"))) < 2:
                time.sleep(0.01)
            raise RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")
        if self.what == "broken":
            raise ValueError("this is broken")
        while self.what == "work" and not list(self.folder.parent.glob("greedy/0")):
            time.sleep(0.05)
        time.sleep(0.5)  # so that it still runs when the other ends
        (self.folder / "done").touch()


def test_a_job_that_runs_out_of_memory_is_started_again(tmp_path, capfd):
    jobs = [Job(tmp_path / "greedy", "memory error at first"), *(Job(tmp_path / name) for name in "ab")]
    run_jobs(jobs, parallel=3)
    assert all(job.done for job in jobs)
    assert sorted(path.name for path in (tmp_path / "greedy").iterdir()) == ["0", "1", "done"]
    assert "greedy: the GPU is full; 2 in parallel from now on" in capfd.readouterr().err
    assert "CUDA out of memory" in (tmp_path / "greedy.log").read_text()


def test_jobs_that_run_out_of_memory_at_the_same_time_are_each_started_again(tmp_path):
    jobs = [Job(tmp_path / name, "memory error beside others") for name in "ab"]
    run_jobs(jobs, parallel=2)
    assert all(job.done for job in jobs)


def test_a_job_that_runs_out_of_memory_alone_fails(tmp_path):
    jobs = [Job(tmp_path / "greedy", "memory error"), Job(tmp_path / "a")]
    with pytest.raises(InputError, match=r"1 of 2 runs failed: .*greedy: torch.OutOfMemoryError: CUDA out of memory"):
        run_jobs(jobs, parallel=2)
    assert jobs[1].done


def test_a_job_that_fails_is_named_immediately_and_the_others_are_done(tmp_path, capfd):
    (tmp_path / "greedy").mkdir()
    (tmp_path / "greedy" / "0").touch()
    jobs = [Job(tmp_path / "broken", "broken"), Job(tmp_path / "a")]
    with pytest.raises(
        InputError, match=r"1 of 2 runs failed: .*broken: ValueError: this is broken \(see .*broken.log\)"
    ):
        run_jobs(jobs, parallel=1)
    assert jobs[1].done
    begin, first, second = capfd.readouterr().err.splitlines()
    assert begin == "0 of 2 runs done; 1 at a time, each with a log beside it"
    assert "broken: failed: ValueError: this is broken" in first
    assert second == f"{tmp_path / 'a'}: done, 2 of 2 runs"
