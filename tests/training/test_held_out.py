"""The problems that a run holds out, its settings for evaluations, and the best model on the disk."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from vpo.evaluation.pools import pool_of_rows
from vpo.tasks import get
from vpo.training.best import BestModel, prune, rewind
from vpo.training.config import TrainConfig
from vpo.training.evaluating import _at_budgets, eval_settings
from vpo.training.held_out import held_out_names, run_problems
from vpo.training.runs import Run
from vpo.training.verl_overrides import check_engine
from vpo.util.errors import InputError


@dataclass(frozen=True)
class Question:
    id: str
    text: str


class Questions:
    """As much of a task as is needed to choose problems."""

    name = "questions"
    validation = None

    def __init__(self, count=50):
        self.splits = {"train": [Question(f"train-{n}", f"? {n}") for n in range(count)]}
        self.splits["test"] = [Question(f"test-{n}", f"?! {n}") for n in range(30)]
        self.splits["all"] = [*self.splits["test"], *self.splits["train"]]

    def problems(self, split="test", *, count=None):
        return self.splits[split][:count]

    def question(self, problem):
        return [{"role": "user", "content": problem.text}]


def config(**settings):
    return TrainConfig(task="gsm8k", **{"eval_every": 5, "eval_split": "train", **settings})


def test_without_evaluations_all_problems_are_trained_on():
    problems = run_problems(Questions(), TrainConfig(task="gsm8k"))
    assert (len(problems.trained), len(problems.held_out)) == (50, 0)


def test_of_the_training_problems_a_fifth_is_held_out_and_not_trained_on():
    trained, held_out = run_problems(Questions(), config())
    assert (len(trained), len(held_out)) == (40, 10)
    assert not {each.id for each in trained} & {each.id for each in held_out}
    order = [each.id for each in Questions().problems("train")]
    assert [each.id for each in trained] == [name for name in order if name in {each.id for each in trained}]


def test_no_more_than_a_hundred_are_held_out_unless_the_run_says_so():
    assert len(run_problems(Questions(2000), config()).held_out) == 100
    assert len(run_problems(Questions(2000), config(eval_problems=300)).held_out) == 300


def test_the_same_problems_are_held_out_whatever_the_seed_the_order_and_how_many_are_trained_on():
    names = {each.id for each in run_problems(Questions(), config()).held_out}
    few = run_problems(Questions(), config(seed=7, problems=3))
    assert {each.id for each in few.held_out} == names
    assert len(few.trained) == 3
    shuffled = [f"train-{n}" for n in reversed(range(50))]
    assert held_out_names(shuffled, 10) == names
    assert held_out_names(shuffled, 5) < names
    assert names != {f"train-{n}" for n in range(10)}


def test_copies_of_held_out_problems_are_not_trained_on():
    task = Questions()
    task.splits["train"] += [Question(f"again-{each.id}", each.text) for each in task.splits["train"]]
    trained, held_out = run_problems(task, config(eval_problems=20))
    assert len(held_out) == 20
    assert not {each.text for each in trained} & {each.text for each in held_out}
    assert len(trained) == 100 - 2 * len({each.text for each in held_out})
    task.splits["copy"] = [Question(f"copy-{n}", each.text) for n, each in enumerate(task.splits["train"][:3])]
    with pytest.raises(InputError, match="eval_split 'copy' has problem 'copy-0', which is trained on"):
        run_problems(task, config(eval_split="copy"))
    task.splits["train"] = [Question(f"same-{n}", "?") for n in range(9)]
    with pytest.raises(InputError, match="split 'train' has nothing to train on but copies of the 1 problems held out"):
        run_problems(task, config())


def test_problems_of_another_split_are_its_first_ones():
    trained, held_out = run_problems(Questions(), config(eval_split="test", eval_problems=4))
    assert [each.id for each in held_out] == ["test-0", "test-1", "test-2", "test-3"]
    assert len(trained) == 50
    assert len(run_problems(Questions(), config(eval_split="test")).held_out) == 30


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"eval_split": "all"}, "eval_split 'all' has problem 'train-0', which is trained on"),
        ({"eval_problems": 50}, "eval_problems must be less than the 50 problems of split 'train'"),
        (
            {"problems": 41},
            "problems must be at most 40, the 50 of split 'train' less 10 held out and their copies, not 41",
        ),
    ],
)
def test_problems_that_would_be_trained_on_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        run_problems(Questions(), config(**settings))


def test_the_settings_of_an_evaluation_fit_the_task_and_the_method():
    maze = get("maze", size=7)
    chosen = eval_settings(config(eval_split=None), maze, 3)
    assert chosen == {
        "eval_split": "validation",
        "eval_pool": 9,
        "eval_temperature": 0.7,
        "keep_best": "best@8",
    }
    assert eval_settings(config(eval_split=None), Questions(), 1)["eval_split"] == "train"
    assert eval_settings(config(eval_pool=3), maze, 3)["keep_best"] == "best@3"
    assert eval_settings(config(eval_temperature=0.0), maze, 3)["eval_temperature"] == 0
    assert eval_settings(TrainConfig(task="maze"), maze, 3) == {}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"eval_pool": 8}, "eval_pool must be a multiple of the 3 answers of a generation, not 8"),
        ({"keep_best": "best@10"}, "keep_best must be at a K of at most eval_pool, 9, not 'best@10'"),
        ({"keep_best": "reward"}, "keep_best must be best@K, pass@K, set, set_reward, first or none, not 'reward'"),
        ({"keep_best": "best@0"}, "keep_best must be best@K"),
    ],
)
def test_settings_that_cannot_be_measured_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        eval_settings(config(**settings), get("maze", size=7), 3)


@pytest.mark.parametrize("name", ["eval_problems", "eval_pool"])
def test_settings_of_evaluations_need_evaluations(name):
    with pytest.raises(InputError, match=f"{name} needs eval_every: without it nothing is evaluated"):
        TrainConfig(task="maze", **{name: 3})


def test_verl_has_an_evaluation_of_its_own():
    with pytest.raises(InputError, match=r"eval_every is not a setting of verl: verl validates with trainer.test_freq"):
        check_engine(TrainConfig(task="maze", engine="verl", eval_every=5))


def save(folder, step):
    (folder / "weights").write_text(f"of step {step}")


def checkpoint(run, step, best):
    """A complete checkpoint, as far as it refers to the best model."""
    folder = run.checkpoint(step)
    folder.mkdir(parents=True)
    (folder / "vpo_state.json").write_text(json.dumps({"unknown_batches": 0, "best": best.data()}))
    run.complete_checkpoint(step, keep=2)
    prune(run)


@pytest.fixture
def run(tmp_path):
    """Best after the steps 0, 3 and 5 of six, with checkpoints of the steps 2 and 4."""
    run = Run(tmp_path)
    run.checkpoints.mkdir()
    best = BestModel(run, "best@8", save)
    for step, value in enumerate((0.5, 0.4, 0.5, 0.7, 0.6, 0.8)):
        assert best.consider({"step": step, "best@8": value}) == (step in (0, 3, 5))
        if step in (2, 4):
            checkpoint(run, step, best)
    return run


def test_the_best_models_of_checkpoints_are_kept(run):
    assert (run.best / "weights").read_text() == "of step 5"
    assert sorted(path.name for path in run.checkpoints.glob("best-*")) == ["best-0", "best-3"]


@pytest.mark.parametrize(("step", "expected"), [(4, 3), (2, 0)])
def test_a_run_that_continues_has_the_best_model_of_its_checkpoint(run, step, expected):
    for number in range(step + 1, 6):
        shutil.rmtree(run.checkpoint(number), ignore_errors=True)  # as `Run.rewind` does
    rewind(run, run.checkpoint(step))
    assert (run.best / "weights").read_text() == f"of step {expected}"
    assert json.loads((run.best / "best.json").read_text())["step"] == expected


def test_a_run_that_begins_again_has_none(run):
    (run.folder / ".best.half").mkdir()
    for number in (2, 4):
        shutil.rmtree(run.checkpoint(number))
    rewind(run, None)
    assert not run.best.exists()
    assert not list(run.folder.glob("**/*best*"))


def test_a_kill_between_two_names_costs_nothing(run):
    run.best.rename(run.folder / "lost")  # the one of step 5; that of step 3 has its new name
    rewind(run, run.checkpoint(4))
    assert (run.best / "weights").read_text() == "of step 3"


def test_a_best_model_that_is_gone_is_a_warning(run):
    shutil.rmtree(run.checkpoints / "best-3")
    with pytest.warns(UserWarning, match="the best model, that of step 3, is missing or damaged"):
        rewind(run, run.checkpoint(4))


def test_a_finished_run_keeps_the_best_model_alone(run):
    run.model.mkdir()
    prune(run)
    assert not list(run.checkpoints.glob("best-*"))
    assert run.best.is_dir()


def test_a_row_without_the_measure_says_nothing_of_the_best(run):
    with pytest.warns(UserWarning, match="step 1: best@8 is not known, since scores are missing: no model is kept"):
        assert not BestModel(run, "best@8", save).consider({"step": 1, "best@1": 1.0})


def test_replaced_models_that_no_checkpoint_needs_are_removed(tmp_path):
    run = Run(tmp_path)
    run.checkpoints.mkdir()
    best = BestModel(run, "best@8", save)
    for step in range(10):
        assert best.consider({"step": step, "best@8": step / 10})
    assert (run.best / "weights").read_text() == "of step 9"
    assert not list(run.checkpoints.glob("best-*"))


def test_problems_with_all_their_answers_are_measured_where_scores_are_unknown():
    def rows(problem, count):
        scores = {"x": 0.0}, {"x": 1.0}
        return [
            {"problem": problem, "generation": str(n), "position": 1, "answers": 1, "scores": scores[n == 0]}
            for n in range(count)
        ]

    settings = config(eval_pool=8, keep_best="best@8", target={"x": 1.0})
    pool = pool_of_rows(Path("pool"), enumerate([*rows("a", 8), *rows("b", 7)], start=1))
    measured = _at_budgets(pool, settings)
    assert (measured["best@1"], measured["best@8"]) == (1 / 8, 1.0)
    few = pool_of_rows(Path("pool"), enumerate([*rows("a", 7), *rows("b", 6)], start=1))
    assert "best@8" not in _at_budgets(few, settings)
