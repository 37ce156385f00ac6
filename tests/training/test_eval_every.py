"""Evaluation while training: what it measures, what it leaves alone, and the best model that it keeps."""

import json
from dataclasses import replace

import pytest
import torch

pytest.importorskip("trl")

from tests import launch
from tests.engines.tiny import save_tiny_model
from tests.rewards.fragile import FRAGILE, FRAGILE_REWARDS
from tests.tasks.readings import reading_of
from tests.training.test_train_stops import start, wait_for_line
from tests.training.trained import ARGUMENTS, SMALL, assert_same, result, stop_after, train_to_the_end
from vpo.cli.main import main
from vpo.evaluation.eval_plan import EvalConfig
from vpo.evaluation.evaluate import evaluate_into
from vpo.evaluation.metrics import BEST, PASS, SET, Budget
from vpo.models.policy import load
from vpo.rewards.prompts import PromptTask
from vpo.training.runs import Run
from vpo.training.train import resume, train

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages

# A rate at which the best model is neither the first nor the last.
SETTINGS = {"eval_every": 1, "eval_problems": 4, "learning_rate": 3e-4, "warmup_steps": 0}
EVALUATED = replace(SMALL, **SETTINGS)
OPTIONS = ["--eval-every", "1", "--eval-problems", "4", "--learning-rate", "3e-4", "--warmup-steps", "0"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluated") / "run"
    assert train(EVALUATED, folder).finished
    return folder


def rows(folder):
    """The log of evaluations, without times."""
    evaluated = [json.loads(line) for line in Run(folder).evaluations.read_text().splitlines()]
    for row in evaluated:
        assert row.pop("seconds") > 0
    return evaluated


def best(folder):
    """The step of the best model, and its weights."""
    return json.loads((folder / "best" / "best.json").read_text()), load(str(folder / "best")).model.state_dict()


def assert_same_evaluations(one, other):
    assert rows(one) == rows(other)
    assert best(one)[0] == best(other)[0]
    weights = best(other)[1]
    assert all(torch.equal(value, weights[name]) for name, value in best(one)[1].items())
    assert not list((one / "checkpoints").glob("best-*"))


def test_every_step_the_start_and_the_end_are_evaluated(finished):
    assert [row["step"] for row in rows(finished)] == list(range(7))
    first = rows(finished)[0]
    names = {"best@1", "best@3", "best@5", "best@8", "best@9", "pass@1", "first", "set", "set_reward"}
    assert names | {"parse_rate", "read_rate", "tokens"} <= first.keys()
    assert first["problems"] == 4
    assert first["best@1"] < first["set"] < first["best@9"]  # a set has 3 of the 9 answers
    settings = Run(finished).config()
    assert (settings.eval_split, settings.eval_pool, settings.keep_best) == ("validation", 9, "best@8")


def test_the_best_model_is_that_of_the_largest_measure_and_loads(finished):
    values = [row["best@8"] for row in rows(finished)]
    facts, weights = best(finished)
    assert facts == {"step": values.index(max(values)), "measure": "best@8", "value": max(values)}
    assert 0 < facts["step"] < 6
    trained = load(str(finished / "model")).model.state_dict()
    assert any(not torch.equal(value, trained[name]) for name, value in weights.items())


def test_the_end_of_a_run_says_where_the_best_is(finished, capsys):
    facts = best(finished)[0]
    assert main(["train", "--resume", str(finished)]) == 0
    assert f", the best (best@8 {facts['value']:.3f}, step {facts['step']}) in {finished}/best; next: vpo eval" in (
        capsys.readouterr().out
    )
    assert main(["train", "--resume", str(finished), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["best"] == facts


def test_the_measures_are_those_of_vpo_eval(finished, tmp_path):
    config = EvalConfig(
        model=str(finished / "best"), split="validation", problems=4, pool=9, sampling={"seed": EVALUATED.seed}
    )
    comparison, counts = evaluate_into(tmp_path / "evaluated", config)
    row = rows(finished)[best(finished)[0]["step"]]
    measured = {
        each.metric.label: each.values[0].mean
        for each in comparison.rows
        if each.metric.budget == Budget.ANSWERS or each.metric.name == SET
    }
    shared = [name for name in row if name.partition("@")[0] + "@k" in (BEST, PASS) or name == SET]
    shared = [name for name in shared if name in measured]
    assert len(shared) >= 8
    assert {name: row[name] for name in shared} == pytest.approx({name: measured[name] for name in shared}, abs=1e-12)
    assert (row["parse_rate"], row["read_rate"]) == (counts.data()["in_form"], counts.data()["given"])


@pytest.mark.parametrize("changes", [{}, pytest.param({"prefill": True, "lora": 4}, marks=pytest.mark.slow)])
def test_the_training_is_the_same_with_and_without(changes, finished, tmp_path):
    """Random numbers, modes and forced tags of the training are not disturbed."""
    plain = replace(SMALL, learning_rate=3e-4, warmup_steps=0, **changes)
    train(plain, tmp_path / "plain")
    if changes:
        finished = tmp_path / "run"
        train(replace(EVALUATED, **changes), finished)
    assert_same(result(finished), result(tmp_path / "plain"))


@pytest.mark.slow
def test_kill_9_and_resume(finished, tmp_path):
    process = start(tmp_path, *ARGUMENTS, *OPTIONS, "--out", "run")
    wait_for_line(process, tmp_path / "run" / "evaluations.jsonl", 4)  # after step 3; there is a checkpoint of step 2
    process.kill()
    process.communicate()
    assert not Run(tmp_path / "run").finished
    assert resume(tmp_path / "run").finished
    assert_same(result(tmp_path / "run"), result(finished))
    assert_same_evaluations(tmp_path / "run", finished)


@pytest.mark.slow
@pytest.mark.parametrize("killed", [5, 1])
def test_a_kill_after_a_better_model_was_kept_costs_nothing(killed, finished, tmp_path, monkeypatch):
    """Between the evaluation of a step and its checkpoint; before the first checkpoint the run begins again."""
    from vpo.training.run_callback import RunCallback

    inner = RunCallback._evaluate

    def evaluate(self, step):
        inner(self, step)
        if step == killed:
            self.best.value = None  # whatever its value, the model of this step is kept, as if it were the best
            assert self.best.consider({"step": step, "best@8": 1.0})
            raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(RunCallback, "_evaluate", evaluate)
        with pytest.raises(SystemExit):
            train(EVALUATED, tmp_path / "run")
    assert best(tmp_path / "run")[0] == {"step": killed, "measure": "best@8", "value": 1.0}
    assert resume(tmp_path / "run").finished
    assert_same(result(tmp_path / "run"), result(finished))
    assert_same_evaluations(tmp_path / "run", finished)


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{"lora": 4, "eval_every": 2}, {"trainer": {"num_iterations": 2}, "eval_every": 3}])
def test_a_stopped_run_ends_with_the_same_evaluations(changes, tmp_path, monkeypatch):
    config = replace(EVALUATED, keep_best="set_reward", **changes)
    train(config, tmp_path / "finished")
    with monkeypatch.context() as patch:
        stop_after(patch, 3)
        assert not train(config, tmp_path / "run").finished
    assert resume(tmp_path / "run").finished
    assert_same(result(tmp_path / "run"), result(tmp_path / "finished"))
    assert_same_evaluations(tmp_path / "run", tmp_path / "finished")
    steps = [row["step"] for row in rows(tmp_path / "run")]
    assert steps == ([0, 2, 4, 6] if "lora" in changes else [0, 4, 6])  # where no rollouts wait for updates


def test_the_best_of_a_lora_run_is_its_adapter(tmp_path):
    model = save_tiny_model(tmp_path / "tiny")
    config = replace(EVALUATED, model=model, steps=2, max_tokens=8, lora=2, eval_pool=3, keep_best="set_reward")
    run = train(config, tmp_path / "run").run
    assert (run.best / "adapter_model.safetensors").is_file()
    assert not (run.best / "model.safetensors").exists()
    assert load(str(run.best)).model.num_parameters() == load(model).model.num_parameters()  # merged


def test_no_model_is_kept_where_none_is_wanted(tmp_path):
    run = train(replace(EVALUATED, steps=2, keep_best="none"), tmp_path / "run").run
    assert len(rows(run.folder)) == 3
    assert not run.best.exists()


def test_trackers_get_the_measures(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = train(replace(EVALUATED, steps=2, eval_every=2, report_to=["tensorboard"]), tmp_path / "run").run
    events = EventAccumulator(str(run.folder / "tensorboard")).Reload()
    shown = {event.step: event.value for event in events.Scalars("eval/best@1")}
    assert shown == pytest.approx({row["step"]: row["best@1"] for row in rows(run.folder)})
    assert [event.step for event in events.Scalars("train/loss")] == [1, 2]  # the logs of steps are complete
    assert [row["step"] for row in run.steps()] == [1, 2]


def test_runs_without_evaluations_write_none(tmp_path):
    folder = train_to_the_end(tmp_path / "run")
    assert not (folder / "evaluations.jsonl").exists()
    assert not (folder / "best").exists()


RAISING = """
from vpo.tasks.maze.task import MazeTask


class Sometimes(MazeTask):
    name = "sometimes"

    def score_all(self, problems, answers):
        if any("-424-" in problem.id for problem in problems):  # of the validation split
            raise ZeroDivisionError("no score today")
        return super().score_all(problems, answers)
"""


def test_a_scorer_that_raises_costs_the_evaluation_and_not_the_run(tmp_path):
    (tmp_path / "sometimes.py").write_text(RAISING)
    model = save_tiny_model(tmp_path / "tiny")
    config = replace(EVALUATED, task=str(tmp_path / "sometimes.py"), model=model, steps=1, max_tokens=8)
    with pytest.warns(UserWarning, match="no evaluation after step 0: task sometimes raised ZeroDivisionError: no sco"):
        run = train(replace(config, prompts_per_step=2, problems=2), tmp_path / "run").run
    assert not run.evaluations.exists()
    assert run.finished


def test_counts_of_rewards_are_those_of_the_training(tmp_path, monkeypatch):
    """A reward abstains on some answers; those of an evaluation are in its own row."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(FRAGILE)
    (tmp_path / "rewards.toml").write_text(FRAGILE_REWARDS)
    (tmp_path / "prompts.jsonl").write_text("".join(json.dumps({"prompt": f"Name {n}."}) + "\n" for n in range(12)))
    monkeypatch.setattr(PromptTask, "read", lambda self, text, answers: reading_of(text, [text] * answers))
    files = {"prompts": "prompts.jsonl", "rewards": "rewards.toml"}
    model = save_tiny_model(tmp_path / "tiny")
    plain = replace(
        SMALL, task="chat", task_settings=files, model=model, steps=2, max_tokens=8, problems=None, save_every=9
    )
    train(plain, tmp_path / "plain")
    train(replace(plain, eval_every=1, eval_split="test", eval_pool=24, keep_best="none"), tmp_path / "run")
    assert_same(result(tmp_path / "run"), result(tmp_path / "plain"))
    assert any(row["abstained/fragile"] for row in rows(tmp_path / "run"))
    assert rows(tmp_path / "run")[0]["unknown"] > 0


@pytest.mark.slow
def test_two_processes_sample_what_one_samples(finished, tmp_path):
    arguments = [*ARGUMENTS, *OPTIONS, "--steps", "2", "--save-every", "1", "--out", "run"]
    code, _, err = launch.run("vpo", "train", *arguments, cwd=tmp_path)
    assert code == 0, err
    assert err.count("step 0: held-out best@1") == 1
    assert rows(tmp_path / "run")[0] == rows(finished)[0]  # before the first step, from which on their rollouts differ
    assert [row["step"] for row in rows(tmp_path / "run")] == [0, 1, 2]
    assert best(tmp_path / "run")[0]["value"] == max(row["best@8"] for row in rows(tmp_path / "run"))
