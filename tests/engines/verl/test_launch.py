"""What is wrong with a verl environment: one line, before any GPU time is spent, and no files left behind."""

import os
import re
import signal
import stat
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("torch")

from vpo.cli.main import main
from vpo.engines.verl import check
from vpo.engines.verl.versions import check_versions
from vpo.util.errors import InputError

GOOD = {"verl": "0.9.1", "transformers": "5.10.4", "TransferQueue": "0.1.11", "cachetools": "8.0", "vpo": "0.1.0"}
TRAIN = ["train", "maze", "--set", "size=7", "--problems", "40", "--engine", "verl"]


@pytest.mark.parametrize(
    ("versions", "message"),
    [
        ({"verl": None}, "python has no verl: give the Python of an environment with verl by --python"),
        ({"verl": "0.8.0"}, "verl must be >=0.9,<0.10 for vpo with verl, and python has 0.8.0"),
        ({"verl": "0.10.0"}, "verl must be >=0.9,<0.10 for vpo with verl, and python has 0.10.0"),
        (
            {"transformers": "5.22.0"},
            "transformers must be >=5.5.3,!=5.6.0,<5.11 for vpo with verl, and python has 5.22.0",
        ),
        ({"TransferQueue": None}, "python has no TransferQueue, which verl's trainer needs: pip install"),
        (
            {"vpo": None},
            "python has no vpo, which verl loads the reward and plugin from: there, pip install --no-deps",
        ),
    ],
)
def test_other_versions_are_refused(versions, message):
    check_versions(GOOD, "python")
    with pytest.raises(InputError) as caught:
        check_versions({**GOOD, **versions}, "python")
    assert message in str(caught.value)


def fake_python(folder, script):
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def answers(versions, rest):
    """A script that prints versions when called with -c, and otherwise runs the rest."""
    text = str(versions).replace("'", '"').replace("None", "null")
    return f"case $1 in -c) echo '{text}';; *) {rest};; esac"


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo nonsense >&2; exit 3", "is no Python that runs (nonsense)"),
        (answers({**GOOD, "verl": "0.8.0"}, "exit 9"), "verl must be >=0.9,<0.10 for vpo with verl, and"),
        (answers(GOOD, "echo 'vpo: error: the plugin is gone' >&2; exit 2"), "vpo: error: the plugin is gone"),
        (answers(GOOD, "echo 'Killed' >&2; exit 9"), "verl could not be checked (Killed)"),
    ],
)
def test_a_launch_that_cannot_be_leaves_nothing(script, message, tmp_path, capsys):
    out = tmp_path / "run"
    python = fake_python(tmp_path, script)
    assert main([*TRAIN, "--python", python, "--out", str(out)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["python"]


def test_a_run_is_written_checked_and_launched(tmp_path, capsys):
    python = fake_python(tmp_path, answers(GOOD, f"echo $2 >> {tmp_path}/called; echo '{{\"versions\": {{}}}}'"))
    out = tmp_path / "run"
    arguments = [*TRAIN, "--python", python, "--out", str(out)]
    assert main([*arguments, "--dry-run"]) == 0
    assert "checked, and not launched" in capsys.readouterr().out
    assert (tmp_path / "called").read_text() == "vpo.engines.verl.check\n"
    command = (out / "verl/command.sh").read_text()
    assert command.startswith(f"{python} -m verl.trainer.main_ppo ")
    assert "trainer.v1.trainer_mode=vpo" in command
    assert (out / "verl/train.parquet").is_file()
    assert main(["train", "--resume", str(out)]) == 0
    assert (tmp_path / "called").read_text().splitlines()[1:] == ["vpo.engines.verl.check", "verl.trainer.main_ppo"]
    assert "verl is done" in capsys.readouterr().out
    assert main(["train", "--resume", str(out)]) == 0  # it is not launched again
    assert len((tmp_path / "called").read_text().splitlines()) == 3
    assert main(["eval", str(out)]) == 2
    assert "verl's checkpoints must be merged first: python -m verl.model_merger" in capsys.readouterr().err


def test_verl_is_checked_where_it_is_launched(tmp_path, monkeypatch):
    python = fake_python(tmp_path, answers(GOOD, f"pwd >> {tmp_path}/folders; echo '{{\"versions\": {{}}}}'"))
    assert main([*TRAIN, "--python", python, "--out", str(tmp_path / "run")]) == 0
    assert (tmp_path / "folders").read_text().splitlines() == [str(tmp_path / "run")] * 2


@contextmanager
def launched(folder):
    """`vpo train` with a verl that started a process in a session of its own, as Ray does; the ids of both."""
    start = "setsid sh -c 'echo $$ > ray; exec sleep 300' & until [ -s ray ]; do sleep 0.01; done; echo $$ > verl"
    waits = f"case $2 in *check) echo '{{\"versions\": {{}}}}';; *) cd {folder}; {start}; exec sleep 300;; esac"
    python = fake_python(folder, answers(GOOD, waits))
    command = [sys.executable, "-W", "ignore", "-m", "vpo", *TRAIN, "--python", python, "--out", str(folder / "run")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(command, env=environment)
    try:
        until(lambda: process.poll() is not None or ((folder / "verl").is_file() and (folder / "verl").read_text()))
        assert process.poll() is None
        yield process, [int((folder / name).read_text()) for name in ("ray", "verl")]
    finally:
        process.kill()
        process.wait()


def until(condition):
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_alive(pid):
    return Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_verl_does_not_outlive_what_launched_it(tmp_path, number):
    with launched(tmp_path) as (process, pids):
        process.send_signal(number)
        assert process.wait(120) == 1
        assert not any(map(is_alive, pids))


def test_verl_does_not_outlive_a_killed_launcher_and_the_run_is_resumed(tmp_path, capsys):
    with launched(tmp_path) as (process, pids):
        process.kill()
        process.wait()
        until(lambda: not any(map(is_alive, pids)))
    fake_python(tmp_path, answers(GOOD, "echo '{\"versions\": {}}'"))
    until(lambda: main(["train", "--resume", str(tmp_path / "run")]) == 0)  # the supervisor ends last
    assert "verl is done" in capsys.readouterr().out


def test_a_run_is_not_resumed_while_a_process_of_verl_is_left(tmp_path, capsys):
    with launched(tmp_path) as (process, (ray, verl)):
        supervisor = int(Path(f"/proc/{verl}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(supervisor, signal.SIGSTOP)  # it cannot end anything, so the worst is left
        try:
            process.kill()
            process.wait()
            assert main(["train", "--resume", str(tmp_path / "run")]) == 2
        finally:
            os.kill(supervisor, signal.SIGCONT)
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert f"{tmp_path}/run: another process is training this run (pid " in error
        assert set(re.findall(r"\d+", error.rpartition("(pid")[2])) >= {str(ray), str(verl), str(supervisor)}
        until(lambda: not any(map(is_alive, (ray, verl, supervisor))))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--python", "/nowhere/python"], "no such Python: /nowhere/python"),
        (["--generator", "vllm"], "generator is not a setting of verl: "),
        (["--trainer-set", "actor_rollout_ref.rollout.n=2"], "set group of the run, not actor_rollout_ref.rollout.n"),
        (["--prompts-per-step", "64"], "prompts_per_step must be at most the 40 problems under verl, not 64"),
        (["--engine", "openrlhf"], "engine must be one of trl, verl, not 'openrlhf'"),
        (["--engine", "trl", "--dry-run"], "dry_run can be given with --engine verl only"),
    ],
)
def test_bad_settings_are_one_line_and_leave_nothing(options, message, tmp_path, capsys):
    python = fake_python(tmp_path, answers(GOOD, "echo '{\"versions\": {}}'"))
    extra = [] if "trl" in options else ["--python", python]
    assert main([*TRAIN, *extra, *options, "--out", str(tmp_path / "run")]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "run").exists()


@pytest.fixture
def no_plugin(monkeypatch):
    """A verl that knows no trainer of ours."""
    for name in ("verl", "verl.trainer", "verl.trainer.ppo", "verl.trainer.ppo.v1", "verl.trainer.ppo.v1.trainer_base"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    sys.modules["verl.trainer.ppo.v1.trainer_base"].TRAINER_REGISTRY = {}
    monkeypatch.delitem(sys.modules, "vpo.engines.verl.plugin", raising=False)
    return monkeypatch


def test_a_plugin_that_did_not_load_is_named(no_plugin):
    plugin = ModuleType("vpo.engines.verl.plugin")
    plugin.FAILURE = ImportError("no module named transfer_queue")
    no_plugin.setitem(sys.modules, plugin.__name__, plugin)
    with pytest.raises(InputError, match=r"plugin vpo cannot be loaded .ImportError: no module named transfer_queue"):
        check.check_plugin()


def test_a_plugin_that_is_not_there_is_named(no_plugin):
    no_plugin.setattr(check, "entry_points", lambda group: type("Points", (), {"names": set()}))
    with pytest.raises(InputError, match=r"verl's plugin vpo is not registered in .*: install vpo there again"):
        check.check_plugin()
    no_plugin.setattr(check, "entry_points", lambda group: type("Points", (), {"names": {"vpo"}}))
    no_plugin.setenv("VERL_USE_EXTERNAL_PLUGINS", "none")
    with pytest.raises(InputError, match="VERL_USE_EXTERNAL_PLUGINS is 'none', and must be 'auto'"):
        check.check_plugin()
