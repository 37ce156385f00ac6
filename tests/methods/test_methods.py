"""Each method's advantages on a hand-worked example, the arithmetic in a comment."""

import warnings
from math import sqrt

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests import oracles
from vpo import advantages, dirichlet, set_reward
from vpo.methods import Group, draw_weighting, get

EPS = 1e-4

# One problem, four rollouts of one answer, two objectives. Under w* = (1/2, 1/2): 1, 1/2, 1/2, 0.
SINGLE = np.array([[[[1.0, 1.0]], [[1.0, 0.0]], [[0.0, 1.0]], [[0.0, 0.0]]]])
# One problem, three rollouts of two answers: two specialists, the same one twice, and one that does half of both.
SETS = np.array([[[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]], [[0.5, 0.5], [0.0, 0.0]]]])


def test_grpo():
    # Mean 1/2; sample variance (1/4 + 0 + 0 + 1/4) / 3 = 1/6.
    std = sqrt(1 / 6)
    expected = [0.5 / (std + EPS), 0, 0, -0.5 / (std + EPS)]
    np.testing.assert_allclose(advantages("grpo", SINGLE), [expected], atol=1e-7)


def test_grpo_under_a_target():
    # w* = (1, 0): 1, 1, 0, 0. Mean 1/2; sample variance 4 · 1/4 / 3 = 1/3.
    step = 0.5 / (sqrt(1 / 3) + EPS)
    expected = [[step, step, -step, -step]]
    np.testing.assert_allclose(advantages("grpo", SINGLE, target=[1, 0]), expected, atol=1e-7)
    np.testing.assert_allclose(advantages("grpo", SINGLE, target=[[1, 0]]), expected, atol=1e-7)


def test_dr_grpo():
    np.testing.assert_allclose(advantages("dr_grpo", SINGLE), [[0.5, 0, 0, -0.5]])


def test_maxrl():
    # (x − 1/2) / (1/2).
    np.testing.assert_allclose(advantages("maxrl", SINGLE), [[1, 0, 0, -1]])


def test_maxrl_is_zero_where_all_rewards_are_zero():
    assert advantages("maxrl", np.zeros((1, 4, 1, 2))).tolist() == [[0, 0, 0, 0]]
    assert advantages("maxrl", -SINGLE).tolist() == [[0, 0, 0, 0]]


def test_gdpo():
    # Objective 1 is 1, 1, 0, 0 and objective 2 is 1, 0, 1, 0: z = ±z0, z0 = (1/2) / (√(1/3) + ε).
    # Half of each: z0, 0, 0, −z0. Their sample std over the batch is √(2 z0² / 3).
    z0 = 0.5 / (sqrt(1 / 3) + EPS)
    scale = sqrt(2 * z0**2 / 3) + EPS
    np.testing.assert_allclose(advantages("gdpo", SINGLE), [[z0 / scale, 0, 0, -z0 / scale]], atol=1e-12)


def test_gdpo_divides_by_the_spread_of_the_whole_batch():
    # A second problem whose rewards are all alike adds four zeros: sample std √(2 z0² / 7).
    z0 = 0.5 / (sqrt(1 / 3) + EPS)
    scale = sqrt(2 * z0**2 / 7) + EPS
    batch = np.concatenate([SINGLE, np.ones_like(SINGLE)])
    np.testing.assert_allclose(advantages("gdpo", batch), [[z0 / scale, 0, 0, -z0 / scale], [0, 0, 0, 0]], atol=1e-12)


def test_gdpo_keeps_objectives_apart_that_grpo_adds_up():
    # Objective 2 varies a hundredth as much: to grpo (1, 0) is nearly as good as both, to gdpo half as good.
    rewards = SINGLE * [1.0, 0.01]
    both, one = advantages("grpo", rewards)[0, :2]
    assert one > 0.95 * both
    both, one = advantages("gdpo", rewards)[0, :2]
    assert one == pytest.approx(0, abs=0.02 * both)


def test_max_at_k():
    # Sorted upward x = 0, 1/2, 1/2, 1; G = 4, k = 2, C(4, 2) = 6 pairs.
    # s_1 = [C(0,1)·0 + C(0,0)·1/2 + C(1,0)·1/2 + C(2,0)·1] / 6 = 2 / 6
    # s_2 = [C(1,1)·1/2 + C(1,0)·1/2 + C(2,0)·1] / 6 = 2 / 6
    # s_3 = [C(2,1)·1/2 + C(2,0)·1] / 6 = 2 / 6
    # s_4 = C(3,1)·1 / 6 = 3 / 6. Mean 9/24: −1/24, −1/24, −1/24, 3/24.
    np.testing.assert_allclose(advantages("max_at_k", SINGLE), [[3 / 24, -1 / 24, -1 / 24, -1 / 24]], atol=1e-12)


@given(st.lists(st.sampled_from([0.0, 0.2, 0.5, 0.7, 1.0]), min_size=3, max_size=7), st.data())
def test_max_at_k_against_all_subsets(rewards, data):
    rewards = np.asarray(rewards, dtype=np.float32).astype(np.float64)
    k = data.draw(st.integers(2, len(rewards) - 1))
    result = advantages(get("max_at_k", k=k), rewards.reshape(1, -1, 1, 1))
    np.testing.assert_allclose(result[0], oracles.max_at_k_weights(rewards, k), atol=1e-12)


def test_max_at_k_is_zero_where_all_rewards_are_the_same():
    for reward in np.random.default_rng(0).random(200):  # the sums of some differ by rounding
        assert not advantages("max_at_k", np.full((1, 8, 1, 1), reward)).any()


def test_max_at_k_is_the_gradient_of_the_expected_best():
    """E[Σ_g A_g · ∇log π(y_g)] = (1 − k/G) ∇E[max of k]: checked exactly on a policy with one parameter.

    π picks reward 1 with probability p, else 0. E[max of 2] = 1 − (1−p)², so its derivative is 2 (1−p).
    """
    p, rollouts, k = 0.3, 4, 2
    total = 0.0
    for outcome in np.ndindex(*(2,) * rollouts):
        probability = np.prod([p if x else 1 - p for x in outcome])
        gradients = np.array([1 / p if x else -1 / (1 - p) for x in outcome])  # d log π / dp
        result = advantages(get("max_at_k", k=k), np.reshape(outcome, (1, rollouts, 1, 1)))[0]
        total += probability * (result * gradients).sum()
    assert total == pytest.approx((1 - k / rollouts) * 2 * (1 - p))


def test_random_weighting():
    # w = (w1, 1−w1) drawn for (seed, step, problem): rewards 1, w1, 1−w1, 0.
    w = dirichlet(2, size=1, seed=(5, 9, 0))[0]
    rewards = np.float32([1, w[0], w[1], 0]).astype(float)
    expected = (rewards - rewards.mean()) / (rewards.std(ddof=1) + EPS)
    np.testing.assert_allclose(advantages("random_weighting", SINGLE, seed=5, step=9), [expected], atol=1e-7)


def test_random_weightings_differ_by_seed_step_and_problem_only():
    batch = np.concatenate([SINGLE, SINGLE])
    result = advantages("random_weighting", batch, seed=1, step=2)
    assert not np.allclose(result[0], result[1])
    assert not np.allclose(result, advantages("random_weighting", batch, seed=2, step=2))
    assert not np.allclose(result, advantages("random_weighting", batch, seed=1, step=3))
    advantages("random_weighting", batch, seed=77)
    assert (result == advantages("random_weighting", batch, seed=1, step=2)).all()
    assert (result[:1] == advantages("random_weighting", SINGLE, seed=1, step=2)).all()


def test_random_weightings_follow_the_concentration():
    # Nearly all weight on the second objective: rollouts 1 and 3 are the good ones.
    result = advantages(get("random_weighting", concentration=(1e-3, 100.0)), SINGLE)
    assert result[0, 2] > 0.8 > -0.8 > result[0, 1]


def test_named_problems_draw_the_same_wherever_they_stand():
    batch = np.concatenate([SINGLE, SINGLE[:, ::-1]])
    names = ["maze-3", "maze-7"]
    result = advantages("random_weighting", batch, problems=names)
    np.testing.assert_array_equal(advantages("random_weighting", batch[::-1], problems=names[::-1]), result[::-1])
    np.testing.assert_array_equal(advantages("random_weighting", batch[1:], problems=names[1:]), result[1:])


def test_goal_conditioned_uses_the_weighting_that_goes_into_the_prompt():
    w = draw_weighting(2, key=(5, 9, 0))
    expected = advantages("grpo", SINGLE, target=w)
    np.testing.assert_allclose(advantages("goal_conditioned", SINGLE, seed=5, step=9), expected, atol=1e-7)


def test_multi_rlvr():
    # Sums under (1/2, 1/2), a copy once: 1/2 + 1/2 = 1, 1/2, 1/2 + 0. Mean 2/3; deviations 1/3, −1/6, −1/6;
    # sample variance (4/36 + 1/36 + 1/36) / 2 = 1/12.
    std = sqrt(1 / 12)
    expected = [1 / 3 / (std + EPS), -1 / 6 / (std + EPS), -1 / 6 / (std + EPS)]
    np.testing.assert_allclose(advantages("multi_rlvr", SETS), [expected], atol=1e-6)


def test_multi_rlvr_that_counts_copies():
    # Sums under (1/2, 1/2): 1/2 + 1/2 = 1, 1/2 + 1/2 = 1, 1/2 + 0. Mean 5/6; deviations 1/6, 1/6, −1/3;
    # sample variance (1/36 + 1/36 + 4/36) / 2 = 1/12.
    std = sqrt(1 / 12)
    expected = [1 / 6 / (std + EPS), 1 / 6 / (std + EPS), -1 / 3 / (std + EPS)]
    method = get("multi_rlvr", count_copies=True)
    np.testing.assert_allclose(advantages(method, SETS), [expected], atol=1e-6)
    np.testing.assert_allclose(advantages("multi_rlvr", SETS, copies=np.zeros((1, 3, 2), bool)), [expected], atol=1e-6)


@pytest.mark.parametrize("convert", [np.asarray, torch.tensor])
def test_multi_rlvr_rewards_three_copies_as_one_answer(convert):
    answer, missing = [1.0, 0.5], [0.0, 0.0]
    sets = convert([[answer] * 3, [answer, missing, missing], [missing] * 3])
    mask = convert([[True] * 3, [True, False, False], [False] * 3])
    group = Group(sets, mask, convert([0.5, 0.5]), (0,))
    assert get("multi_rlvr").rewards(group).tolist() == [0.75, 0.75, 0.0]
    assert get("multi_rlvr", count_copies=True).rewards(group).tolist() == [2.25, 0.75, 0.0]


def test_answers_that_are_known_to_differ_count_where_their_scores_are_equal():
    # The second answer of the first rollout is a copy, that of the second only scores the same.
    rewards = np.ones((1, 2, 2, 1))
    copies = np.asarray([[[False, True], [False, False]]])
    assert (advantages("multi_rlvr", rewards) == 0).all()
    low, high = advantages("multi_rlvr", rewards, copies=copies)[0]
    assert low == pytest.approx(-0.5 / (sqrt(0.5) + EPS), abs=1e-6)  # 1 and 2: deviations −1/2 and 1/2
    assert high == -low
    hidden = advantages("multi_rlvr", np.ones((1, 3, 2, 1)), copies=np.concatenate([copies, copies[:, :1]], axis=1),
                        valid=[[True, True, False]])  # fmt: skip
    np.testing.assert_allclose(hidden, [[low, high, 0]])


def test_vpo():
    # R: two specialists E[max(w, 1−w)] = 3/4; the same one twice E[w] = 1/2; half of both 1/2. Mean 7/12;
    # deviations 1/6, −1/12, −1/12; sample variance (4 + 1 + 1) / 144 / 2 = 1/48.
    std = sqrt(1 / 48)
    expected = [1 / 6 / (std + EPS), -1 / 12 / (std + EPS), -1 / 12 / (std + EPS)]
    np.testing.assert_allclose(advantages("vpo", SETS), [expected], atol=1e-5)


def test_vpo_rewards_variety_and_multi_rlvr_does_not():
    near = SETS.copy()
    near[0, 1, 1] = [0.99, 0.01]  # no copy of the first answer, but nearly
    variety, twice = advantages("multi_rlvr", near)[0][:2]
    assert variety == pytest.approx(twice)
    variety, twice = advantages("vpo", SETS)[0][:2]
    assert variety > twice


def test_vpo_with_sampled_weights():
    method = get("vpo", draws=100)
    rewards = set_reward(SETS, directions=dirichlet(2, size=100, seed=(3, 4, 0)))[0].astype(np.float32)
    expected = (rewards - rewards.mean()) / (rewards.std(ddof=1) + EPS)
    np.testing.assert_allclose(advantages(method, SETS, seed=3, step=4), [expected], atol=1e-6)


def test_vpo_concentration_per_objective():
    method = get("vpo", concentration=(9.0, 1.0))
    # E[w] = (0.9, 0.1): the specialist in objective 1 has 0.9, half of both has 0.5.
    result = advantages(method, SETS)[0]
    assert result[0] > result[1] > result[2]


def test_vpo_anchored_has_an_advantage_for_each_answer():
    # The first answers of SETS have the same reward, 1/2; the others have that of the set, as with vpo.
    [advantages_GM] = advantages("vpo_anchored", SETS)
    assert (advantages_GM[:, 0] == 0).all()
    np.testing.assert_allclose(advantages_GM[:, 1], advantages("vpo", SETS)[0])
    target = (0.9, 0.1)
    [advantages_GM] = advantages("vpo_anchored", SETS, target=target)
    np.testing.assert_allclose(advantages_GM[:, 0], advantages("grpo", SETS[:, :, :1], target=target)[0])
    np.testing.assert_allclose(advantages_GM[:, 1], advantages("vpo", SETS)[0])


def test_vpo_anchored_by_answer_with_rollouts_unknown_and_sets_of_two_sizes():
    rewards = np.random.default_rng(0).random((2, 4, 3, 2))
    valid = [[1, 1, 0, 1], [1, 1, 1, 1]]
    result = advantages("vpo_anchored", [rewards[0], rewards[1, :, :2]], valid=valid)
    assert result.shape == (2, 4, 3)
    assert (result[0, 2] == 0).all()
    assert (result[1, :, 2] == 0).all()  # there is no third answer
    np.testing.assert_allclose(result[0, [0, 1, 3]], advantages("vpo_anchored", rewards[:1, [0, 1, 3]])[0])
    np.testing.assert_allclose(result[1, :, :2], advantages("vpo_anchored", rewards[1:, :, :2])[0])


def test_vpo_anchored_by_one_reward():
    # λ = 1/2: half of answer 1's own 1/2, 1/2, 1/2 and half of R = 3/4, 1/2, 1/2: 5/8, 1/2, 1/2. Mean 13/24;
    # deviations 2/24, −1/24, −1/24; sample variance 6/576 / 2 = 3/576.
    std = sqrt(3) / 24
    expected = [2 / 24 / (std + EPS), -1 / 24 / (std + EPS), -1 / 24 / (std + EPS)]
    np.testing.assert_allclose(advantages(get("vpo_anchored", anchor=0.5), SETS), [expected], atol=1e-5)


def test_vpo_anchored_with_a_missing_first_answer():
    [advantages_GM] = advantages("vpo_anchored", SETS, mask=[[[0, 1], [1, 1], [1, 1]]])
    assert advantages_GM[0, 0] < 0 < advantages_GM[1, 0] == advantages_GM[2, 0]
    # Answer 1 is missing from rollout 0: its own part is 0 and R = 1/2, so 1/4; the others have 1/2.
    mask = [[[0, 1], [1, 1], [1, 1]]]
    result = advantages(get("vpo_anchored", anchor=0.5), SETS, mask=mask)
    # 1/4, 1/2, 1/2: mean 5/12; deviations −1/6, 1/12, 1/12; sample variance 1/48.
    std = sqrt(1 / 48)
    np.testing.assert_allclose(result, [[-1 / 6 / (std + EPS), 1 / 12 / (std + EPS), 1 / 12 / (std + EPS)]], atol=1e-5)


def test_vpo_anchored_between_its_ends():
    np.testing.assert_allclose(advantages(get("vpo_anchored", anchor=0.0), SETS), advantages("vpo", SETS))
    first_only = advantages("grpo", SETS[:, :, :1])
    np.testing.assert_allclose(advantages(get("vpo_anchored", anchor=1.0), SETS), first_only)


@pytest.mark.parametrize("name", ["vpo", "vpo_anchored"])
def test_single_answers_warn_once_and_say_what_is_left(name, monkeypatch):
    monkeypatch.setattr("vpo.methods.compute._WARNED", set())
    what = {"vpo": "GRPO on the mean", "vpo_anchored": "scalar RL on"}[name]
    with pytest.warns(UserWarning, match=f"{name} with one answer per rollout is {what}") as caught:
        result = advantages(name, SINGLE)
    assert caught[0].filename == __file__
    np.testing.assert_allclose(result.reshape(np.shape(SINGLE)[:2]), advantages("grpo", SINGLE), atol=1e-7)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        advantages(name, SINGLE)
        advantages(name, SETS)
