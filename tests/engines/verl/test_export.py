"""What is written for verl, and the reward function that reads it."""

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

pytest.importorskip("pyarrow")

import pyarrow
from pyarrow import parquet

from tests.engines.verl.completions import BY_PLUGIN, GROUP, PROBLEMS, SUPPORTED, completions, exported, scored
from vpo.cli.main import main
from vpo.engines.prompts import task_rows
from vpo.engines.reward import reward_function
from vpo.engines.verl import reward as function
from vpo.engines.verl.export import check_parquet, read_export
from vpo.util.errors import InputError


def rows_of(path):
    return parquet.read_table(path).to_pylist()


def test_rows_are_in_the_schema_of_verl_and_ask_for_all_answers(tmp_path):
    export = exported(tmp_path / "out", test=True)
    check_parquet(tmp_path / "out/train.parquet")
    check_parquet(tmp_path / "out/test.parquet")
    rows = rows_of(tmp_path / "out/train.parquet")
    task = export.get_task()
    problems = task.problems("train", count=PROBLEMS)
    assert [row["prompt"] for row in rows] == [task.ask(problem, 3) for problem in problems]
    assert rows[1] == {
        "prompt": task.ask(problems[1], 3),
        "data_source": "vpo/maze",
        "ability": "maze",
        "reward_model": {"style": "rule", "ground_truth": problems[1].id},
        "extra_info": {"index": 1, "split": "train", "problem": problems[1].id, "deployed": False},
    }
    assert [row["extra_info"]["deployed"] for row in rows_of(tmp_path / "out/test.parquet")] == [True, True]
    assert read_export(tmp_path / "out") == export


def test_the_stated_weighting_is_random_in_training_and_w_star_in_tests(tmp_path):
    export = exported(tmp_path / "out", "goal_conditioned", test=True)
    rows = rows_of(tmp_path / "out/train.parquet")
    assert [row["prompt"] for row in rows] == [row["prompt"] for row in task_rows(export.reward("train"))]
    task = export.get_task()
    stated = [task.ask(problem, 1, [0.25] * 4) for problem in task.problems("test", count=2)]
    assert [row["prompt"] for row in rows_of(tmp_path / "out/test.parquet")] == stated
    # A prompt that states w* is rewarded under w*; one that states a random weighting, under that.
    gold = task.gold(task.problems("test", count=2)[0])
    extra = rows_of(tmp_path / "out/test.parquet")[0]["extra_info"]
    info = info_of(tmp_path / "out", f"<answer>{gold}</answer>", extra)
    assert info["score"] == pytest.approx(info["target"], abs=1e-6)
    assert info_of(tmp_path / "out", f"<answer>{gold}</answer>", {**extra, "deployed": False})["score"] != info["score"]


def info_of(folder, text, extra):
    return function.compute_score("vpo/maze", text, "", extra, folder=str(folder))


@pytest.mark.parametrize("method", SUPPORTED)
def test_the_score_is_what_the_reward_function_of_any_trainer_returns(method, tmp_path):
    export = exported(tmp_path / "out", method, **SUPPORTED[method])
    some = completions(export)
    task = export.get_task()
    reward = reward_function(task, export.method, problems=task.problems("train", count=PROBLEMS), group=GROUP, seed=5)
    rewards = reward([""] * len(some), [text for _, text in some], problem=[name for name, _ in some])
    info = [info_of(tmp_path / "out", text, {"problem": name, "split": "train"}) for name, text in some]
    np.testing.assert_allclose([each["score"] for each in info], rewards, atol=1e-7)
    assert len(set(rewards)) > 3
    for each, (vectors, exists) in zip(info, scored(export, some), strict=True):
        read, mask, _ = function.read_vectors(each["vectors"])
        np.testing.assert_array_equal(read, vectors)
        assert mask == exists
        assert each["objective/gold"] == pytest.approx(vectors[:, 1].mean())
        assert all(type(value) in (float, str) for value in each.values())
    assert len({tuple(each) for each in info}) == 1  # verl needs the same keys of all


@pytest.mark.parametrize("method", [name for name in BY_PLUGIN if name not in ("vpo_anchored", "vpo_marginal")])
def test_the_score_that_the_plugin_does_without_is_w_star(method, tmp_path):
    export = exported(tmp_path / "out", method)
    for name, text in completions(export):
        info = info_of(tmp_path / "out", text, {"problem": name, "split": "train"})
        assert info["score"] == pytest.approx(info["target"], abs=1e-6)


def test_many_threads_make_one_scorer(tmp_path):
    some = completions(exported(tmp_path / "out"))
    before = len(function._REWARDS)
    with ThreadPoolExecutor(8) as pool:
        info = list(
            pool.map(lambda each: info_of(tmp_path / "out", each[1], {"problem": each[0], "split": "train"}), some * 4)
        )
    assert len(function._REWARDS) == before + 1
    assert info[: len(some)] == info[len(some) : 2 * len(some)]


@pytest.mark.parametrize("stock", [False, True])
def test_an_unknown_reward_is_passed_to_the_plugin_and_raised_otherwise(stock, tmp_path, monkeypatch):
    export = exported(tmp_path / "out", stock=stock)
    monkeypatch.setattr(type(export.get_task()), "score", lambda self, problem, answer: None)
    (name, text), *_ = completions(export)
    if stock:
        with pytest.raises(function.UnknownRewardError, match="is not known"):
            info_of(tmp_path / "out", text, {"problem": name, "split": "train"})
    else:
        info = info_of(tmp_path / "out", text, {"problem": name, "split": "train"})
        texts = {"problem": name, "vectors": "null", "cut_vectors": ""}
        assert info == {"score": 0, "known": 0, "parse_rate": 1, "read_rate": 1, **texts}


@pytest.mark.parametrize("stock", [False, True])
def test_under_a_stock_trainer_the_first_completions_of_a_process_warn(stock, tmp_path, recwarn):
    export = exported(tmp_path / "out", stock=stock)
    (name, _), *_ = completions(export)
    for _ in range(2 * function.FIRST):
        info_of(tmp_path / "out", "Sure, here it is!", {"problem": name, "split": "train"})
    messages = [str(each.message) for each in recwarn.list]
    assert len(messages) == stock  # else the plugin's trainer warns
    for message in messages:
        assert message.startswith("none of the answers of the first batch could be read")
        assert message.endswith("one of the completions: Sure, here it is!")


def test_wrong_columns_are_one_line(tmp_path):
    exported(tmp_path / "out")
    good = rows_of(tmp_path / "out/train.parquet")
    path = tmp_path / "bad.parquet"

    def message(rows):
        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
        with pytest.raises(InputError) as caught:
            check_parquet(path)
        return str(caught.value)

    without = [{name: value for name, value in row.items() if name != "data_source"} for row in good]
    assert "column data_source is missing; write the file with vpo export verl" in message(without)
    other = [{**row, "extra_info": {"index": 1}} for row in good]
    assert "field split of column extra_info is missing" in message(other)
    assert "field ground_truth of column reward_model" in message([{**row, "reward_model": "x"} for row in good])
    assert "prompt must hold lists of chat messages, not string" in message([{**row, "prompt": "x"} for row in good])
    path.write_text("nothing")
    with pytest.raises(InputError, match="the file is not Parquet"):
        check_parquet(path)
    with pytest.raises(InputError, match="no such file of prompts"):
        check_parquet(tmp_path / "nowhere.parquet")


def test_the_command_writes_the_folder_and_says_what_to_give(tmp_path, capsys):
    out = str(tmp_path / "out")
    arguments = ["export", "verl", "maze", "--set", "size=7", "--problems", "2", "--out", out, "--method", "dr_grpo"]
    assert main([*arguments, "--test-split", "test", "--test-problems", "1", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["rows"] == {"train.parquet": 2, "test.parquet": 1}
    assert "algorithm.norm_adv_by_std_in_grpo=false" in data["settings"]
    assert "actor_rollout_ref.actor.loss_scale_factor=256" in data["settings"]
    assert f"data.val_files={out}/test.parquet" in data["settings"]
    assert "trainer.v1.trainer_mode=vpo" in data["settings"]
    assert main(arguments) == 2
    assert "exists: choose another folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--method", "gdpo", "--stock"], "gdpo looks at the rewards of a whole group, and verl calls"),
        (["--method", "random_weighting", "--stock"], "random_weighting draws weightings for each step"),
        (["--method", "vpo_anchored", "--stock"], "vpo_anchored has an advantage for each answer"),
        (["--method-set", "draws=100", "--stock"], "vpo draws weightings for each step"),
        (["--test-problems", "3"], "test_problems needs test_split"),
        (["--test-split", "train"], "test_split must differ from split, and both are 'train'"),
        (["--split", "nowhere"], "no split 'nowhere' in maze"),
        (["--target", "silver=1"], "target names 'silver'"),
        (["--method", "max_at_k", "--group", "2"], "a group needs 3 or more rollouts"),
    ],
)
def test_what_cannot_be_exported_is_one_line_and_leaves_nothing(options, message, tmp_path, capsys):
    assert main(["export", "verl", "maze", "--problems", "2", "--out", str(tmp_path / "out"), *options]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())
