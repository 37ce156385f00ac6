"""Training in run folders, on the embedded policy and on tiny random models; stopped, killed and resumed."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("trl")

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from tests.engines.tiny import save_tiny_model
from vpo import runs
from vpo.cli import main
from vpo.config import TrainConfig, config_of, read_settings
from vpo.engines.watch import Watch
from vpo.evaluate import Request, evaluate_into
from vpo.policies import locate
from vpo.runs import Run
from vpo.train import _go_on, prepare, resume, train

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages

# Ten problems, four a step: by the last step in the third epoch.
SMALL = TrainConfig(
    task="maze",
    steps=6,
    prompts=4,
    group=4,
    problems=10,
    micro_batch=8,
    save_every=2,
    rollouts_every=2,
    seed=3,
    task_settings={"size": 7},
)
ARGUMENTS = [
    *("maze", "--set", "size=7", "--steps", "6", "--prompts", "4", "--group", "4", "--problems", "10"),
    *("--micro-batch", "8", "--save-every", "2", "--rollouts-every", "2", "--seed", "3"),
]


def result(folder):
    """All that must be the same at the end of the same run: weights, metrics but for the clock, sampled rollouts."""
    run = Run(folder)
    weights = AutoModelForCausalLM.from_pretrained(run.model).state_dict()
    metrics = [json.loads(line) for line in run.metrics.read_text().splitlines()]
    for row in metrics:
        del row["step_time"]
    return weights, metrics, run.rollouts.read_text()


def assert_same(one, other):
    assert one[1] == other[1]
    assert one[2] == other[2]
    assert one[0].keys() == other[0].keys()
    assert all(torch.equal(value, other[0][name]) for name, value in one[0].items())


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "run"
    outcome = train(SMALL, folder)
    assert outcome.finished
    return folder


def test_a_run_leaves_what_the_contract_says(whole):
    assert {path.name for path in whole.iterdir()} - {".lock"} == {
        *("config.toml", "run.json", "metrics.jsonl", "rollouts.jsonl", "checkpoints", "model")
    }
    metrics = [json.loads(line) for line in (whole / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in metrics] == [1, 2, 3, 4, 5, 6]
    for name in ("loss", "entropy", "vpo/objective/gold", "vpo/set_reward", "vpo/diversity", "vpo/parse_rate"):
        assert all(isinstance(row[name], float) for row in metrics), name
    rollouts = [json.loads(line) for line in (whole / "rollouts.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rollouts] == [1] * 4 + [3] * 4 + [5] * 4  # a group each
    assert all(len(row["vectors"]) == len(row["answers"]) == 3 and len(row["vectors"][0]) == 4 for row in rollouts)
    assert all(row["prompt"][0]["content"].endswith(" 3") for row in rollouts)
    assert {path.name for path in (whole / "checkpoints").glob("checkpoint-*")} == {"checkpoint-2", "checkpoint-4"}
    facts = json.loads((whole / "run.json").read_text())
    assert facts["versions"]["trl"]
    assert facts["began"] <= facts["ended"]


def test_the_config_of_a_run_reproduces_it(whole, tmp_path):
    settings = read_settings(whole / "config.toml")
    assert settings["learning_rate"] == 1e-4  # chosen, and written down
    assert settings["task_settings"] == {"size": 7, "compact": True}
    train(config_of(settings), tmp_path / "again")
    assert_same(result(tmp_path / "again"), result(whole))


def test_another_seed_is_another_run(whole, tmp_path):
    train(replace(SMALL, seed=4, steps=1), tmp_path / "other")
    assert result(tmp_path / "other")[1][0]["loss"] != result(whole)[1][0]["loss"]


def test_the_model_is_used_with_plain_transformers_as_its_card_says(whole, capsys):
    card = (whole / "model" / "README.md").read_text()
    code = card.split("```python\n")[1].split("```")[0].replace("path/to/model", str(whole / "model"))
    exec(code, {})
    assert "<answer_1>" in capsys.readouterr().out


def stop_after(monkeypatch, step):
    """As Ctrl-C would during a step."""
    inner = Watch.on_step_end

    def on_step_end(self, args, state, control, **more):
        self.stop = self.stop or state.global_step >= step
        return inner(self, args, state, control, **more)

    monkeypatch.setattr(Watch, "on_step_end", on_step_end)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"method": "gdpo", "trainer": {"num_iterations": 2}},
        {"method": "grpo", "kl": 0.1},
        {"method": "dr_grpo", "lora": 4},
        {"method": "random_weighting", "schedule": "cosine"},
        {"method": "vpo_anchored", "kl": 0.1},
    ],
)
def test_a_stopped_run_ends_where_it_would_have_ended(changes, whole, tmp_path, monkeypatch):
    config = replace(SMALL, **changes)
    if changes:
        whole = tmp_path / "whole"
        train(config, whole)
    with monkeypatch.context() as patch:
        stop_after(patch, 3)
        outcome = train(config, tmp_path / "run")
    updates = 2 if "trainer" in changes else 1
    assert (outcome.finished, outcome.steps) == (False, 3 + 3 % updates)  # where no rollouts wait
    assert not outcome.run.finished
    assert resume(tmp_path / "run").finished
    assert_same(result(tmp_path / "run"), result(whole))


def test_a_kill_in_the_middle_of_a_checkpoint_costs_nothing(whole, tmp_path, monkeypatch):
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
    assert_same(result(tmp_path / "run"), result(whole))


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


def test_kill_9_and_resume(whole, tmp_path):
    process = start(tmp_path, *ARGUMENTS, "--out", "run")
    wait_for_line(process, tmp_path / "run" / "metrics.jsonl", 3)
    process.kill()
    process.communicate()
    run = runs.find(tmp_path / "run")
    assert not run.finished
    assert resume(run.folder).finished
    assert_same(result(run.folder), result(whole))


def test_ctrl_c_saves_a_checkpoint_and_says_how_to_go_on(tmp_path):
    process = start(tmp_path, *ARGUMENTS, "--save-every", "100", "--steps", "500", "--out", "run")
    wait_for_line(process, tmp_path / "run" / "metrics.jsonl", 1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130
    assert "stopping after this step, with a checkpoint" in err
    run = runs.find(tmp_path / "run")
    step, _ = run.latest_checkpoint()
    assert f"run: stopped after step {step} of 500, with a checkpoint; go on with: vpo train --resume run" in out


def test_a_run_that_never_saved_begins_anew(whole, tmp_path):
    run = runs.create(tmp_path / "run", SMALL)
    assert resume(run.folder).finished
    assert_same(result(run.folder), result(whole))


def test_a_finished_run_is_left_alone(whole, capsys):
    before = (whole / "metrics.jsonl").stat().st_mtime_ns
    assert main(["train", "--resume", str(whole)]) == 0
    assert "6 steps done" in capsys.readouterr().out
    assert (whole / "metrics.jsonl").stat().st_mtime_ns == before


def test_a_run_that_another_process_finished_is_left_alone(whole):
    before = (whole / "metrics.jsonl").read_text()
    outcome = _go_on(Run(whole), prepare(SMALL))  # as if it had found the run unfinished before it held it
    assert outcome.finished
    assert (whole / "metrics.jsonl").read_text() == before


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


def test_a_checkpoint_knows_how_it_is_asked(whole):
    found = locate(str(whole / "checkpoints" / "checkpoint-2"), None, {})
    assert (found.task, found.format.answers, found.settings) == ("maze", 3, {"size": 7, "compact": True})


def test_files_of_a_model_are_readable_like_others(whole):
    assert {path.stat().st_mode & 0o777 for path in (whole / "model").iterdir()} == {0o666 & ~umask()}


def umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_model_that_reads_weightings_is_told_one(tmp_path):
    model = save_tiny_model(tmp_path / "tiny")
    config = replace(SMALL, model=model, steps=2, tokens_per_answer=8, method="goal_conditioned")
    run = train(config, tmp_path / "run").run
    rollouts = [json.loads(line) for line in run.rollouts.read_text().splitlines()]
    assert "What counts in this answer: " in rollouts[0]["prompt"][0]["content"]
    asked = json.loads((run.model / "vpo.json").read_text())
    assert asked["target_in_prompt"]
    assert "completion 25%, gold 25%" in asked["example"][0]["content"]  # w*, which evaluation asks for
    rows = evaluate_into(tmp_path / "evaluated", Request(model=str(run.folder), count=2, pool=2))[1]
    assert rows.completions == 4


@pytest.mark.parametrize("kind", ["qwen3", "llama"])
def test_any_model_with_a_chat_template_trains(kind, tmp_path):
    model = save_tiny_model(tmp_path / "tiny", kind)
    config = replace(SMALL, model=model, steps=2, tokens_per_answer=8, kl=None, micro_batch=None, lora=2)
    outcome = train(config, tmp_path / "run")
    config = outcome.run.config()
    assert (config.learning_rate, config.kl, config.micro_batch) == (1e-5, 1e-3, 4)
    loaded = AutoModelForCausalLM.from_pretrained(outcome.run.model)  # merged, without peft
    assert type(loaded).__name__.lower().startswith(kind)
    assert AutoTokenizer.from_pretrained(outcome.run.model).chat_template
    asked = json.loads((outcome.run.model / "vpo.json").read_text())
    assert "<answer_3>" in asked["example"][0]["content"]


def test_a_model_of_a_run_is_trained_further(whole, tmp_path):
    train(replace(SMALL, model=str(whole), steps=1), tmp_path / "further")
    settings = read_settings(tmp_path / "further" / "config.toml")
    assert settings["model"] == str(whole)
    assert settings["task_settings"] == {"size": 7, "compact": True}
    assert settings["tokens_per_answer"] == 29


def test_trackers_write_into_the_run(tmp_path):
    pytest.importorskip("tensorboard")
    train(replace(SMALL, steps=1, report_to=["tensorboard"]), tmp_path / "run")
    assert list((tmp_path / "run" / "tensorboard").glob("events.out.tfevents*"))


def test_a_disk_that_fills_up_is_one_line(tmp_path, capsys, monkeypatch):
    def full(self, step, keep):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Run, "complete_checkpoint", full)
    assert main(["train", *ARGUMENTS, "--out", "run"]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == (
        "vpo: error: run: the disk is full: make room and go on by vpo train --resume run"
    )


def test_a_disk_that_is_too_small_is_said_before(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("vpo.files.shutil.disk_usage", lambda path: SimpleNamespace(free=10**6))
    assert main(["train", *ARGUMENTS, "--out", str(tmp_path / "run")]) == 2
    assert "the disk has 0.001 GB free" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_options_come_before_the_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.toml").write_text(
        'task = "maze"\nmethod = "vpo"\nsteps = 9\nprompts = 2\ngroup = 2\n[task_settings]\nsize = 7\n'
        "[method_settings]\nanswers = 2\n"
    )
    assert main(["train", "--config", "run.toml", "--method", "grpo", "--steps", "1", "--json"]) == 0
    config = json.loads(capsys.readouterr().out)["config"]
    assert (config["method"], config["steps"], config["prompts"]) == ("grpo", 1, 2)
    assert config["method_settings"] == {"answers": 1}  # those of the file are another method's
    assert (tmp_path / "runs" / "maze-grpo" / "model").is_dir()


def test_weights_of_a_target_are_scaled_in_a_file_as_in_an_option(tmp_path):
    config = replace(SMALL, steps=1, target={"gold": 1, "diamond": 3})
    run = train(config, tmp_path / "run").run
    assert run.config().target == {"gold": 0.25, "diamond": 0.75}


OWN_TASK = Path(__file__).parent.parent / "examples" / "own_task.py"


def test_a_task_of_ones_own_is_trained_evaluated_and_compared_and_may_move(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(OWN_TASK.read_text())
    model = save_tiny_model(tmp_path / "tiny")
    few = ["--steps", "1", "--prompts", "2", "--group", "2", "--tokens-per-answer", "4"]
    assert main(["train", "mine.py", "--model", model, *few, "--split", "test"]) == 0
    (run,) = (tmp_path / "runs").iterdir()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert main(["eval", str(run), "--count", "2", "--pool", "3"]) == 0
    (tmp_path / "mine.py").rename(tmp_path / "moved.py")
    arguments = [
        "eval",
        str(run),
        "--task",
        str(tmp_path / "moved.py"),
        "--count",
        "2",
        "--pool",
        "3",
        "--out",
        "again",
    ]
    assert main(arguments) == 0
    assert main(["compare", str(run)]) == 0  # its task is gone, and with it the oracle alone
    capsys.readouterr()
