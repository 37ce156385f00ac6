"""Checkpoints that are damaged: a resumed run ends where it would have ended, or says why it cannot continue."""

import os
import shutil

import pytest

pytest.importorskip("trl")

from tests.training.trained import SMALL, assert_same, result, stop_after, train_to_the_end
from vpo.cli.main import main
from vpo.training.runs import COMPLETE, Run
from vpo.training.train import train

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages

FILES = [
    *("chat_template.jinja", "complete", "config.json", "generation_config.json", "model.safetensors", "optimizer.pt"),
    *("rng_state.pth", "scheduler.pt", "tokenizer.json", "tokenizer_config.json", "trainer_state.json"),
    *("training_args.bin", "vpo.json", "vpo_state.json"),
]


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


DAMAGES = {"delete": os.remove, "cut": cut, "empty": lambda path: path.write_bytes(b""), "flip": flip}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return result(train_to_the_end(tmp_path_factory.mktemp("finished") / "run"))


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """A run with checkpoints after steps 4 and 5 of 6."""
    folder = tmp_path_factory.mktemp("stopped") / "run"
    with pytest.MonkeyPatch.context() as patch:
        stop_after(patch, 5)
        train(SMALL, folder)
    return folder


@pytest.fixture
def run(stopped, tmp_path):
    return Run(shutil.copytree(stopped, tmp_path / "run"))


def test_the_files_of_a_checkpoint_are_known(run):
    for step in (4, 5):
        assert sorted(path.name for path in run.checkpoint(step).iterdir()) == FILES
    assert run.resume_point().step == 5


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_named_and_the_checkpoint_before_it_is_used(name, damage, run):
    DAMAGES[damage](run.checkpoint(5) / name)
    point = run.resume_point()
    assert (point.step, point.checkpoint) == (4, run.checkpoint(4))
    assert point.damaged.keys() == {"checkpoint-5"}
    assert name in point.damaged["checkpoint-5"]
    run.rewind(4)
    assert list(run.checkpoints.glob("checkpoint-*")) == [run.checkpoint(4)]


def assert_resumes(run, name, damage, finished, capsys):
    DAMAGES[damage](run.checkpoint(5) / name)
    assert main(["train", "--resume", str(run.folder)]) == 0
    errors = capsys.readouterr().err
    assert f"{run.folder}: checkpoint-5 is not used (" in errors
    assert "continuing from checkpoint-4" in errors
    assert "Traceback" not in errors
    assert_same(result(run.folder), finished)
    (resumed,) = run.notes()["resumed"]
    assert name in resumed["damaged"]["checkpoint-5"]


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("rng_state.pth", "delete"),
        ("model.safetensors", "flip"),
        ("optimizer.pt", "cut"),
        ("trainer_state.json", "empty"),
    ],
)
def test_a_run_with_a_damaged_checkpoint_ends_where_it_would_have_ended(name, damage, run, finished, capsys):
    assert_resumes(run, name, damage, finished, capsys)


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", FILES)
def test_whatever_is_damaged_a_run_ends_where_it_would_have_ended(name, damage, run, finished, capsys):
    assert_resumes(run, name, damage, finished, capsys)


def test_a_run_without_a_whole_checkpoint_is_refused_and_left_as_it_is(run, capsys):
    (run.checkpoint(4) / "optimizer.pt").unlink()
    flip(run.checkpoint(5) / "model.safetensors")
    before = {*run.folder.rglob("*"), run.folder / ".lock"}
    assert main(["train", "--resume", str(run.folder)]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == (
        f"vpo: error: {run.folder}: no whole checkpoint is left (checkpoint-4: optimizer.pt is missing; checkpoint-5: "
        "model.safetensors has other contents): restore the files, or start again from step 0 by removing "
        f"{run.checkpoints}"
    )
    assert set(run.folder.rglob("*")) == before


def test_removed_checkpoints_start_a_run_again(run, finished):
    shutil.rmtree(run.checkpoints)
    assert main(["train", "--resume", str(run.folder)]) == 0
    assert_same(result(run.folder), finished)


def test_a_checkpoint_without_hashes_is_not_used(run):
    """As older versions wrote them: an empty mark."""
    for step in (4, 5):
        (run.checkpoint(step) / COMPLETE).write_bytes(b"")
    with pytest.raises(ValueError, match=r"checkpoint-4: complete is empty, and holds no hashes; checkpoint-5: "):
        run.resume_point()


def test_a_checkpoint_under_another_name_is_not_used(run):
    shutil.copytree(run.checkpoint(4), run.checkpoint(6))
    point = run.resume_point()
    assert (point.step, point.damaged) == (5, {"checkpoint-6": "complete is that of step 4"})


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["config.toml", "metrics.jsonl", "rollouts.jsonl"])
def test_files_beside_the_checkpoints_that_were_changed_are_named(name, damage, run):
    with open(run.metrics, "a") as file:
        file.write('{"step": 6}\n')  # logs grow after a checkpoint
    assert run.resume_point().changed == ()
    DAMAGES[damage](run.folder / name)
    point = run.resume_point()
    assert (point.step, point.changed) == (5, (name,))


def test_a_run_whose_settings_were_changed_continues_with_a_warning(run):
    config = run.folder / "config.toml"
    whole = config.read_text()
    config.write_text(f"{whole}\n# mine\n")
    assert run.resume_point().changed == ("config.toml",)
    config.write_text(whole.replace("steps = 6", "steps = 7"))
    with pytest.warns(UserWarning, match=r"config\.toml was changed since the checkpoint was written: its settings"):
        assert main(["train", "--resume", str(run.folder)]) == 0


def test_folders_that_are_no_checkpoints_of_the_run_are_left_alone(run):
    shutil.copytree(run.checkpoint(5), run.checkpoints / "checkpoint-5-copy")
    (run.checkpoints / "checkpoint-9.txt").touch()
    assert run.resume_point().step == 5
    run.rewind(4)
    names = sorted(path.name for path in run.checkpoints.glob("checkpoint-*"))
    assert names == ["checkpoint-4", "checkpoint-5-copy", "checkpoint-9.txt"]


def test_a_checkpoint_on_another_disk_is_read_through_its_link(run, tmp_path):
    for step in (4, 5):
        shutil.move(run.checkpoint(step), tmp_path / f"moved-{step}")
        run.checkpoint(step).symlink_to(tmp_path / f"moved-{step}")
    assert run.resume_point().step == 5
    flip(tmp_path / "moved-5" / "optimizer.pt")
    assert run.resume_point().step == 4
    run.rewind(4)
    assert run.latest_checkpoint() == (4, run.checkpoint(4))
    assert list(run.checkpoints.glob("checkpoint-*")) == [run.checkpoint(4)]
