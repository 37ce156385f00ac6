"""Intervals over problems: honest for few problems and rare successes, close to the bootstrap where that is right."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import binomtest
from scipy.stats import bootstrap as percentile

from vpo import bootstrap


def test_bootstrap_covers_the_mean_of_a_normal_sample():
    values = np.random.default_rng(0).normal(5, 1, 400)
    interval = bootstrap(values)
    assert interval.mean == pytest.approx(values.mean())
    # The textbook interval is ± 1.96 · s / √400.
    half = 1.96 * values.std() / 20
    assert interval.low == pytest.approx(values.mean() - half, abs=0.01)
    assert interval.high == pytest.approx(values.mean() + half, abs=0.01)


def test_bootstrap_holds_its_level():
    """95% intervals of 300 samples of 50 problems cover the true mean 0.3 in about 95% of cases."""
    rng = np.random.default_rng(1)
    interval = bootstrap((rng.random((50, 300)) < 0.3).astype(float), resamples=1000)
    assert 0.90 <= ((interval.low <= 0.3) & (interval.high >= 0.3)).mean() <= 0.98


def test_bootstrap_of_paired_differences_is_tighter():
    rng = np.random.default_rng(0)
    problem = rng.random(200)
    a, b = problem + 0.02, problem + rng.normal(0, 0.01, 200)
    paired = bootstrap(a - b)
    assert paired.low > 0
    assert bootstrap(a).low < bootstrap(b).high  # apart, they overlap


def test_bootstrap_is_seeded_and_takes_columns_and_tensors():
    values = np.random.default_rng(0).random((30, 4))
    whole = bootstrap(values, seed=3)
    assert (whole.low == bootstrap(values, seed=3).low).all()
    assert (whole.low != bootstrap(values, seed=4).low).all()
    np.testing.assert_allclose(whole.mean, values.mean(axis=0))
    assert isinstance(bootstrap(torch.tensor(values)).high, torch.Tensor)


@pytest.mark.parametrize("problems", [5, 30, 200])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.1, 0.5, 1.0])
def test_zeros_and_ones_have_the_exact_interval_of_a_proportion(problems, share):
    """Clopper and Pearson's, whose coverage is at least 95% for every rate; it contains Wilson's."""
    ones = round(share * problems)
    interval = bootstrap(np.arange(problems) < ones, bounds=(0, 1))
    exact = binomtest(ones, problems).proportion_ci(method="exact")
    wilson = binomtest(ones, problems).proportion_ci(method="wilson")
    assert interval.low == pytest.approx(exact.low, abs=0.004)
    assert interval.high == pytest.approx(exact.high, abs=0.004)
    assert 0 <= interval.low <= wilson.low + 0.004
    assert wilson.high - 0.004 <= interval.high <= 1


@pytest.mark.parametrize("value", [0.0, 0.25, 1.0])
def test_equal_values_do_not_make_a_point(value):
    """The chance that 30 problems miss everything else is 2.5% where that has the probability 1 − 0.025^(1/30)."""
    unseen = 1 - 0.025 ** (1 / 30)
    interval = bootstrap(np.full(30, value), bounds=(0, 1))
    assert interval.mean == value
    assert interval.low == pytest.approx(value - unseen * value, abs=1e-3)
    assert interval.high == pytest.approx(value + unseen * (1 - value), abs=1e-3)
    difference = bootstrap(np.zeros(30))
    assert (difference.low, difference.high) == pytest.approx((-unseen, unseen), abs=1e-3)
    assert not difference.certain


def best_at_3(rng, rate, shape):
    """pass@3 of 10 answers to problems of different difficulty, and its mean over all such problems."""
    a, b = 0.3, 0.3 * (1 - rate) / rate
    wrong = np.array([math.comb(10 - correct, 3) / math.comb(10, 3) for correct in range(11)])
    true = 1 - math.prod((b + i) / (a + b + i) for i in range(3))  # 1 − E[(1 − p)³] for p ~ Beta(a, b)
    return 1 - wrong[rng.binomial(10, rng.beta(a, b, shape))], true


@pytest.mark.parametrize("rate", [0.005, 0.02, 0.1, 0.5])
@pytest.mark.parametrize("problems", [10, 30])
def test_at_least_93_percent_of_intervals_contain_the_mean(problems, rate):
    rng = np.random.default_rng(0)
    shape = (problems, 1000)
    some, others, values = rng.random(shape) < rate, rng.random(shape) < rate, rng.random(shape)
    scores = [(some * 1.0, rate), (some * values, rate / 2), (1 - some * values, 1 - rate / 2)]
    scores.append(best_at_3(rng, rate, shape))
    differences = [(some * 1.0 - others, 0), (some * values, rate / 2), (some * (2 * values - 1), 0)]
    differences += [(0.02 + 0.02 * rng.standard_normal(shape).clip(-4, 4), 0.02), (some * -1.0, -rate)]
    for bounds, columns in (((0, 1), scores), ((-1, 1), differences)):
        for number, (sample, true) in enumerate(columns):
            interval = bootstrap(sample, bounds=bounds, resamples=2000)
            assert (interval.low >= bounds[0] - 1e-12).all()
            assert (interval.high <= bounds[1] + 1e-12).all()
            contained = (interval.low <= true + 1e-9) & (true - 1e-9 <= interval.high)
            assert contained.mean() >= 0.93, (bounds, number)


def test_where_the_bootstrap_is_right_the_interval_is_close_to_it():
    rng = np.random.default_rng(0)
    for values, bounds in ((rng.beta(6, 2, 200), (0, 1)), (rng.normal(0.02, 0.05, 200), (-1, 1))):
        interval = bootstrap(values, bounds=bounds)
        plain = percentile((values,), np.mean, n_resamples=5000, method="percentile", rng=0).confidence_interval
        width = plain.high - plain.low
        assert interval.low == pytest.approx(plain.low, abs=0.1 * width)
        assert interval.high == pytest.approx(plain.high, abs=0.1 * width)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bootstrap(np.zeros((5, 0))), r"values must hold 1 or more columns, not shape \(5, 0\)"),
        (lambda: bootstrap([0.5]), "values must hold 2 or more problems for an interval, not 1"),
        (lambda: bootstrap([0.5, np.inf]), r"values must be finite: values\[1\] is inf"),
        (lambda: bootstrap([0.5, 1.0], confidence=95), "confidence must lie between 0 and 1, not 95"),
        (lambda: bootstrap([0.5, 1.0], resamples=0), "resamples must be 1 or more, not 0"),
        (lambda: bootstrap(np.zeros((2, 2, 2))), "values must be of rank 1 or 2"),
        (lambda: bootstrap([0.5, 1.0], bounds=(1, 0)), r"bounds must be finite, the lower one first, not \(1, 0\)"),
        (lambda: bootstrap([0.5, 1.0], bounds=(0, np.inf)), "bounds must be finite"),
    ],
)
def test_wrong_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
