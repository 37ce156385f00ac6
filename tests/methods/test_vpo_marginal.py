"""Marginal credit as a method: hand-worked advantages, one answer, K, and what is refused."""

from math import sqrt

import numpy as np
import pytest

from vpo import advantages
from vpo.core.credit import marginal_credit
from vpo.methods import Group, get


def test_vpo_marginal_by_hand():
    # D = 1, so w = 1. Two answers in each of three sets; the best of the sets are 4, 2 and 1 tenths.
    sets = np.array([[[[0.4], [0.1]], [[0.2], [0.2]], [[0.1], [0.0]]]])
    # K = 2. Answer 1 of set 1 adds 0.2 over {set 2, its sibling} and 0.3 over {set 3, its sibling}: 0.25 on average.
    # The answers of set 2 are copies of each other, and those of set 3 are below every other set: they add 0.
    method = get("vpo_marginal", answers=2, sets=2)
    # At position 1 the credits are 0.25, 0, 0: their mean is 1/12, their standard deviation 0.25 / √3.
    deviation = 0.25 / sqrt(3) + 1e-4
    expected = [[(0.25 - 0.25 / 3) / deviation, 0], [-0.25 / 3 / deviation, 0], [-0.25 / 3 / deviation, 0]]
    np.testing.assert_allclose(advantages(method, sets), [expected], atol=1e-6)
    # Anchored, position 1 has the z-score of w*·r_1, as GRPO has, and position 2 that of the credit.
    anchored = advantages(get("vpo_marginal", answers=2, sets=2, anchored=True), sets)
    np.testing.assert_allclose(anchored[..., 0], advantages("grpo", sets[:, :, :1]), atol=1e-6)
    np.testing.assert_array_equal(anchored[..., 1], 0)


def test_vpo_marginal_with_one_answer_has_one_advantage():
    rewards = np.random.default_rng(3).random((2, 6, 1, 3))
    result = advantages(get("vpo_marginal", answers=1, sets=3), rewards)
    assert result.shape == (2, 6)
    for group, row in zip(rewards, result, strict=True):
        credit = marginal_credit(group, sets=3)[:, 0]
        np.testing.assert_allclose(row, (credit - credit.mean()) / (credit.std(ddof=1) + 1e-4), atol=1e-4)


def test_vpo_marginal_takes_half_of_the_known_rollouts():
    """K is half of the group, at least 2 and at most the rollouts whose rewards are known."""
    rewards = np.random.default_rng(4).random((1, 8, 3, 2))
    four = advantages(get("vpo_marginal", sets=4), rewards)
    np.testing.assert_array_equal(advantages("vpo_marginal", rewards), four)
    valid = np.ones((1, 8), dtype=bool)
    valid[0, 3:] = False
    expected = advantages(get("vpo_marginal", sets=2), rewards[:, :3])
    np.testing.assert_allclose(advantages("vpo_marginal", rewards, valid=valid)[:, :3], expected)
    np.testing.assert_allclose(
        advantages(get("vpo_marginal", sets=4), rewards, valid=valid)[:, :3],
        advantages(get("vpo_marginal", sets=3), rewards[:, :3]),
    )


def test_vpo_marginal_metrics_by_hand():
    # D = 1. The credits are those of the first test: 0.25 and 0 for set 1, 0 for all others; one answer is missing.
    rewards = np.array([[[0.4], [0.1]], [[0.2], [0.2]], [[0.1], [0.0]]])
    mask = np.array([[True, True], [True, True], [True, False]])
    group = Group(rewards, mask, np.ones(1), (0, 0, 0))
    method = get("vpo_marginal", answers=2, sets=2)
    # One set is worth (0.4 + 0.2 + 0.1) / 3, the best of two (0.4 + 0.4 + 0.2) / 3.
    expected = {"credit": 0.25 / 5, "zero_credit": 4 / 5, "from_other_sets": 1 - 0.7 / 1.0}
    assert method.metrics(method.rounded_rewards(group), group) == pytest.approx(expected)
    assert tuple(expected) == method.metric_names
    anchored = get("vpo_marginal", answers=2, sets=2, anchored=True)
    assert anchored.metrics(anchored.rounded_rewards(group), group)["zero_credit"] == 1  # of the second answers
    single = get("vpo_marginal", answers=1, sets=2)
    alone = Group(rewards[:, :1], mask[:, :1], np.ones(1), (0, 0, 0))
    # 0.4 adds 0.2 or 0.3, 0.2 adds 0 or 0.1, 0.1 nothing.
    assert single.metrics(single.rounded_rewards(alone), alone)["credit"] == pytest.approx((0.25 + 0.05) / 3)
    nothing = Group(np.zeros((3, 2, 1)), np.zeros((3, 2), dtype=bool), np.ones(1), (0, 0, 0))
    assert method.metrics(method.rounded_rewards(nothing), nothing) == {
        "credit": 0.0, "zero_credit": 1.0, "from_other_sets": 0.0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: get("vpo_marginal", sets=0), "sets must be 1 or more, not 0"),
        (lambda: get("vpo_marginal", answers=1, anchored=True), "anchored needs 2 or more answers"),
        (
            lambda: get("vpo_marginal", sets=5).check_group_size(4),
            "sets must be at most the 4 rollouts of a group, not 5",
        ),
    ],
)
def test_vpo_marginal_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()
