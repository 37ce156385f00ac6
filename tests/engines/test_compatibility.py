"""Arguments that fit a method, and those that are refused."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("trl")


from tests.engines.letters import letters, own_reward
from vpo.engines.compatibility import check_one_reward
from vpo.engines.trl import check, grpo_config, reward_function
from vpo.methods import METHODS, get
from vpo.tasks.maze import MazeTask

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages


def test_the_config_fits_the_method(tmp_path):
    for name in METHODS:
        config = grpo_config(name, output_dir=str(tmp_path), num_generations=4, per_device_train_batch_size=8)
        whole = name in ("gdpo", "maxrl", "max_at_k", "vpo_marginal")
        assert config.scale_rewards == ("none" if whole or name == "dr_grpo" else "group")
        assert config.max_completion_length == 256 * get(name).answers
        assert (config.loss_type == "dr_grpo") == (name == "dr_grpo")
        assert not config.bf16
    assert grpo_config("vpo", output_dir=str(tmp_path), max_tokens=10).max_completion_length == 30


def test_a_method_with_an_advantage_for_each_answer_is_refused_with_what_to_do():
    check_one_reward(get("vpo_anchored", anchor=0.5), "X")
    message = "vpo_anchored has an advantage for each answer, and X has one for a completion: .* the setting anchor=0.9"
    with pytest.raises(ValueError, match=message):
        check_one_reward(get("vpo_anchored"), "X")


def config(name, tmp_path, **settings):
    settings = {"num_generations": 4, "per_device_train_batch_size": 8, **settings}
    return lambda: grpo_config(name, output_dir=str(tmp_path), **settings)


def test_a_config_that_does_not_fit_is_refused(tmp_path):
    cases = [
        (config("vpo", tmp_path, scale_rewards="none"), "scale_rewards must be 'group' for vpo, not 'none'"),
        (config("gdpo", tmp_path, scale_rewards="group"), "scale_rewards must be 'none' for gdpo, not 'group'"),
        (config("dr_grpo", tmp_path, loss_type="grpo"), "loss_type must be 'dr_grpo' for dr_grpo, not 'grpo'"),
        (
            config("maxrl", tmp_path, multi_objective_aggregation="normalize_then_sum"),
            "multi_objective_aggregation must be 'sum_then_normalize' for maxrl",
        ),
        (config("max_at_k", tmp_path, num_generations=2), "a group needs 3 or more rollouts for max_at_k, not 2"),
        (config(own_reward("gdpo", group=8), tmp_path), "num_generations must be 8, the group of the reward, not 4"),
    ]
    for call, message in cases:
        with pytest.raises(ValueError, match=message):
            call()


def test_a_batch_that_is_not_of_whole_groups_is_refused(tmp_path):
    """Over processes groups may be split, and are put together again; the batch of all must hold whole ones."""
    with pytest.raises(ValueError, match=r"generation_batch_size \(6\) must be divisible by num_generations \(4\)"):
        config("maxrl", tmp_path, per_device_train_batch_size=6)()
    split = SimpleNamespace(
        **{**vars(config("gdpo", tmp_path)()), "per_device_train_batch_size": 6, "generation_batch_size": 12}
    )
    check(own_reward("gdpo", group=4), split)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: reward_function(), "give a task or a score, and not both"),
        (lambda: reward_function(MazeTask(), score=letters), "give a task or a score, and not both"),
        (lambda: reward_function(MazeTask()), "problems must be given with a task"),
        (lambda: reward_function(score=letters), "objectives must be given with score"),
        (
            lambda: reward_function(None, "goal_conditioned", score=letters, objectives=list("abc")),
            "goal_conditioned states a weighting in each prompt: give a task",
        ),
        (lambda: own_reward("gdpo"), "gdpo looks at the whole group: give group"),
        (lambda: own_reward("max_at_k", group=2), "a group needs 3 or more rollouts for max_at_k, not 2"),
        (lambda: own_reward("grpo", answers=3), "grpo takes 1 answer per rollout, not 3"),
        (lambda: own_reward("grpo", target=[1, 0]), r"target must hold one weight for each of 3 objectives, not shape"),
        (lambda: own_reward("grpo", target=[3, -1, -1]), "target must not be negative"),
        (lambda: own_reward("grpo", target=[1, 1, 1]), "target must sum to 1"),
        (
            lambda: reward_function(None, "grpo", score=lambda answer, gold: [1.0], objectives=["a"])(["p"], ["x"]),
            "score needs 'gold', and the data set has the columns prompt",
        ),
        (
            lambda: reward_function(None, "grpo", score=lambda answer: {"a": 1.0}, objectives=["b"])(
                ["p"], ["<answer>x</answer>"]
            ),
            "score must return one number for each of b, not {'a': 1.0}",
        ),
        (
            lambda: reward_function(None, "grpo", score=lambda answer: [np.nan], objectives=["b"])(
                ["p"], ["<answer>x</answer>"]
            ),
            "score must return a finite number for 'b', not nan, of 'x'",
        ),
        (lambda: own_reward("vpoo"), "did you mean 'vpo'"),
        (
            lambda: own_reward("gdpo", group=4)(["p"] * 6, ["x"] * 6, problem=["one"] * 6),
            "gdpo needs whole groups of 4, and got 6 completions",
        ),
        (
            lambda: reward_function(MazeTask(), problems=[])(["p"], ["<answer_1>R</answer_1>"], problem=["x"]),
            "the data set's column problem must name one of the problems of the reward function, not 'x'",
        ),
        (
            lambda: reward_function(score=lambda answer: [1.0], objectives=["a", "b"])(
                ["p"], ["<answer_1>R</answer_1>"]
            ),
            r"score must return one number for each of a, b, not \[1.0\]",
        ),
        (
            lambda: reward_function(score=lambda answer: "ok", objectives=["a", "b"])(["p"], ["<answer_1></answer_1>"]),
            "score must return one number for each of a, b, not 'ok'",
        ),
        (lambda: reward_function(score=letters, objectives="abc"), "objectives must be a list of names, not 'abc'"),
        (lambda: reward_function(score=letters, objectives=["a", "a"]), "objectives must be different names, not a, a"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
