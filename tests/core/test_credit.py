from itertools import combinations

import numpy as np
import pytest
import torch

import vpo
import vpo.methods
from vpo.core import directions
from vpo.core.at_k import best_at_k
from vpo.core.credit import marginal_credit, pool_value
from vpo.methods import advantages
from vpo.util.errors import InputError


def brute_force(rewards_GMD, sets, mask_GM=None, concentration=1.0):
    """By the definition: over all choices of K − 1 other sets, with and without the answer."""
    G, M, D = rewards_GMD.shape
    mask_GM = np.ones((G, M), dtype=bool) if mask_GM is None else mask_GM
    points_KD = directions(D, concentration)
    credit_GM = np.zeros((G, M))
    worth = [[points_KD @ rewards_GMD[g, j] for j in range(M) if mask_GM[g, j]] for g in range(G)]
    nothing = np.zeros(len(points_KD))

    def best(values):
        return np.max(values, axis=0) if values else None

    for g in range(G):
        for j in np.flatnonzero(mask_GM[g]):
            own = points_KD @ rewards_GMD[g, j]
            siblings = [points_KD @ rewards_GMD[g, i] for i in np.flatnonzero(mask_GM[g]) if i != j]
            gains = []
            for others in combinations([i for i in range(G) if i != g], sets - 1):
                rest = siblings + [nothing if best(worth[i]) is None else best(worth[i]) for i in others]
                without = nothing if not rest else best(rest)
                gains.append(np.maximum(without, own) - without)
            credit_GM[g, j] = np.mean(gains)
    return credit_GM


@pytest.mark.parametrize("answers", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("sets", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("kind", ["random", "ties", "masked"])
def test_it_is_the_mean_over_all_subsets(answers, sets, kind):
    rng = np.random.default_rng([answers, sets, len(kind)])
    rewards = rng.random((5, answers, 3))
    mask = None
    if kind == "ties":
        rewards = rng.integers(0, 2, rewards.shape).astype(float)
    if kind == "masked":
        mask = rng.random((5, answers)) < 0.6
        rewards[~mask] = 7.0  # what stands where no answer is does not count
        mask[0] = False
    expected = brute_force(rewards, sets, mask)
    np.testing.assert_allclose(marginal_credit(rewards, sets=sets, mask=mask), expected, atol=1e-12)


def test_by_hand():
    # D = 1, so w = 1. K = 2, three sets of one answer, worth 1, 2 and 4 tenths:
    # the last gains 0.3 over the first and 0.2 over the second, 0.25 on average; the second gains 0.1 or 0.
    rewards = np.array([0.1, 0.2, 0.4]).reshape(3, 1, 1)
    np.testing.assert_allclose(marginal_credit(rewards, sets=2)[:, 0], [0.0, 0.05, 0.25], atol=1e-12)
    # K = 3: the best of both others is 0.2 for the last one.
    np.testing.assert_allclose(marginal_credit(rewards, sets=3)[:, 0], [0.0, 0.0, 0.2], atol=1e-12)


def test_batches_torch_and_blocks_agree(monkeypatch):
    rewards = np.random.default_rng(0).random((7, 4, 3, 2))
    whole = marginal_credit(rewards, sets=2)
    assert whole.shape == (7, 4, 3)
    for each, expected in zip(rewards, whole, strict=True):
        np.testing.assert_allclose(marginal_credit(each, sets=2), expected, atol=1e-15)
    monkeypatch.setattr("vpo.core.credit._BLOCK_ON_CPU", 1)
    np.testing.assert_array_equal(marginal_credit(rewards, sets=2), whole)
    tensor = marginal_credit(torch.tensor(rewards, dtype=torch.float32), sets=2)
    assert tensor.dtype == torch.float32
    np.testing.assert_allclose(tensor, whole, atol=1e-6)


def test_copies_and_dominated_siblings_have_none():
    rewards = np.array([[[0.5, 0.5], [0.5, 0.5], [0.4, 0.1]], [[0.9, 0.0], [0.0, 0.9], [0.2, 0.2]]])
    credit = marginal_credit(rewards, sets=2)
    np.testing.assert_array_equal(credit[0], 0.0)
    assert (credit[1, :2] > 0).all()
    assert credit[1, 2] == 0


def test_credits_sum_to_less_than_the_set_reward():
    rewards = np.random.default_rng(1).random((50, 6, 3, 4))
    for sets in (1, 2, 4, 6):
        credit = marginal_credit(rewards, sets=sets)
        assert (credit >= 0).all()
        assert (credit.sum(axis=-1) <= vpo.set_reward(rewards) + 1e-12).all()


def test_one_set_is_leaving_one_out():
    rewards = np.random.default_rng(2).random((4, 3, 3))
    credit = marginal_credit(rewards, sets=1)
    for answer in range(3):
        rest = np.delete(rewards, answer, axis=1)
        np.testing.assert_allclose(credit[:, answer], vpo.set_reward(rewards) - vpo.set_reward(rest), atol=1e-12)
    single = rewards[:, :1]
    np.testing.assert_allclose(marginal_credit(single, sets=1)[:, 0], vpo.set_reward(single), atol=1e-12)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_with_its_baseline_it_is_max_at_k(k):
    rewards = np.random.default_rng(k).random((1, 5, 1, 1)).astype(np.float32).astype(float)
    flat = rewards.reshape(5)
    # T leaves the rollout out, so E_T[max T] is its own baseline.
    baseline = np.array([best_at_k(np.delete(flat, g), k - 1) for g in range(5)])
    weights = k / 5 * (marginal_credit(rewards, sets=k).reshape(5) + baseline)
    method = vpo.methods.get("max_at_k", k=k)
    expected = advantages(method, rewards)[0]
    np.testing.assert_allclose(weights - weights.mean(), expected, atol=1e-12)


@pytest.mark.parametrize("sets", [1, 2, 3, 5])
def test_the_value_of_a_pool_is_the_mean_over_all_unions_of_its_sets(sets):
    rng = np.random.default_rng(sets)
    rewards, mask = rng.random((2, 5, 3, 4)), rng.random((2, 5, 3)) < 0.7
    mask[0, 0] = False  # worth 0
    for group, real, value in zip(rewards, mask, pool_value(rewards, sets=sets, mask=mask), strict=True):
        unions = [list(chosen) for chosen in combinations(range(5), sets)]
        worth = [vpo.set_reward(group[each].reshape(-1, 4), mask=real[each].ravel()) for each in unions]
        np.testing.assert_allclose(value, np.mean(worth), atol=1e-12)
    np.testing.assert_allclose(
        pool_value(torch.tensor(rewards), sets=sets, mask=mask), pool_value(rewards, sets=sets, mask=mask)
    )


def test_several_numbers_of_sets_in_one_call():
    rewards = np.random.default_rng(0).random((2, 5, 3, 4))
    each = [pool_value(rewards, sets=sets) for sets in (1, 3)]
    np.testing.assert_allclose(pool_value(rewards, sets=(1, 3)), np.stack(each, axis=-1), atol=1e-14)
    with pytest.raises(InputError, match=r"sets must lie in 1\.\.5, the rollouts of a group, not 6"):
        pool_value(rewards, sets=(1, 6))


@pytest.mark.parametrize(
    ("shape", "sets", "message"),
    [
        ((3, 2), 1, "rewards must be of rank 3 or more"),
        ((3, 0, 2), 1, "rewards must have 1 or more rollouts, answers and objectives"),
        ((3, 2, 2), 0, r"sets must lie in 1\.\.3, the rollouts of a group, not 0"),
        ((3, 2, 2), 4, r"sets must lie in 1\.\.3, the rollouts of a group, not 4"),
    ],
)
def test_refuses(shape, sets, message):
    with pytest.raises(InputError, match=message):
        marginal_credit(np.zeros(shape), sets=sets)
