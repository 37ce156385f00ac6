import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from vpo import geometry, set_reward
from vpo.core.geometry import best_single, simplex_shares

pools = arrays(np.float64, st.tuples(st.integers(1, 8), st.integers(1, 4)), elements=st.floats(0, 1))


def test_independent_objectives_have_full_rank():
    # Four standard basis-like columns of equal spread: all singular values equal, exp(ln 4) = 4.
    signs = np.array([[x, y, z, w] for x in (0, 1) for y in (0, 1) for z in (0, 1) for w in (0, 1)], dtype=float)
    result = geometry(signs)
    assert result.effective_rank == pytest.approx(4)
    np.testing.assert_allclose(result.correlation, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(result.spread, [0.5] * 4)


def test_two_singular_values_by_hand():
    # Spreads 3 and 1 of independent columns: shares 3/4, 1/4, entropy 0.5623, exp = 1.7548.
    scores = np.array([[3.0, 1.0], [3.0, -1.0], [-3.0, 1.0], [-3.0, -1.0]])
    assert geometry(scores).effective_rank == pytest.approx(1.7548, abs=1e-4)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=8), st.floats(0.1, 1), st.floats(0, 1))
def test_collinear_objectives_have_rank_one_and_no_headroom(quality, scale, shift):
    scores = np.column_stack([quality, scale * np.asarray(quality) + shift])
    result = geometry(scores)
    assert result.headroom == pytest.approx(0, abs=1e-12)
    if np.ptp(quality) > 1e-3:
        assert result.effective_rank == pytest.approx(1, abs=1e-4)
        assert result.correlation[0, 1] == pytest.approx(1)


def test_opposed_objectives_have_headroom():
    result = geometry([[1.0, 0.0], [0.0, 1.0]])
    assert result.headroom == pytest.approx(0.25, abs=1e-6)  # E[max(w, 1−w)] − 1/2
    assert result.correlation[0, 1] == pytest.approx(-1)
    np.testing.assert_allclose(result.shares, [0.5, 0.5])


def test_nothing_varies():
    result = geometry(np.full((5, 3), 0.5))
    assert result.effective_rank == 0
    assert result.headroom == pytest.approx(0)
    np.testing.assert_allclose(result.correlation, 0)


def test_differences_between_problems_do_not_count():
    # Two problems, one easy and one hard, whose answers do not differ: nothing to choose from in either.
    scores = np.stack([np.full((4, 3), 0.9), np.full((4, 3), 0.1)])
    assert geometry(scores).effective_rank == 0


@given(pools)
def test_shares_are_a_distribution_and_dominated_answers_win_nothing(scores):
    scores = np.vstack([scores, scores.max(axis=0) + 0.1])
    shares = simplex_shares(scores)
    assert shares.sum() == pytest.approx(1)
    assert shares[-1] == pytest.approx(1)


@given(pools)
def test_headroom_is_never_negative(scores):
    result = geometry(scores)
    assert result.headroom >= -1e-12
    assert result.expected_max == pytest.approx(set_reward(scores))
    assert 0 <= result.effective_rank <= scores.shape[1] + 1e-9


def test_the_best_single_answer_is_chosen_by_the_target():
    scores = np.asarray([[0.6, 0.6], [0.0, 1.0], [0.5, 1.0]])
    assert best_single(scores) == pytest.approx(0.75)  # E[w] = (½, ½): (0.5, 1)
    assert best_single(scores, target=[1.0, 0.0]) == pytest.approx(0.6)
    assert best_single(scores, target=[0.0, 1.0]) == pytest.approx(0.625)  # (0, 1) and (0.5, 1) tie: (½ + ¾) / 2
    assert best_single(np.stack([scores, scores]), target=[0.0, 1.0]) == pytest.approx([0.625, 0.625])


def test_shares_by_hand_and_ties():
    # Under (w, 1−w): (1, 0) beats (0.5, 0.4) where w > 4/9.
    np.testing.assert_allclose(simplex_shares([[1.0, 0.0], [0.5, 0.4]]), [5 / 9, 4 / 9], atol=1e-3)
    np.testing.assert_allclose(simplex_shares([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), [0.25, 0.25, 0.5])


def test_answers_that_differ_by_rounding_share():
    np.testing.assert_allclose(simplex_shares([[0.1 + 0.2, 0.1], [0.3, 0.1]]), [0.5, 0.5])


def test_batches_and_tensors():
    scores = torch.rand((2, 3, 10, 4), generator=torch.manual_seed(0))
    result = geometry(scores)
    assert isinstance(result.headroom, torch.Tensor)
    assert result.headroom.shape == (2, 3)
    assert result.shares.shape == (2, 3, 10)
    alone = geometry(scores[1, 2].double().numpy())
    assert float(result.headroom[1, 2]) == pytest.approx(float(alone.headroom), abs=1e-6)


def test_concentration_reaches_everything():
    scores = [[1.0, 0.0], [0.0, 1.0]]
    towards_first = geometry(scores, concentration=[30.0, 1.0])
    assert towards_first.shares[0] > 0.99
    assert towards_first.best_single == pytest.approx(30 / 31)
