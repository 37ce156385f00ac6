"""Training that is stopped, killed and resumed: it ends where it would have ended."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

pytest.importorskip("trl")

from tests.training.trained import ARGUMENTS, SMALL, assert_same, result, stop_after, train_to_the_end
from vpo.cli.main import main
from vpo.training import runs
from vpo.training.runs import Run
from vpo.training.train import _train_locked, prepare, resume, train

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return train_to_the_end(tmp_path_factory.mktemp("finished") / "run")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"method": "gdpo", "trainer": {"num_iterations": 2}},
        {"method": "grpo", "kl": 0.1},
        {"method": "dr_grpo", "lora": 4},
        {"method": "random_weighting", "schedule": "cosine"},
        {"method": "vpo_anchored", "kl": 0.1},
        {"method": "vpo_marginal"},
        {"prefill": True, "lora": 4},
        {"method": "vpo_anchored", "prefill": True, "kl": 0.1},
        {"method": "vpo_marginal", "method_settings": {"answers": 1}},
    ],
)
def test_a_stopped_run_ends_where_it_would_have_ended(changes, finished, tmp_path, monkeypatch):
    config = replace(SMALL, **changes)
    if changes:
        finished = tmp_path / "finished"
        train(config, finished)
    with monkeypatch.context() as patch:
        stop_after(patch, 3)
        trained = train(config, tmp_path / "run")
    updates = 2 if "trainer" in changes else 1
    assert (trained.finished, trained.steps) == (False, 3 + 3 % updates)  # where no rollouts wait
    assert not trained.run.finished
    assert resume(tmp_path / "run").finished
    assert_same(result(tmp_path / "run"), result(finished))


def test_a_kill_in_the_middle_of_a_checkpoint_costs_nothing(finished, tmp_path, monkeypatch):
    """All files of the second checkpoint are there, two of them cut off, and the last one, the mark, is not."""
    inner = Run.complete_checkpoint

    def complete(self, step, keep):
        if step == 4:
            folder = self.checkpoints / "checkpoint-4"
            for name in ("model.safetensors", "optimizer.pt"):
                data = (folder / name).read_bytes()
                (folder / name).write_bytes(data[: len(data) // 2])
            raise SystemExit  # what was not written stays unwritten
        inner(self, step, keep)

    with monkeypatch.context() as patch:
        patch.setattr(Run, "complete_checkpoint", complete)
        with pytest.raises(SystemExit):
            train(SMALL, tmp_path / "run")
    assert Run(tmp_path / "run").latest_checkpoint()[0] == 2
    assert resume(tmp_path / "run").finished
    assert_same(result(tmp_path / "run"), result(finished))


def start(tmp_path, *arguments):
    command = [sys.executable, "-W", "ignore", "-m", "vpo", "train", *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=tmp_path, env=environment, text=True, **pipes)


def wait_for_line(process, log, lines):
    """Wait until a log has some lines."""
    while not (log.is_file() and log.read_text().count("\n") >= lines):
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


def test_kill_9_and_resume(finished, tmp_path):
    process = start(tmp_path, *ARGUMENTS, "--out", "run")
    wait_for_line(process, tmp_path / "run" / "metrics.jsonl", 3)
    process.kill()
    process.communicate()
    run = runs.find(tmp_path / "run")
    assert not run.finished
    assert resume(run.folder).finished
    assert_same(result(run.folder), result(finished))


def test_ctrl_c_saves_a_checkpoint_and_says_how_to_train_locked(tmp_path):
    process = start(tmp_path, *ARGUMENTS, "--save-every", "100", "--steps", "500", "--out", "run")
    wait_for_line(process, tmp_path / "run" / "metrics.jsonl", 1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130
    assert "stopping after this step, with a checkpoint" in err
    run = runs.find(tmp_path / "run")
    step, _ = run.latest_checkpoint()
    assert f"run: stopped after step {step} of 500, with a checkpoint; continue with: vpo train --resume run" in out


def test_a_run_that_never_saved_starts_again(finished, tmp_path):
    run = runs.create(tmp_path / "run", SMALL)
    assert resume(run.folder).finished
    assert_same(result(run.folder), result(finished))


def test_a_finished_run_is_left_alone(finished, capsys):
    before = (finished / "metrics.jsonl").stat().st_mtime_ns
    assert main(["train", "--resume", str(finished)]) == 0
    assert "6 steps done" in capsys.readouterr().out
    assert (finished / "metrics.jsonl").stat().st_mtime_ns == before


def test_a_run_that_another_process_finished_is_left_alone(finished):
    before = (finished / "metrics.jsonl").read_text()
    trained = _train_locked(Run(finished), prepare(SMALL))  # as if the run had been unfinished before the lock
    assert trained.finished
    assert (finished / "metrics.jsonl").read_text() == before


def test_a_resumed_run_keeps_the_note_of_its_beginning(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["vpo", "train", "maze", "--out", "my run"])
    with monkeypatch.context() as patch:
        stop_after(patch, 2)
        train(replace(SMALL, steps=3), tmp_path / "run")
    monkeypatch.setattr(sys, "argv", ["vpo", "train", "--resume", "my run"])
    resume(tmp_path / "run")
    notes = Run(tmp_path / "run").notes()
    assert notes["command"] == "vpo train maze --out 'my run'"
    assert [each["command"] for each in notes["resumed"]] == ["vpo train --resume 'my run'"]
