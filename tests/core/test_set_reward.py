"""The facts of the method about R(S) = E_w[max_i w·r_i], as properties and against its closed forms."""

import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests import oracles
from vpo import dirichlet, set_reward
from vpo.core.simplex import expected_weights

# Real scores are often few: a share of tests, all or nothing. Ties are where mistakes hide.
FEW = st.integers(1, 6)
number = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.25, 0.5, 1.0]))


@st.composite
def sets(draw, answers=FEW, objectives=FEW):
    return draw(arrays(np.float64, (draw(answers), draw(objectives)), elements=number))


@given(sets(), st.randoms(use_true_random=False))
def test_order_changes_nothing(rewards, random):
    order = random.sample(range(len(rewards)), len(rewards))
    assert set_reward(rewards[order]) == pytest.approx(set_reward(rewards), abs=1e-12)


@given(sets(), st.data())
def test_a_duplicate_or_a_dominated_answer_changes_nothing(rewards, data):
    answer = rewards[data.draw(st.integers(0, len(rewards) - 1))]
    worse = answer * data.draw(st.floats(0, 1))
    for added in (answer, worse):
        assert set_reward(np.vstack([rewards, added])) == pytest.approx(set_reward(rewards), abs=1e-12)


@given(sets(), st.data())
def test_an_added_answer_never_lowers_it(rewards, data):
    answer = data.draw(arrays(np.float64, rewards.shape[1], elements=number))
    assert set_reward(np.vstack([rewards, answer])) >= set_reward(rewards) - 1e-12


@given(sets(), st.floats(0.2, 5))
def test_it_lies_between_the_best_answer_and_the_elementwise_best(rewards, alpha):
    mean = expected_weights(rewards.shape[1], alpha)
    reward = set_reward(rewards, concentration=alpha)
    assert (rewards @ mean).max() - 1e-12 <= reward <= rewards.max(axis=0) @ mean + 1e-12


@given(sets())
def test_it_is_the_elementwise_best_where_one_answer_attains_that(rewards):
    best = rewards.max(axis=0)
    assert set_reward(np.vstack([rewards, best])) == pytest.approx(best.mean(), abs=1e-12)


@given(sets(), st.floats(0, 10), st.floats(-10, 10))
def test_it_scales_and_shifts_with_the_rewards(rewards, scale, shift):
    assert set_reward(scale * rewards + shift) == pytest.approx(scale * set_reward(rewards) + shift, abs=1e-11)


@given(sets(answers=st.just(1)), st.data())
def test_one_answer_has_exactly_the_reward_of_the_mean_weighting(rewards, data):
    objectives = rewards.shape[1]
    assert set_reward(rewards) == pytest.approx(rewards.mean(), abs=1e-14)
    alpha = data.draw(st.lists(st.floats(0.05, 20), min_size=objectives, max_size=objectives))
    mean = np.asarray(alpha) / sum(alpha)
    assert set_reward(rewards, concentration=alpha) == pytest.approx(mean @ rewards[0], abs=1e-13)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6), st.integers(1, 6), st.data())
def test_collinear_objectives_make_it_the_best_single_answer(quality, objectives, data):
    scale = data.draw(arrays(np.float64, objectives, elements=st.floats(0, 1)))
    rewards = np.outer(quality, scale)
    assert set_reward(rewards) == pytest.approx(rewards.mean(axis=1).max(), abs=1e-12)


def test_the_max_stands_inside_the_expectation():
    # Two specialists: E[max(w, 1−w)] = 3/4 for w uniform on [0,1]; the best under the mean weighting has 1/2.
    assert set_reward([[1.0, 0.0], [0.0, 1.0]]) == pytest.approx(0.75, abs=1e-6)
    # Three specialists: E[max] of a uniform point of the triangle is (1 + 1/2 + 1/3) / 3 = 11/18.
    assert set_reward(np.eye(3)) == pytest.approx(11 / 18, abs=2e-4)


@given(sets(answers=st.integers(1, 8), objectives=st.just(2)), st.sampled_from([0.3, 1.0, 3.0, (2.0, 0.7)]))
def test_two_objectives_agree_with_the_closed_form(rewards, alpha):
    pair = alpha if isinstance(alpha, tuple) else (alpha, alpha)
    exact = oracles.set_reward_of_two_objectives(rewards, pair)
    assert set_reward(rewards, concentration=alpha) == pytest.approx(exact, abs=2e-3)


@given(sets(answers=st.just(2), objectives=st.integers(1, 5)))
def test_two_answers_agree_with_the_closed_form(rewards):
    assert set_reward(rewards) == pytest.approx(oracles.set_reward_of_two_answers(*rewards), abs=2e-3)


@given(sets(answers=st.just(2), objectives=st.just(16)))
def test_two_answers_agree_with_the_closed_form_for_sixteen_objectives(rewards):
    assert set_reward(rewards) == pytest.approx(oracles.set_reward_of_two_answers(*rewards), abs=5e-3)


@pytest.mark.parametrize(("objectives", "bound"), [(3, 2e-3), (4, 2e-3), (5, 2e-3), (16, 5e-3)])
def test_many_random_pairs_agree_with_the_closed_form(objectives, bound):
    rng = np.random.default_rng(objectives)
    smooth = rng.random((100, 2, objectives))
    steps = rng.integers(0, 3, (100, 2, objectives)) / 2
    rewards = np.concatenate([smooth, steps])
    exact = [oracles.set_reward_of_two_answers(*pair) for pair in rewards]
    np.testing.assert_allclose(set_reward(rewards), exact, atol=bound)


def test_the_oracles_agree_with_each_other():
    rewards = np.random.default_rng(0).random((20, 2, 2))
    for pair in rewards:
        both = oracles.set_reward_of_two_objectives(pair), oracles.set_reward_of_two_answers(*pair)
        assert both[0] == pytest.approx(both[1], abs=1e-12)


def test_a_rollout_has_the_same_reward_in_any_batch():
    """What makes VPO a plain reward: a group may be split across processes."""
    rewards = np.random.default_rng(0).random((1000, 3, 4))
    whole = set_reward(rewards).astype(np.float32)
    assert (whole == [np.float32(set_reward(one)) for one in rewards]).all()
    assert (whole == set_reward(rewards.reshape(10, 25, 4, 3, 4)).astype(np.float32).ravel()).all()


def test_own_directions():
    rewards = np.random.default_rng(0).random((5, 3, 4))
    weightings = dirichlet(4, size=100, seed=1)
    expected = [np.mean(np.max(weightings @ one.T, axis=1)) for one in rewards]
    np.testing.assert_allclose(set_reward(rewards, directions=weightings), expected, atol=1e-14)
    np.testing.assert_allclose(set_reward(torch.tensor(rewards), directions=torch.tensor(weightings)), expected)


# Masks


@given(sets(), st.data())
def test_a_mask_leaves_answers_out(rewards, data):
    mask = data.draw(arrays(np.bool_, len(rewards)))
    expected = set_reward(rewards[mask]) if mask.any() else 0.0
    assert set_reward(rewards, mask=mask) == pytest.approx(expected, abs=1e-12)
    unread = np.where(mask[:, None], rewards, np.nan)
    assert set_reward(unread, mask=mask) == pytest.approx(expected, abs=1e-12)
    assert float(set_reward(torch.tensor(unread), mask=mask.tolist())) == pytest.approx(expected, abs=1e-12)


def test_no_answer_has_reward_0_whatever_the_sign_of_the_rewards():
    rewards = np.full((2, 3, 4), -5.0)
    np.testing.assert_allclose(set_reward(rewards, mask=[[0, 0, 0], [1, 0, 0]]), [0, -5])
    assert set_reward(np.zeros((7, 0, 4))).tolist() == [0] * 7


# Kinds of array


@given(sets())
def test_numpy_and_torch_agree(rewards):
    tensor = set_reward(torch.tensor(rewards))
    assert tensor.dtype == torch.float64
    assert float(tensor) == pytest.approx(float(set_reward(rewards)), abs=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_short_floats_come_back_as_float32(dtype):
    rewards = torch.rand((50, 3, 4), generator=torch.manual_seed(0))
    result = set_reward(rewards.to(dtype))
    assert result.dtype == torch.float32
    exact = set_reward(rewards.to(dtype).double())
    assert (result - exact).abs().max() < 1e-4


def test_float32_arrays_stay_close():
    rewards = np.random.default_rng(0).random((50, 3, 4))
    result = set_reward(rewards.astype(np.float32))
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, set_reward(rewards), atol=1e-4)


def test_lists_and_integers_are_accepted():
    assert set_reward([[1, 0], [0, 1]]) == set_reward([[1.0, 0.0], [0.0, 1.0]])
    assert set_reward(torch.tensor([[True, False], [False, True]])) == pytest.approx(0.75, abs=1e-6)


def test_empty_batches_stay_empty():
    assert set_reward(np.zeros((0, 3, 4))).shape == (0,)
    assert set_reward(torch.zeros((2, 0, 3, 4))).shape == (2, 0)


def test_gradients_flow():
    rewards = torch.rand((200, 3, 4), dtype=torch.float64, generator=torch.manual_seed(0), requires_grad=True)
    set_reward(rewards).sum().backward()
    # R(S + t·1) = R(S) + t: the gradient of a set sums to 1, and raising a score never lowers R.
    torch.testing.assert_close(rewards.grad.sum(dim=(1, 2)), torch.ones(200, dtype=torch.float64))
    assert (rewards.grad >= -1e-12).all()
    few = rewards.detach()[:2].clone().requires_grad_()
    mask = torch.tensor([[True, True, False], [True, True, True]])
    assert torch.autograd.gradcheck(lambda each: set_reward(each, mask=mask), few, eps=1e-7, atol=1e-3)


def test_memory_stays_bounded():
    rewards = np.random.default_rng(0).random((65_536, 5, 16)).astype(np.float32)
    set_reward(rewards[:1])  # imports and the directions
    tracemalloc.start()
    set_reward(rewards)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 500e6


def test_the_graph_of_the_backward_pass_stays_small():
    """Of 2,000 sets × 5 answers × 1,024 directions, autograd keeps the rewards, not the scores."""
    rewards = torch.rand((2000, 5, 16), generator=torch.manual_seed(0), requires_grad=True)
    kept = []

    def pack(tensor):
        kept.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = set_reward(rewards)
    assert sum(kept) < 2000 * 1024
    result.sum().backward()
    torch.testing.assert_close(rewards.grad.sum(dim=(1, 2)), torch.ones(2000))


# Bad input


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: set_reward([1.0, 2.0]), r"rewards must be of rank 2 or more, \(..., M, D\), not rank 1"),
        (lambda: set_reward(np.zeros((2, 3, 0))), r"1 or more objectives, not shape \(2, 3, 0\)"),
        (lambda: set_reward([[[0.0, 1.0], [np.nan, 0.0]]]), r"rewards must be finite: rewards\[0, 1, 0\] is nan"),
        (lambda: set_reward(torch.tensor([[0.0, torch.inf]])), r"rewards must be finite: rewards\[0, 1\] is inf"),
        (lambda: set_reward(np.array([["a", "b"]])), "rewards must hold real numbers, not <U1"),
        (lambda: set_reward(np.ones((2, 2), dtype=complex)), "rewards must hold real numbers, not complex128"),
        (lambda: set_reward(torch.ones((2, 2), dtype=torch.complex64)), "rewards must hold real numbers"),
        (lambda: set_reward(np.ma.masked_array(np.ones((2, 2)))), "rewards must be a plain array, not a masked one"),
        (lambda: set_reward([[1e31, 0.0]]), r"rewards must be at most 1e\+30 in size: rewards\[0, 0\] is 1e\+31"),
        (lambda: set_reward(np.ones((2, 2)), concentration=1e7), r"concentration must lie in 1e-06\.\.1e\+06"),
        (lambda: set_reward([["a", "b"]]), "rewards must hold real numbers"),
        (lambda: set_reward([[1.0], [1.0, 2.0]]), "rewards must be a rectangular array"),
        (lambda: set_reward(np.zeros((3, 4)), mask=[1, 0]), r"mask must have shape \(3,\), not \(2,\)"),
        (lambda: set_reward(np.zeros((3, 4)), mask=[2, 0, 1]), "mask must be true or false .* holds 2"),
        (lambda: set_reward(np.zeros((3, 4)), concentration=-1), "concentration must be .* greater than 0, not -1"),
        (lambda: set_reward(np.zeros((3, 2)), directions=[[0.5, 0.6]]), "directions must sum to 1 .* sums to 1.1"),
        (lambda: set_reward(np.zeros((3, 2)), directions=[[1.5, -0.5]]), "directions must not be negative.* -0.5"),
        (lambda: set_reward(np.zeros((3, 2)), directions=[[1.0]]), r"directions must have shape \(K, 2\)"),
        (lambda: set_reward(np.zeros((3, 2)), directions=np.zeros((0, 2))), r"directions must have shape \(K, 2\)"),
        (lambda: set_reward(np.zeros((3, 2)), directions=[[1, 0]], concentration=2), "directions or concentration"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
