"""Jobs in processes: what finds no room on a GPU is taken up again, and what fails is named."""

import time
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from vpo.util.errors import InputError
from vpo.util.jobs import finish


@dataclass(frozen=True)
class Job:
    """Waits for others to be there, then does what it is told."""

    folder: Path
    what: str = "work"

    @property
    def done(self) -> bool:
        return (self.folder / "done").exists()

    @property
    def key(self) -> Path:
        return self.folder

    @property
    def length(self) -> float:
        return 1.0 if self.what == "work" else 2.0  # taken first

    def do(self) -> None:
        self.folder.mkdir(exist_ok=True)
        tried = len(list(self.folder.iterdir()))
        (self.folder / str(tried)).touch()
        if self.what == "no room at first" and not tried:
            raise torch.OutOfMemoryError("CUDA out of memory")
        if self.what == "no room":
            raise torch.OutOfMemoryError("CUDA out of memory")
        if self.what == "no room beside others" and not tried:
            while len(list(self.folder.parent.glob("*/0"))) < 2:
                time.sleep(0.01)
            raise RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")
        if self.what == "broken":
            raise ValueError("this is broken")
        while self.what == "work" and not list(self.folder.parent.glob("greedy/0")):
            time.sleep(0.05)
        time.sleep(0.5)  # so that it still runs when the other ends
        (self.folder / "done").touch()


def test_a_job_without_room_is_taken_up_again(tmp_path, capfd):
    jobs = [Job(tmp_path / "greedy", "no room at first"), *(Job(tmp_path / name) for name in "ab")]
    finish(jobs, lambda job: [], 3, 3)
    assert all(job.done for job in jobs)
    assert sorted(path.name for path in (tmp_path / "greedy").iterdir()) == ["0", "1", "done"]
    assert "greedy: no room on the GPU; 2 at once from now on" in capfd.readouterr().err
    assert "CUDA out of memory" in (tmp_path / "greedy.log").read_text()


def test_jobs_that_find_no_room_at_the_same_time_are_each_taken_up_again(tmp_path):
    jobs = [Job(tmp_path / name, "no room beside others") for name in "ab"]
    finish(jobs, lambda job: [], 2, 2)
    assert all(job.done for job in jobs)


def test_a_job_without_room_for_itself_alone_fails(tmp_path):
    jobs = [Job(tmp_path / "greedy", "no room"), Job(tmp_path / "a")]
    with pytest.raises(InputError, match=r"1 of 2 runs failed: .*greedy: torch.OutOfMemoryError: CUDA out of memory"):
        finish(jobs, lambda job: [], 2, 2)
    assert jobs[1].done


def test_a_job_that_fails_is_named_at_once_and_the_others_are_done(tmp_path, capfd):
    (tmp_path / "greedy").mkdir()
    (tmp_path / "greedy" / "0").touch()
    jobs = [Job(tmp_path / "broken", "broken"), Job(tmp_path / "a")]
    with pytest.raises(
        InputError, match=r"1 of 2 runs failed: .*broken: ValueError: this is broken \(see .*broken.log\)"
    ):
        finish(jobs, lambda job: [], 1, 2)
    assert jobs[1].done
    first, second = capfd.readouterr().err.splitlines()
    assert "broken: failed: ValueError: this is broken" in first
    assert second == f"{tmp_path / 'a'}: done"
