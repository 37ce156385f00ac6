"""`vpo train` in two processes over gloo, started by accelerate: one run folder, stopped and gone on with together."""

import json
import shutil
import signal
import time
from dataclasses import replace

import pytest

pytest.importorskip("trl")

from accelerate.commands.config import load_config_from_file

from tests.engines.tiny import save_tiny_model
from tests.launch import LIMIT, ROOT, launch, run, wait
from tests.training.test_train import OWN_TASK
from tests.training.trained import assert_same, result
from vpo.cli.main import main
from vpo.training.config import TrainConfig
from vpo.training.prepare import resolve
from vpo.training.runs import Run
from vpo.training.train import train
from vpo.util import processes
from vpo.util.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages

# Three groups of 4 over two processes: the second one is split.
SMALL = TrainConfig(
    task="maze",
    method="gdpo",
    steps=8,
    prompts_per_step=3,
    group=4,
    problems=10,
    micro_batch=3,
    save_every=3,
    rollouts_every=1,
    seed=3,
    task_settings={"size": 7},
)
ARGUMENTS = [
    *("train", "maze", "--method", "gdpo", "--set", "size=7", "--steps", 8, "--prompts-per-step", 3, "--group", 4),
    *("--problems", 10, "--micro-batch", 3, "--save-every", 3, "--rollouts-every", 1, "--seed", 3, "--out", "run"),
]


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """A run in two processes."""
    folder = tmp_path_factory.mktemp("two")
    code, out, err = run("vpo", *ARGUMENTS, cwd=folder)
    assert code == 0, err
    assert out.count("run: 8 steps done") == 1
    assert err.count("step 8 of 8") == 1
    return folder / "run"


def rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_two_processes_leave_one_run(two):
    assert [row["step"] for row in rows(two / "metrics.jsonl")] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [row["step"] for row in rows(two / "rollouts.jsonl")] == [step for step in range(1, 9) for _ in range(4)]
    assert {path.name for path in (two / "checkpoints").glob("checkpoint-*")} == {"checkpoint-3", "checkpoint-6"}
    assert (two / "checkpoints" / "checkpoint-6" / "rng_state_1.pth").is_file()
    assert Run(two).notes()["processes"] == 2
    assert {path.name for path in two.iterdir()} - {".lock"} == {
        *("config.toml", "run.json", "metrics.jsonl", "rollouts.jsonl", "checkpoints", "model")
    }


def test_two_processes_train_on_the_prompts_of_one(two, tmp_path):
    alone = train(SMALL, tmp_path / "run").run
    prompts = [[(row["step"], row["prompt"]) for row in rows(each.rollouts)] for each in (Run(two), alone)]
    assert prompts[0] == prompts[1]
    assert len({str(prompt) for _, prompt in prompts[0]}) > 3


@pytest.mark.slow
def test_a_run_that_was_stopped_ends_where_it_would_have_ended(two, tmp_path):
    process = launch("vpo", *ARGUMENTS, cwd=tmp_path)
    log, end = tmp_path / "run" / "metrics.jsonl", time.monotonic() + LIMIT
    while not (log.is_file() and log.read_text().count("\n") >= 2):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    code, out, err = wait(process)
    step, _ = Run(tmp_path / "run").latest_checkpoint()
    assert code != 0
    assert step < 8
    assert f"run: stopped after step {step} of 8, with a checkpoint; continue with: accelerate launch" in out
    assert err.count("stopping after this step") == 1
    code, out, err = run("vpo", "train", "--resume", "run", cwd=tmp_path)
    assert code == 0, err
    assert_same(result(tmp_path / "run"), result(two))


@pytest.mark.slow
def test_a_file_of_the_second_process_that_is_damaged_changes_no_end(two, tmp_path):
    folder = shutil.copytree(two, tmp_path / "run")
    shutil.rmtree(folder / "model")
    (folder / "checkpoints" / "checkpoint-6" / "rng_state_1.pth").unlink()
    code, _, err = run("vpo", "train", "--resume", "run", cwd=tmp_path)
    assert code == 0, err
    assert err.count("checkpoint-6 is not used (rng_state_1.pth is missing): continuing from checkpoint-3") == 1
    assert_same(result(folder), result(two))
    shutil.rmtree(folder / "model")
    for name in ("checkpoint-3", "checkpoint-6"):
        (folder / "checkpoints" / name / "rng_state_1.pth").write_bytes(b"")
    code, _, err = run("vpo", "train", "--resume", "run", cwd=tmp_path)
    assert code != 0
    (line,) = complaints(err)
    assert line.startswith(
        "vpo: error: run: no whole checkpoint is left (checkpoint-3: rng_state_1.pth has 0 bytes of "
    )


FAILS = """    def read(self, completion, answers):
        import os

        from vpo.util.errors import InputError

        if os.environ["RANK"] == "1":
            raise InputError("the judge is gone")
        return super().read(completion, answers)

    def score("""


def complaints(err):
    return [line for line in err.splitlines() if line.startswith("vpo: error:")]


def test_an_error_in_one_process_ends_all_with_one_line(tmp_path):
    (tmp_path / "mine.py").write_text(OWN_TASK.read_text().replace("    def score(", FAILS))
    model = save_tiny_model(tmp_path / "tiny")
    few = ["--steps", 2, "--prompts-per-step", 2, "--group", 2, "--max-tokens", 4, "--out", "run"]
    code, _, err = run("vpo", "train", "--task-file", "mine.py", "--model", model, *few, cwd=tmp_path)
    assert code != 0
    assert complaints(err) == ["vpo: error: the judge is gone"]
    assert not (tmp_path / "run").exists()


def test_settings_that_do_not_fit_are_one_line(tmp_path):
    uneven = [*("train", "maze", "--set", "size=7", "--prompts-per-step", 3, "--group", 3, "--out", "run")]
    code, _, err = run("vpo", *uneven, cwd=tmp_path)
    assert code != 0
    assert complaints(err) == [
        "vpo: error: 2 processes must share the 9 rollouts of a step, prompts_per_step × group, evenly: change "
        "prompts_per_step, 3, or group, 3"
    ]
    assert not (tmp_path / "run").exists()


def test_only_training_is_shared_between_processes(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert processes.count() == 1  # a scheduler says so, and no launcher
    monkeypatch.setenv("LOCAL_RANK", "0")
    monkeypatch.setenv("RANK", "0")
    assert main(["reproduce", "maze", "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err == "vpo: error: this command runs in 1 process, not 2: start it without a launcher\n"
    monkeypatch.setenv("RANK", "1")
    assert main(["tasks"]) == 2
    assert capsys.readouterr().err == ""  # the other says it
    assert not list(tmp_path.iterdir())


def test_another_number_of_processes_is_refused(two, tmp_path, capsys):
    shutil.copytree(two, tmp_path / "run", ignore=shutil.ignore_patterns("model"))
    assert main(["train", "--resume", str(tmp_path / "run")]) == 2
    assert (
        "the run was started in 2 processes, not 1: resume it with accelerate launch --num_processes 2"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize(("group", "micro_batch"), [(8, 4), (4, 2), (5, 5)])
def test_a_backward_pass_takes_no_more_than_a_process_has(group, micro_batch, tmp_path, monkeypatch):
    model = save_tiny_model(tmp_path / "tiny")
    monkeypatch.setattr(processes, "count", lambda: 2)
    prompts = 4 if group == 5 else 1 if group == 8 else 3
    config = replace(SMALL, model=model, prompts_per_step=prompts, group=group, micro_batch=None)
    assert resolve(config)[0].micro_batch == micro_batch


def test_a_backward_pass_that_does_not_divide_the_share_is_refused(tmp_path, monkeypatch):
    from vpo.training.train import prepare
    from vpo.training.trl_trainer import trainer_config

    parts = prepare(replace(SMALL, micro_batch=4))
    monkeypatch.setattr(processes, "count", lambda: 2)
    with pytest.raises(InputError, match="micro_batch must divide the 6 rollouts that each of 2 processes has a step"):
        trainer_config(parts.config, parts.reward, tmp_path, 10)


@pytest.mark.parametrize(
    "path", sorted((ROOT / "examples" / "accelerate_configs").glob("*.yaml")), ids=lambda path: path.stem
)
def test_the_configs_are_ones_of_accelerate(path):
    config = load_config_from_file(str(path))
    assert config.num_processes > 1
    assert f"--config_file examples/accelerate_configs/{path.name} -m vpo train" in path.read_text()
