"""Training in run folders, on the embedded policy and on tiny random models."""

import errno
import json
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("trl")

from transformers import AutoModelForCausalLM, AutoTokenizer

from tests.engines.tiny import save_tiny_model
from tests.training.trained import ARGUMENTS, SMALL, assert_same, result, train_to_the_end
from vpo.cli.main import main
from vpo.evaluation.eval_plan import EvalConfig
from vpo.evaluation.evaluate import evaluate_into
from vpo.models.locate import locate
from vpo.tasks.maze import MazeTask
from vpo.training.config import config_of, read_settings
from vpo.training.runs import Run
from vpo.training.train import train
from vpo.util.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return train_to_the_end(tmp_path_factory.mktemp("finished") / "run")


def test_a_run_leaves_what_the_contract_says(finished):
    assert {path.name for path in finished.iterdir()} - {".lock"} == {
        *("config.toml", "run.json", "metrics.jsonl", "rollouts.jsonl", "checkpoints", "model")
    }
    metrics = [json.loads(line) for line in (finished / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in metrics] == [1, 2, 3, 4, 5, 6]
    for name in ("loss", "entropy", "vpo/objective/gold", "vpo/set_reward", "vpo/diversity", "vpo/parse_rate"):
        assert all(isinstance(row[name], float) for row in metrics), name
    rollouts = [json.loads(line) for line in (finished / "rollouts.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rollouts] == [1] * 4 + [3] * 4 + [5] * 4  # a group each
    assert all(len(row["vectors"]) == len(row["answers"]) == 3 and len(row["vectors"][0]) == 4 for row in rollouts)
    assert all(row["prompt"][0]["content"].endswith(" 3") for row in rollouts)
    assert {path.name for path in (finished / "checkpoints").glob("checkpoint-*")} == {"checkpoint-2", "checkpoint-4"}
    facts = json.loads((finished / "run.json").read_text())
    assert facts["versions"]["trl"]
    assert facts["began"] <= facts["ended"]


def test_the_config_of_a_run_reproduces_it(finished, tmp_path):
    settings = read_settings(finished / "config.toml")
    assert settings["learning_rate"] == 1e-4  # chosen, and written down
    assert settings["task_settings"] == {"size": 7, "compact": True}
    train(config_of(settings), tmp_path / "again")
    assert_same(result(tmp_path / "again"), result(finished))


def test_another_seed_is_another_run(finished, tmp_path):
    train(replace(SMALL, seed=4, steps=1), tmp_path / "other")
    assert result(tmp_path / "other")[1][0]["loss"] != result(finished)[1][0]["loss"]


def test_the_model_is_used_with_plain_transformers_as_its_card_says(finished, capsys):
    card = (finished / "model" / "README.md").read_text()
    code = card.split("```python\n")[1].split("```")[0].replace("path/to/model", str(finished / "model"))
    exec(code, {})
    assert "<answer_1>" in capsys.readouterr().out


def test_a_checkpoint_has_its_prompt_format(finished):
    located = locate(str(finished / "checkpoints" / "checkpoint-2"), None, {})
    assert (located.task, located.format.answers, located.settings) == ("maze", 3, {"size": 7, "compact": True})


def test_files_of_a_model_are_readable_like_others(finished):
    assert {path.stat().st_mode & 0o777 for path in (finished / "model").iterdir()} == {0o666 & ~umask()}


def umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_model_trained_with_weightings_gets_one_in_its_prompt(tmp_path):
    model = save_tiny_model(tmp_path / "tiny")
    config = replace(SMALL, model=model, steps=2, max_tokens=8, method="goal_conditioned")
    run = train(config, tmp_path / "run").run
    rollouts = [json.loads(line) for line in run.rollouts.read_text().splitlines()]
    assert "What counts in this answer: " in rollouts[0]["prompt"][0]["content"]
    prompt_format = json.loads((run.model / "vpo.json").read_text())
    assert prompt_format["target_in_prompt"]
    assert "completion 25%, gold 25%" in prompt_format["example"][0]["content"]  # w*, which evaluation prompts with
    counts = evaluate_into(tmp_path / "evaluated", EvalConfig(model=str(run.folder), problems=2, pool=2))[1]
    assert counts.completions == 4


@pytest.mark.parametrize("kind", ["qwen3", "llama"])
def test_any_model_with_a_chat_template_trains(kind, tmp_path):
    model = save_tiny_model(tmp_path / "tiny", kind)
    config = replace(SMALL, model=model, steps=2, max_tokens=8, kl=None, micro_batch=None, lora=2)
    trained = train(config, tmp_path / "run")
    config = trained.run.config()
    assert (config.learning_rate, config.kl, config.micro_batch) == (1e-5, 1e-3, 4)
    loaded = AutoModelForCausalLM.from_pretrained(trained.run.model)  # merged, without peft
    assert type(loaded).__name__.lower().startswith(kind)
    assert AutoTokenizer.from_pretrained(trained.run.model).chat_template
    prompt_format = json.loads((trained.run.model / "vpo.json").read_text())
    assert "<answer_3>" in prompt_format["example"][0]["content"]


def test_a_model_of_a_run_is_trained_further(finished, tmp_path):
    train(replace(SMALL, model=str(finished), steps=1), tmp_path / "further")
    settings = read_settings(tmp_path / "further" / "config.toml")
    assert settings["model"] == str(finished)
    assert settings["task_settings"] == {"size": 7, "compact": True}
    assert settings["max_tokens"] == 29


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
        "vpo: error: run: the disk is full: free some space, then resume with vpo train --resume run"
    )


def test_a_disk_that_is_too_small_is_reported_before_training(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("vpo.util.files.shutil.disk_usage", lambda path: SimpleNamespace(free=10**6))
    assert main(["train", *ARGUMENTS, "--out", str(tmp_path / "run")]) == 2
    assert "the disk has 0.001 GB free" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_options_come_before_the_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.toml").write_text(
        'task = "maze"\nmethod = "vpo"\nsteps = 9\nprompts_per_step = 2\ngroup = 2\n[task_settings]\nsize = 7\n'
        "[method_settings]\nanswers = 2\n"
    )
    assert main(["train", "--config", "run.toml", "--method", "grpo", "--steps", "1", "--json"]) == 0
    config = json.loads(capsys.readouterr().out)["config"]
    assert (config["method"], config["steps"], config["prompts_per_step"]) == ("grpo", 1, 2)
    assert config["method_settings"] == {"answers": 1}  # those of the file are another method's
    assert (tmp_path / "runs" / "maze-grpo" / "model").is_dir()


def test_weights_of_a_target_are_scaled_in_a_file_as_in_an_option(tmp_path):
    config = replace(SMALL, steps=1, target={"gold": 1, "diamond": 3})
    run = train(config, tmp_path / "run").run
    assert run.config().target == {"gold": 0.25, "diamond": 0.75}


OWN_TASK = Path(__file__).parents[2] / "examples" / "own_task.py"


def test_a_fault_of_a_task_is_not_one_of_the_settings(tmp_path, monkeypatch):
    monkeypatch.setattr(MazeTask, "score_all", lambda *_: [float("12a")])
    with pytest.raises(ValueError, match="could not convert string to float: '12a'") as raised:
        train(SMALL, tmp_path / "run")
    assert not isinstance(raised.value, InputError)
    assert not (tmp_path / "run").exists()


def test_rollouts_are_sampled_between_updates_on_the_same(tmp_path):
    settings = {"steps": 6, "prompts_per_step": 2, "group": 2, "micro_batch": 4, "rollouts_every": 2}
    train(replace(SMALL, **settings, trainer={"num_iterations": 3}), tmp_path / "run")
    sampled = [json.loads(line)["step"] for line in Run(tmp_path / "run").rollouts.read_text().splitlines()]
    assert sorted(set(sampled)) == [1, 4]


def test_a_task_of_ones_own_is_trained_evaluated_and_compared_and_may_move(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(OWN_TASK.read_text())
    model = save_tiny_model(tmp_path / "tiny")
    few = ["--steps", "1", "--prompts-per-step", "2", "--group", "2", "--max-tokens", "4"]
    assert main(["train", "--task-file", "mine.py", "--model", model, *few, "--split", "test"]) == 0
    (run,) = (tmp_path / "runs").iterdir()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert main(["eval", str(run), "--problems", "2", "--pool", "3"]) == 0
    (tmp_path / "mine.py").rename(tmp_path / "moved.py")
    arguments = [
        "eval",
        str(run),
        "--task-file",
        str(tmp_path / "moved.py"),
        "--problems",
        "2",
        "--pool",
        "3",
        "--out",
        "again",
    ]
    assert main(arguments) == 0
    assert main(["compare", str(run)]) == 0  # its task is gone, and with it the oracle alone
    capsys.readouterr()
