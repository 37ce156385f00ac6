import numpy as np
import pytest

from vpo.core.simplex import DEFAULT_SIZE, directions, dirichlet, expected_weights

ALPHAS = [
    [1.0] * 2,
    [1.0] * 4,
    [1.0] * 16,
    [1.0] * 64,
    [0.1] * 4,
    [0.001] * 5,
    [1e6] * 3,
    [5.0, 1.0, 0.2],
    [1e-6, 1.0, 1.0],
]


@pytest.mark.parametrize("alpha", ALPHAS, ids=str)
def test_directions_lie_on_the_simplex_and_integrate_linear_functions_exactly(alpha):
    points = directions(len(alpha), alpha)
    assert points.shape == (DEFAULT_SIZE, len(alpha))
    assert points.min() >= 0
    np.testing.assert_allclose(points.sum(axis=1), 1, atol=1e-14)
    np.testing.assert_allclose(points.mean(axis=0), expected_weights(len(alpha), alpha), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("alpha", [[1.0] * 4, [0.3] * 3, [4.0, 1.0, 2.0]], ids=str)
def test_directions_have_the_second_moments_of_the_dirichlet(alpha):
    points = directions(len(alpha), alpha)
    alpha = np.asarray(alpha)
    total = alpha.sum()
    mean = alpha / total
    covariance = (np.diag(mean) - np.outer(mean, mean)) / (total + 1)
    np.testing.assert_allclose(np.cov(points.T, bias=True), covariance, atol=2e-3)


def test_one_objective_has_one_direction():
    assert directions(1).tolist() == [[1.0]]


def test_directions_are_cached_and_read_only():
    assert directions(3) is directions(3, [1.0, 1.0, 1.0])
    with pytest.raises(ValueError, match="read-only"):
        directions(3)[0, 0] = 2.0


def test_draws_depend_on_the_whole_seed_and_on_nothing_else():
    first = dirichlet(4, size=3, seed=(0, 7, "maze-1"))
    dirichlet(4, size=100, seed=5)
    assert (first == dirichlet(4, size=3, seed=(np.int64(0), np.int64(7), "maze-1"))).all()
    for other in [(1, 7, "maze-1"), (0, 8, "maze-1"), (0, 7, "maze-2"), (7, 0, "maze-1")]:
        assert not np.allclose(first, dirichlet(4, size=3, seed=other))


def test_draws_follow_the_distribution():
    draws = dirichlet(3, [4.0, 1.0, 1.0], size=20_000, seed=0)
    np.testing.assert_allclose(draws.mean(axis=0), [4 / 6, 1 / 6, 1 / 6], atol=5e-3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: directions(0), "dimensions must be 1 or more, not 0"),
        (lambda: directions(3, 0.0), "concentration must be finite and greater than 0, not 0.0"),
        (lambda: directions(3, [1.0, -1.0, 1.0]), "concentration must be finite and greater than 0"),
        (lambda: directions(3, float("nan")), "concentration must be finite and greater than 0, not nan"),
        (lambda: directions(3, [1.0, 1.0]), "concentration must be a number or 3 numbers"),
        (lambda: directions(3, size=1000), "size must be a power of two .* not 1000"),
        (lambda: dirichlet(3, size=0, seed=0), "size must be 1 or more, not 0"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
