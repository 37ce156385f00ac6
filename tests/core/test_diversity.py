from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from vpo import diversity, set_reward
from vpo.core.diversity import pairwise_l1

pools = arrays(
    np.float64,
    st.tuples(st.integers(1, 8), st.integers(1, 4)),
    elements=st.sampled_from([0.0, 0.25, 0.5, 1.0]),
)


def dominates(a, b):
    return (a >= b).all() and (a > b).any()


@given(pools)
def test_against_the_definitions(scores):
    result = diversity(scores)
    pairs = [np.abs(a - b).sum() for a, b in combinations(scores, 2)]
    unique = np.unique(scores, axis=0)
    front = [a for a in unique if not any(dominates(b, a) for b in unique)]
    assert result.l1 == pytest.approx(np.mean(pairs) if pairs else 0.0)
    assert result.distinct == len(unique)
    assert result.nondominated == len(front)
    assert result.coverage == pytest.approx(scores.max(axis=0).mean())
    assert result.expected_max == pytest.approx(set_reward(scores))


def test_hypervolume_by_hand():
    # Above (−0.1, −0.1): 1.1 × 0.1 under (1, 0), 0.1 × 1.1 under (0, 1), of which 0.1 × 0.1 is shared.
    assert diversity([[1.0, 0.0], [0.0, 1.0]]).hypervolume == pytest.approx(0.21)
    assert diversity([[0.5, 0.5, 0.5]]).hypervolume == pytest.approx(0.6**3)


def test_hypervolume_stops_at_six_objectives():
    assert diversity(np.zeros((3, 6))).hypervolume == pytest.approx(0.1**6)
    assert diversity(np.zeros((3, 7))).hypervolume is None


def test_batches_and_tensors():
    scores = torch.rand((2, 3, 10, 4), dtype=torch.float64, generator=torch.manual_seed(0))
    result = diversity(scores)
    for name, value in vars(result).items():
        assert isinstance(value, torch.Tensor), name
        assert value.shape == (2, 3), name
        alone = getattr(diversity(scores[1, 2].numpy()), name)
        assert float(value[1, 2]) == pytest.approx(float(alone)), name


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([1.0], r"scores must be of rank 2 or more, \(..., n, D\)"),
        (np.zeros((0, 3)), "scores must hold 1 or more pools, answers and objectives"),
        ([[np.nan, 1.0]], r"scores must be finite: scores\[0, 0\] is nan"),
    ],
)
def test_bad_arguments_are_named(scores, message):
    for function in (diversity, pairwise_l1):
        with pytest.raises(ValueError, match=message):
            function(scores)
