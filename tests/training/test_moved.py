"""Runs of an adapter that were copied to another machine or path, with their base model and data elsewhere."""

import json
import shutil
from dataclasses import replace

import pytest
import torch

pytest.importorskip("trl")

from tests.engines.tiny import save_tiny_model
from tests.training.trained import SMALL, assert_same, result, stop_after
from vpo.cli.main import main
from vpo.evaluation.eval_plan import EvalConfig
from vpo.models.adapters import FILE
from vpo.models.locate import SHIPPED
from vpo.models.policy import load
from vpo.training.config import TrainConfig
from vpo.training.moved import NewPaths, relocated
from vpo.training.runs import Run, create
from vpo.training.train import resume, train
from vpo.util.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages

SETTINGS = {"lora": 4, "kl": 0.1, "learning_rate": 1e-3, "warmup_steps": 0, "eval_every": 2, "eval_problems": 2}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """`models/base`, and runs of an adapter to it: `runs/finished`, and `runs/stopped` after three of six steps."""
    folder = tmp_path_factory.mktemp("trained")
    shutil.copytree(SHIPPED / "maze-7", folder / "models" / "base")
    config = replace(SMALL, model=str(folder / "models" / "base"), **SETTINGS)
    train(config, folder / "runs" / "finished")
    with pytest.MonkeyPatch.context() as patch:
        stop_after(patch, 3)
        assert train(config, folder / "runs" / "stopped").steps == 3
    return folder


@pytest.fixture
def moved(trained, tmp_path):
    """The stopped run on another machine: nothing is where it was, and the base model is beside other things."""
    shutil.copytree(trained / "runs" / "stopped", tmp_path / "here" / "run")
    shutil.copytree(trained / "models" / "base", tmp_path / "disk" / "base")
    (trained / "models").rename(trained / "gone")
    yield tmp_path
    (trained / "gone").rename(trained / "models")


def change_a_weight(folder):
    policy = load(str(folder))
    with torch.no_grad():
        next(policy.model.parameters())[0, 0] += 1e-6
    policy.model.save_pretrained(folder)


def run_from(folder, monkeypatch, *arguments):
    monkeypatch.chdir(folder)
    return main([str(each) for each in arguments])


@pytest.mark.slow
def test_a_moved_run_ends_where_it_would_have_ended(trained, moved, monkeypatch):
    assert run_from(moved / "here", monkeypatch, "train", "--resume", "run", "--model", "../disk/base") == 0
    assert_same(result(moved / "here" / "run"), result(trained / "runs" / "finished"))
    rows = [
        [{**json.loads(line), "seconds": 0} for line in Run(folder).evaluations.read_text().splitlines()]
        for folder in (moved / "here" / "run", trained / "runs" / "finished")
    ]
    assert rows[0] == rows[1]
    (noted,) = Run(moved / "here" / "run").notes()["resumed"]
    assert noted["moved"] == {"model": str(moved / "disk" / "base")}
    record = json.loads((moved / "here" / "run" / "adapter" / FILE).read_text())
    assert (record["model"], record["relative"]) == (str(moved / "disk" / "base"), "../../../disk/base")


def test_a_base_model_that_is_gone_is_named(moved, capsys, monkeypatch):
    assert run_from(moved, monkeypatch, "train", "--resume", "here/run") == 2
    error = capsys.readouterr().err
    assert "here/run: the run's model is not at " in error
    assert "give its path with --model" in error


def test_another_model_is_refused(moved, capsys, monkeypatch):
    change_a_weight(moved / "disk" / "base")
    before = sorted(path for path in (moved / "here").rglob("*"))
    assert run_from(moved, monkeypatch, "train", "--resume", "here/run", "--model", "disk/base") == 2
    assert "disk/base is not the model that the run was started from: its weights are others" in capsys.readouterr().err
    assert sorted(path for path in (moved / "here").rglob("*")) == before


@pytest.mark.slow
def test_paths_are_found_as_seen_from_the_run(trained, moved, tmp_path):
    """Runs and models were copied together."""
    shutil.copytree(trained / "gone", tmp_path / "copy" / "models")
    shutil.copytree(trained / "runs" / "stopped", tmp_path / "copy" / "runs" / "stopped")
    assert resume(tmp_path / "copy" / "runs" / "stopped").finished
    assert_same(result(tmp_path / "copy" / "runs" / "stopped"), result(trained / "runs" / "finished"))


@pytest.mark.slow
def test_a_second_resume_knows_the_new_path(trained, moved, monkeypatch):
    with monkeypatch.context() as patch:
        stop_after(patch, 4)
        arguments = ("train", "--resume", "run", "--model", moved / "disk" / "base")
        assert run_from(moved / "here", patch, *arguments) == 130
    assert resume(moved / "here" / "run").finished
    assert_same(result(moved / "here" / "run"), result(trained / "runs" / "finished"))


@pytest.mark.parametrize("name", ["checkpoints/checkpoint-3", pytest.param("best", marks=pytest.mark.slow)])
def test_an_adapter_is_evaluated_where_it_was_moved(name, trained, moved, capsys, monkeypatch):
    options = ("--problems", "2", "--pool", "3", "--split", "validation")
    assert run_from(moved / "here", monkeypatch, "eval", f"run/{name}", *options) == 2
    assert "name its folder with --base" in capsys.readouterr().err
    assert run_from(moved / "here", monkeypatch, "eval", f"run/{name}", "--base", "../disk/base", *options) == 0
    (trained / "gone").rename(trained / "models")
    try:
        out = ("--out", moved / "there")
        assert run_from(moved, monkeypatch, "eval", trained / "runs" / "stopped" / name, *options, *out) == 0
    finally:
        (trained / "models").rename(trained / "gone")
    evaluated = moved / "here" / "run" / "evaluations" / name.rpartition("/")[2]
    assert (evaluated / "pool.parquet").read_bytes() == (moved / "there" / "pool.parquet").read_bytes()
    assert not Run(moved / "here" / "run").resume_point().damaged


def test_an_adapter_on_another_base_model_is_refused(moved):
    change_a_weight(moved / "disk" / "base")
    with pytest.raises(InputError, match=r"disk/base is not the base model of .*: its weights are not those of "):
        load(str(moved / "here" / "run" / "best"), base=str(moved / "disk" / "base"))


def test_a_base_model_for_a_whole_model_is_refused(trained):
    with pytest.raises(InputError, match=r"base is for a LoRA adapter, and .* is a whole model"):
        load(str(trained / "runs" / "finished" / "model"), base="other")


def test_a_finished_run_is_copied_without_its_whole_model(trained, tmp_path):
    """Its adapter is evaluated as the model would be, and the model can be made again."""
    shutil.copytree(trained / "models", tmp_path / "models")
    ignored = shutil.ignore_patterns("model", "checkpoints")
    shutil.copytree(trained / "runs" / "finished", tmp_path / "runs" / "copy", ignore=ignored)
    whole = load(str(trained / "runs" / "finished" / "model")).model.state_dict()
    merged = load(str(tmp_path / "runs" / "copy" / "adapter")).model.state_dict()
    assert merged.keys() == whole.keys()
    assert all(torch.equal(value, whole[name]) for name, value in merged.items())
    assert main(["eval", str(tmp_path / "runs" / "copy"), "--problems", "2", "--pool", "3"]) == 0
    (tmp_path / "runs" / "copy" / "checkpoints").mkdir()
    assert resume(tmp_path / "runs" / "copy").finished
    assert_same(result(tmp_path / "runs" / "copy"), result(trained / "runs" / "finished"))


def test_an_adapter_is_trained_further(trained, tmp_path):
    run = train(replace(SMALL, model=str(trained / "runs" / "finished" / "best"), steps=1), tmp_path / "further").run
    assert run.finished


def test_settings_cannot_be_given_to_a_moved_run(moved, capsys, monkeypatch):
    assert run_from(moved, monkeypatch, "train", "--resume", "here/run", "--model", "disk/base", "--seed", "4") == 2
    assert "give --resume here/run without seed; only paths that have changed" in capsys.readouterr().err
    assert run_from(moved, monkeypatch, "train", "--resume", "here/run", "--data", "disk") == 2
    assert "here/run: the run's model is not at" in capsys.readouterr().err
    arguments = ("train", "--resume", "here/run", "--model", "disk/base", "--data", "disk")
    assert run_from(moved, monkeypatch, *arguments) == 2
    assert "here/run: the run has no data whose path could be given" in capsys.readouterr().err


def write_questions(path, count, offset=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [{"question": f"{n} + 1?", "answer": f"{n}+1={n + 1}\n#### {n + 1}"} for n in range(offset, offset + count)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_data_that_was_moved_is_named_and_other_data_is_refused(tmp_path, capsys, monkeypatch):
    write_questions(tmp_path / "data" / "train.jsonl", 10)
    model = save_tiny_model(tmp_path / "tiny")
    settings = {"task": "gsm8k", "model": model, "task_settings": {"data": str(tmp_path / "data")}, "max_tokens": 4}
    config = replace(SMALL, **settings, problems=None, steps=4, eval_every=4, eval_pool=3, keep_best="set")
    with monkeypatch.context() as patch:
        stop_after(patch, 2)
        train(config, tmp_path / "run")
    (tmp_path / "data").rename(tmp_path / "elsewhere")
    assert run_from(tmp_path, monkeypatch, "train", "--resume", "run") == 2
    assert "give its path with --data" in capsys.readouterr().err
    write_questions(tmp_path / "other" / "train.jsonl", 10, offset=1)
    assert run_from(tmp_path, monkeypatch, "train", "--resume", "run", "--data", "other") == 2
    assert "the problems are not those that the run was started with" in capsys.readouterr().err
    assert run_from(tmp_path, monkeypatch, "train", "--resume", "run", "--data", "elsewhere") == 0
    assert len((tmp_path / "run" / "evaluations.jsonl").read_text().splitlines()) == 2
    held_out = json.loads((tmp_path / "run" / "evaluations.jsonl").read_text().splitlines()[0])["problems"]
    trained_on = {
        json.loads(line)["problem"] for line in (tmp_path / "run" / "rollouts.jsonl").read_text().splitlines()
    }
    assert held_out == 2  # a fifth
    assert len(trained_on) <= 8


def test_a_remembered_path_that_is_gone_is_not_used(tmp_path):
    (tmp_path / "base").mkdir()
    run = create(tmp_path / "run", TrainConfig(task="maze", model=str(tmp_path / "base")))
    for before, expected in (("/other/machine/base", tmp_path / "base"), ("some/model", "some/model")):
        run.note({"resumed": [{"moved": {"model": before}}]})
        assert relocated(run, NewPaths())[0].model == str(expected)
    assert relocated(run, NewPaths(model="/new"))[0].model == "/new"


@pytest.mark.parametrize("settings", [{"generator": "vllm"}, {"endpoint": "http://127.0.0.1:1/v1"}])
def test_a_base_model_is_for_adapters_that_transformers_loads(settings):
    with pytest.raises(InputError, match="base is for adapters, which generator "):
        EvalConfig(model="adapter", base="base", **settings)
