"""A run that is resumed with a damaged file: one line that names it, or it ends as it would have ended."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("trl")

from tests.damaged import answer, check, damages
from tests.training.trained import SMALL, assert_same, result, stop_after
from vpo.training import runs
from vpo.training.train import resume, train

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run that was stopped after two of four steps, and the same run at its end."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        stop_after(patch, 2)
        train(replace(SMALL, steps=4, trainer={"num_iterations": 1}), folder / "stopped")
    shutil.copytree(folder / "stopped", folder / "ended")
    assert resume(folder / "ended").finished
    return folder


@pytest.mark.parametrize("name", ["config.toml", "run.json"])
def test_damaged_settings_are_named(made, name, tmp_path, capsys):
    shutil.copytree(made / "stopped", tmp_path / "run")
    path = tmp_path / "run" / name
    content = path.read_bytes()
    lines = content.splitlines(keepends=True)
    shorter = [b"".join(lines[:count]) for count in range(len(lines))] if name == "config.toml" else []
    for damaged in (*damages(content).values(), *shorter):
        path.unlink(missing_ok=True) if damaged is None else path.write_bytes(damaged)
        check(answer(["train", "--resume", tmp_path / "run"], capsys), None, path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["metrics.jsonl", "rollouts.jsonl"])
def test_damaged_logs_are_named_and_the_training_is_not_affected(made, name, tmp_path, capsys):
    path = tmp_path / "run" / name
    for damaged in damages((made / "stopped" / name).read_bytes(), log=True).values():
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        shutil.copytree(made / "stopped", tmp_path / "run")
        path.unlink(missing_ok=True) if damaged is None else path.write_bytes(damaged)
        resumed = answer(["train", "--resume", tmp_path / "run"], capsys)
        if resumed.code == 2:
            check(resumed, None, path)
            continue
        assert resumed.code == 0
        assert f"vpo: warning: {path}" in resumed.error
        one, other = result(tmp_path / "run"), result(Path(made / "ended"))
        assert_same((one[0], *other[1:]), other)  # the weights


def test_a_damaged_command_of_verl_is_named(tmp_path, capsys):
    run = runs.create(tmp_path / "run", replace(SMALL, engine="verl"))
    run.note({"command": "vpo train maze --engine verl", "code": 0})
    path = run.folder / "verl" / "command.sh"
    path.parent.mkdir()
    path.write_text("/usr/bin/python3 -m verl.trainer.main_ppo a=1 'b= 2'\n")
    whole = answer(["train", "--resume", run.folder], capsys)
    assert whole.code == 0
    for damaged in damages(path.read_bytes()).values():
        path.unlink(missing_ok=True) if damaged is None else path.write_bytes(damaged)
        check(answer(["train", "--resume", run.folder], capsys), None, path)
