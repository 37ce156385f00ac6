"""Run folders: made once, truncated, locked by one process."""

import json

import pytest

from vpo.training import runs
from vpo.training.config import TrainConfig
from vpo.util.files import append_rows, disk_full, new_folder, write_text

CONFIG = TrainConfig(task="maze")


def test_a_run_is_made_once(tmp_path):
    run = runs.create(tmp_path / "deep" / "run", CONFIG)
    assert run.config() == CONFIG
    assert not run.finished
    assert runs.find(run.folder) == run
    with pytest.raises(ValueError, match=r"run exists: choose another --out, or `vpo train --resume .*run`"):
        runs.create(run.folder, CONFIG)
    assert [path.name for path in run.folder.parent.iterdir()] == ["run"]


def test_what_is_not_a_run_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"is not the folder of a run: it has no config\.toml"):
        runs.find(tmp_path)
    with pytest.raises(ValueError, match=r"no such run: .*nowhere"):
        runs.find(tmp_path / "nowhere")


def checkpoint(run, step, *, complete):
    folder = run.checkpoints / f"checkpoint-{step}"
    folder.mkdir()
    (folder / "model.safetensors").touch()
    if complete:
        run.complete_checkpoint(step, keep=2)


def test_only_complete_checkpoints_count_and_the_newest_stay(tmp_path):
    run = runs.create(tmp_path / "run", CONFIG)
    assert run.latest_checkpoint() is None
    for step in (8, 9, 10):  # by number, not by name
        checkpoint(run, step, complete=True)
    checkpoint(run, 11, complete=False)
    assert run.latest_checkpoint() == (10, run.checkpoints / "checkpoint-10")
    assert sorted(path.name for path in run.checkpoints.iterdir()) == ["checkpoint-10", "checkpoint-11", "checkpoint-9"]
    with pytest.warns(UserWarning, match=r"(metrics|rollouts).jsonl: lines are missing before step 10") as warned:
        run.rewind(10)
    assert len(warned) == 2
    assert sorted(path.name for path in run.checkpoints.iterdir()) == ["checkpoint-10", "checkpoint-9"]


def test_rewinding_truncates_the_logs_and_removes_temporary_files(tmp_path):
    run = runs.create(tmp_path / "run", CONFIG)
    append_rows(run.metrics, [{"step": step, "loss": step / 2, "text": "a\u2028b"} for step in (1, 2, 3)])
    append_rows(run.rollouts, [{"step": 1}, {"step": 3}])
    with open(run.metrics, "a") as file:
        file.write('{"step": 2, "lo')  # a full disk
    (run.folder / ".model.abc").mkdir()
    (run.folder / ".metrics.jsonl.abc").touch()
    with pytest.warns(UserWarning, match="metrics.jsonl:4: the last line is cut off, and is left out"):
        run.rewind(2)
    assert [json.loads(line)["step"] for line in run.metrics.read_text().split("\n") if line] == [1, 2]
    assert sorted(path.name for path in run.folder.iterdir()) == [
        *("checkpoints", "config.toml", "metrics.jsonl", "rollouts.jsonl")
    ]
    assert run.rollouts.read_text() == '{"step": 1}\n'


def test_one_process_locks_a_run(tmp_path):
    run = runs.create(tmp_path / "run", CONFIG)
    with run.lock(), pytest.raises(ValueError, match="another process is training this run"), run.lock():
        pass
    with run.lock():
        pass


def test_notes_add_up(tmp_path):
    run = runs.create(tmp_path / "run", CONFIG)
    run.note({"began": "now"})
    run.note({"ended": "later"})
    assert json.loads((run.folder / "run.json").read_text()) == {"began": "now", "ended": "later"}


def test_a_folder_appears_whole_or_not_at_all(tmp_path):
    def fail():
        with new_folder(tmp_path / "model") as folder:
            write_text(folder / "file", "text")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), RuntimeError("… No space left on device …")])
def test_a_full_disk_is_one_line(tmp_path, error):
    with pytest.raises(ValueError, match="the disk is full: free some space"), disk_full(tmp_path, "free some space"):
        raise error
    with pytest.raises(RuntimeError, match="another"), disk_full(tmp_path, "free some space"):
        raise RuntimeError("another")
