"""The greedy cover against all sets of small pools, and its bound."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests import oracles
from vpo import InputError, greedy_cover, set_reward
from vpo.core.cover import cover_columns
from vpo.core.simplex import directions

number = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.25, 0.5, 1.0]))


@st.composite
def pools(draw, elements=number):
    shape = (draw(st.integers(1, 7)), draw(st.integers(1, 5)))
    return draw(arrays(np.float64, shape, elements=elements))


def columns(rewards):
    return rewards @ directions(rewards.shape[1]).T


@settings(max_examples=60, deadline=None)
@given(pools())
def test_it_reaches_its_share_of_the_best_set_and_the_bound_holds(rewards):
    cover = greedy_cover(rewards, len(rewards))
    for k in range(1, len(rewards) + 1):
        best = oracles.best_set(columns(rewards), k)
        assert (1 - 1 / math.e) * best - 1e-12 <= cover.values[k - 1] <= best + 1e-12
        assert best <= cover.bounds[k - 1] + 1e-12
        assert cover.values[k - 1] == pytest.approx(set_reward(rewards[cover.order[:k]]), abs=1e-12)
    assert cover.values[0] == pytest.approx(oracles.best_set(columns(rewards), 1), abs=1e-12)
    assert cover.bounds[0] == pytest.approx(cover.values[0], abs=1e-12)
    assert cover.values[-1] == pytest.approx(set_reward(rewards), abs=1e-12)
    assert sorted(cover.order) == list(range(len(rewards)))


@settings(max_examples=30, deadline=None)
@given(pools(st.floats(-1, 1)))
def test_the_bound_holds_for_negative_rewards(rewards):
    cover = greedy_cover(rewards, len(rewards))
    for k in range(1, len(rewards) + 1):
        best = oracles.best_set(columns(rewards), k)
        assert cover.values[k - 1] <= best + 1e-12
        assert best <= cover.bounds[k - 1] + 1e-12


def test_the_cover_of_random_pools_is_almost_the_best_set():
    """What greedy loses in practice: 8 answers, 4 objectives, k = 3, 200 pools."""
    rng = np.random.default_rng(0)
    shares = []
    for _ in range(200):
        rewards = rng.integers(0, 5, (8, 4)) / 4
        shares.append(greedy_cover(rewards, 3).values[-1] / oracles.best_set(columns(rewards), 3))
    assert min(shares) > 0.95
    assert np.mean(shares) > 0.998


def test_greedy_can_miss_the_best_pair():
    """Of two objectives, the all-rounder comes first (0.6 > 0.5), though the two specialists together have more."""
    rewards = np.array([[0.6, 0.6], [1.0, 0.0], [0.0, 1.0]])
    cover = greedy_cover(rewards, 2)
    assert cover.order.tolist() == [0, 1]
    # E max(0.6, t) = 0.6·0.6 + ∫_{0.6}^1 t dt = 0.36 + 0.32 = 0.68; E max(t, 1 − t) = 0.75
    assert cover.values.tolist() == pytest.approx([0.6, 0.68], abs=1e-3)
    assert oracles.best_set(columns(rewards), 2) == pytest.approx(0.75, abs=1e-3)
    assert cover.bounds[1] >= 0.75 - 1e-3


def test_what_adds_nothing_is_chosen_by_preference_and_then_by_order():
    rewards = np.array([[1.0, 1.0], [0.2, 0.2], [0.5, 0.5], [0.5, 0.5]])
    assert greedy_cover(rewards, 4).order.tolist() == [0, 2, 3, 1]
    assert greedy_cover(rewards, 4, preference=[0, 3, 1, 2]).order.tolist() == [0, 1, 3, 2]


def test_one_direction_is_the_best_under_it():
    rewards = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    assert greedy_cover(rewards, 3, directions=[[0.1, 0.9]]).order.tolist() == [1, 2, 0]


def test_uncertain_scores_are_hedged():
    """Each answer is right in some scenarios: the one that is right where the first is not adds most."""
    scenarios = np.zeros((4, 3, 1))
    scenarios[:3, 0] = 1  # the best single answer
    scenarios[:2, 1] = 1  # often right, but only where the first is
    scenarios[3, 2] = 1  # seldom right, and where the first is not
    cover = greedy_cover(scenarios, 2)
    assert cover.order.tolist() == [0, 2]
    assert cover.values.tolist() == [0.75, 1.0]


def test_columns_have_weights():
    similarity = np.eye(3)
    assert cover_columns(similarity, 2, weights_C=np.array([0.2, 0.5, 0.3])).order.tolist() == [1, 2]


def test_tensors_stay_tensors():
    cover = greedy_cover(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), 2)
    assert isinstance(cover.order, torch.Tensor)
    assert isinstance(cover.values, torch.Tensor)
    assert cover.order.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 3}, r"k must lie in 1\.\.2, the number of answers, not 3"),
        ({"k": 0}, r"k must lie in 1\.\.2, the number of answers, not 0"),
        ({"k": 1, "preference": [1.0]}, r"preference must have shape \(2,\), not \(1,\)"),
        ({"k": 1, "rewards": [0.5]}, "rewards must be of rank 2"),
        ({"k": 1, "rewards": np.zeros((0, 2))}, "rewards must hold 1 or more answers"),
        ({"k": 1, "rewards": [[math.nan]]}, "rewards must be finite"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(InputError, match=message):
        greedy_cover(**{"rewards": [[0.5, 1.0], [1.0, 0.5]], **arguments})
