"""What is worth watching of a batch."""

import numpy as np
import pytest

from tests.engines.plugged import ANSWERS, OBJECTIVES, SOLUTIONS, completions, reward_by, score
from vpo.core.credit import marginal_credit
from vpo.engines.metrics import Mean, ScoredBatch, metric_names, metrics
from vpo.engines.reward import reward_function
from vpo.methods import get


def vectors(*rows):
    return np.asarray(rows, dtype=float)


def test_groups_of_different_size_by_hand():
    # Two rollouts of one answer each are known in the first group, one in the second, none in the third.
    scored = [vectors([1, 0]), vectors([0, 0.5]), vectors([0.25, 1]), None, None, None]
    strict = [[True], [False], [False], [True], [True], [False]]
    batch = ScoredBatch([["a"], ["b"], [None], ["d"], ["e"], ["f"]], strict, scored, 
                   [0.5, 0.25, 0.625, None, None, None], [[0, 1], [2, 3], [4, 5]])  # fmt: skip
    means = metrics(batch, ["first", "second"], lambda dimensions: np.full(dimensions, 1 / dimensions))
    assert means["diversity"] == Mean(1.5 + 0.0, 2)  # |1 − 0| + |0 − 0.5|; one answer is as far as nothing from itself
    assert means["target"] == Mean(0.5 + 0.25 + 0.625, 3)
    assert means["objective/first"] == Mean(1.25, 3)
    assert means["objective/second"] == Mean(1.5, 3)
    assert means["parse_rate"] == Mean(3, 6)
    assert means["read_rate"] == Mean(5, 6)
    assert means["unknown"] == Mean(3, 0)
    assert means["groups_without_spread"] == Mean(1, 2)


def test_problems_of_different_objectives_are_measured_each_in_its_own():
    batch = ScoredBatch([["a", "b"], ["c", "d"]], [[True] * 2] * 2,
                   [vectors([1, 0], [0, 1]), vectors([1, 0, 0], [1, 0, 0])], [0.75, 0.5], [[0], [1]])  # fmt: skip
    means = metrics(batch, [], lambda dimensions: np.full(dimensions, 1 / dimensions))
    assert means["diversity"] == Mean(2.0, 2)
    np.testing.assert_allclose(means["target"].value, (0.5 + 1 / 3) / 2)
    # E max(w, 1 − w) is 3/4, and the mean of a weight of three 1/3.
    np.testing.assert_allclose(means["set_reward"].value, (3 / 4 + 1 / 3) / 2, atol=2e-3)


def test_metrics_have_the_names_that_were_promised():
    logged = {}
    reward_by("vpo")(["p"], ["<answer_1>4</answer_1>"], log_metric=logged.__setitem__, solution=["4"])
    assert set(logged) == {f"vpo/{name}" for name in metric_names(OBJECTIVES, get("vpo"))}
    unknown = {}
    reward = reward_function(score=lambda answer: None, objectives=OBJECTIVES)
    reward(["p"], ["<answer_1>4</answer_1>"], log_metric=unknown.__setitem__)
    assert set(unknown) < set(logged)
    assert score("?", "4") is None


def test_the_metrics_of_a_method_are_means_over_its_groups():
    reward = reward_by("vpo_marginal")
    logged = {}
    prompts = ["first"] * 4 + ["second"] * 4
    texts = completions("first", 1) + completions("second", 1)
    solutions = [SOLUTIONS[prompt] for prompt in prompts]
    reward(prompts, texts, log_metric=logged.__setitem__, solution=solutions)
    assert set(logged) == {f"vpo/{name}" for name in metric_names(OBJECTIVES, reward.method)}
    credits = []
    for prompt in ("first", "second"):
        rewards = np.array([[score(answers[0], SOLUTIONS[prompt])] for answers in ANSWERS[prompt]])
        credits.append(marginal_credit(rewards, sets=2))
    assert logged["vpo/credit"] == pytest.approx(np.mean(credits), abs=1e-6)
    assert logged["vpo/zero_credit"] == np.mean(np.asarray(credits) == 0)
    assert 0 < logged["vpo/from_other_sets"] < 1
