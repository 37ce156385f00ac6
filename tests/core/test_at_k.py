import math
import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests import oracles
from vpo import best_at_k, best_of_set, first, pass_at_k
from vpo.core import at_k
from vpo.core.at_k import best_at_tokens


@given(st.lists(st.floats(-2, 2), min_size=1, max_size=7), st.data())
def test_best_at_k_averages_over_all_subsets(scores, data):
    k = data.draw(st.integers(1, len(scores)))
    assert best_at_k(scores, k) == pytest.approx(oracles.best_at_k(scores, k), abs=1e-12)


@given(st.lists(st.booleans(), min_size=1, max_size=7), st.data())
def test_pass_at_k_averages_over_all_subsets(solved, data):
    k = data.draw(st.integers(1, len(solved)))
    assert pass_at_k(solved, k) == pytest.approx(oracles.best_at_k(solved, k), abs=1e-12)


def test_a_hand_worked_pool():
    # Of {0, 0.5, 1}: k = 2 has three pairs, with bests 0.5, 1, 1.
    np.testing.assert_allclose(best_at_k([0.5, 1, 0], [1, 2, 3]), [0.5, 2.5 / 3, 1])
    # 1 of 4 solves: 1 − C(3,2)/C(4,2) = 1/2.
    assert pass_at_k([False, True, False, False], 2) == pytest.approx(0.5)


def test_several_k_and_many_pools_in_one_call():
    scores = np.random.default_rng(0).random((3, 5, 30))
    together = best_at_k(scores, [1, 10, 30])
    assert together.shape == (3, 5, 3)
    for index, k in enumerate([1, 10, 30]):
        np.testing.assert_allclose(together[..., index], best_at_k(scores, k), atol=1e-14)
    np.testing.assert_allclose(together[..., 0], scores.mean(axis=-1))
    np.testing.assert_allclose(together[..., 2], scores.max(axis=-1))


def test_k_of_any_kind():
    scores = [0.1, 0.7, 0.4]
    for k in (2, np.int64(2), np.int32(2)):
        assert best_at_k(scores, k).shape == ()
    for ks in ([1, 2], (1, 2), np.array([1, 2]), range(1, 3)):
        assert best_at_k(scores, ks).tolist() == [best_at_k(scores, 1), best_at_k(scores, 2)]


def test_large_pools_neither_overflow_nor_drift():
    scores = np.random.default_rng(0).random(20_000)
    values = best_at_k(scores, [1, 100, 10_000, 20_000])
    assert np.isfinite(values).all()
    assert values[0] == pytest.approx(scores.mean())
    assert values[-1] == scores.max()
    assert best_at_k(np.ones(20_000), [7, 9_999]) == pytest.approx([1, 1], abs=1e-12)


def test_torch_in_torch_out():
    scores = torch.rand((4, 30), generator=torch.manual_seed(0))
    result = best_at_k(scores, [1, 30])
    assert isinstance(result, torch.Tensor)
    assert result.dtype == torch.float32
    np.testing.assert_allclose(result, best_at_k(scores.numpy(), [1, 30]), atol=1e-6)
    assert isinstance(pass_at_k(scores > 0.5, 3), torch.Tensor)


def test_all_k_of_a_large_pool_take_little_memory():
    """The weights of 10,000 × 10,000 would take 0.8 GB, and as much again for what they are made of."""
    scores = np.random.default_rng(0).random(10_000)
    tracemalloc.start()
    try:
        best = best_at_k(scores, range(1, 10_001))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 32 * 2**20
    np.testing.assert_allclose(best[[0, 1, -1]], [scores.mean(), best_at_k(scores, 2), scores.max()], rtol=1e-12)
    assert (np.diff(best) >= -1e-12).all()


@pytest.mark.parametrize("block", [1, 60, 10**9])
def test_k_in_blocks_are_the_same(monkeypatch, block):
    scores = np.random.default_rng(0).random((4, 30))
    whole = scores_sorted_by_hand(scores)
    monkeypatch.setattr(at_k, "BLOCK", block)
    np.testing.assert_allclose(best_at_k(scores, range(1, 31)), whole, rtol=0, atol=1e-12)
    np.testing.assert_allclose(best_at_k(torch.tensor(scores), range(1, 31)), whole, rtol=0, atol=1e-12)


def scores_sorted_by_hand(scores):
    """Σ_i C(i−1, k−1) / C(n, k) · s_(i) in exact integers."""
    n = scores.shape[-1]
    weights = [[math.comb(i, k - 1) / math.comb(n, k) for k in range(1, n + 1)] for i in range(n)]
    return np.sort(scores, axis=-1) @ np.array(weights)


def test_first_and_set():
    scores = [[0.2, 0.9, 0.1], [0.4, 0.3, 0.5]]
    assert first(scores) == pytest.approx(0.3)  # (0.2 + 0.4) / 2
    assert best_of_set(scores) == pytest.approx(0.7)  # (0.9 + 0.5) / 2
    assert first(torch.tensor([scores, scores])).tolist() == pytest.approx([0.3, 0.3])


def test_a_token_budget_allows_a_number_of_generations():
    # One generation costs 10 tokens on average; best@1 = 0.5, best@2 = 1.
    values = best_at_tokens([0.0, 1.0], [5, 15], [0, 5, 10, 15, 20, 1000])
    np.testing.assert_allclose(values, [0, 0.25, 0.5, 0.75, 1, 1])
    assert best_at_tokens([0.3], [7], [0.0, 3.5]).tolist() == [0, 0.15]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: best_at_k([0.1, 0.2], 0), r"k must lie in 1\.\.2, the size of the pool, not 0"),
        (lambda: best_at_k([0.1, 0.2], 3), r"k must lie in 1\.\.2, the size of the pool, not 3"),
        (lambda: best_at_k([0.1, 0.2], [1, 2.0]), "k must be an integer, not 2.0"),
        (lambda: best_at_k([0.1, 0.2], 2.0), "k must be an integer, not 2.0"),
        (lambda: best_at_k([0.1, 0.2], None), "k must be an integer, not None"),
        (lambda: best_at_k([0.1, 0.2], True), "k must be an integer, not True"),
        (lambda: pass_at_k([], 1), "solved must hold 1 or more answers, not 0"),
        (lambda: best_at_k([], 1), "scores must hold 1 or more answers, not 0"),
        (lambda: best_at_k([0.1, np.nan], 1), r"scores must be finite: scores\[1\] is nan"),
        (lambda: best_at_k(0.5, 1), "scores must be of rank 1 or more"),
        (lambda: pass_at_k([1, 0.5], 1), r"solved must be true or false \(1 or 0\) everywhere, and holds 0.5"),
        (lambda: pass_at_k([True], 2), r"k must lie in 1\.\.1, the size of the pool, not 2"),
        (lambda: first([0.1, 0.2]), r"scores must be of rank 2 or more, \(..., N, M\)"),
        (lambda: best_of_set(np.zeros((0, 3))), "scores must hold 1 or more generations"),
        (lambda: best_at_tokens([0.1], [0], [1]), "tokens must be greater than 0 for each of 1 generations"),
        (lambda: best_at_tokens([0.1], [1], [-1]), "budgets must be 0 or more tokens, not -1"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
