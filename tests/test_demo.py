"""What the README says of `make demo`, read from what it left; `.ci/run` runs it first."""

import json
from pathlib import Path

import pytest

COMPARISON = Path(__file__).parent.parent / "demo" / "comparison" / "comparison.json"
BASE, GRPO, VPO, MARGINAL = range(4)


@pytest.fixture(scope="module")
def comparison():
    if not COMPARISON.is_file():
        pytest.skip("run make demo first")
    return json.loads(COMPARISON.read_text())


def measure(comparison, section, by, at):
    (measure,) = [
        each for each in comparison["measures"] if (each["section"], each["by"], each["at"]) == (section, by, at)
    ]
    return measure


def means(comparison, *which):
    return [value["mean"] for value in measure(comparison, *which)["values"]]


def over_base(comparison, method, *which):
    return measure(comparison, *which)["differences"][comparison["pairs"].index([method, BASE])]


def test_grpo_is_ahead_at_one_sample_and_last_from_three_on(comparison):
    values = means(comparison, "best@k", "answers", 1)
    assert values[GRPO] == max(values)
    for k in (3, 5, 10, 30):
        values = means(comparison, "best@k", "answers", k)
        assert values[GRPO] == min(values)


@pytest.mark.parametrize("k", [1, 3, 5, 10, 30])
def test_marginal_credit_is_above_the_untrained_policy_at_every_k(comparison, k):
    assert over_base(comparison, MARGINAL, "best@k", "answers", k)["mean"] > 0


@pytest.mark.parametrize("k", [1, 3, 5])
def test_where_it_is_by_more_than_chance(comparison, k):
    assert over_base(comparison, MARGINAL, "best@k", "answers", k)["low"] > 0


@pytest.mark.parametrize("k", [1, 3, 5, 10, 30])
def test_marginal_credit_is_above_vpo_at_every_k(comparison, k):
    values = means(comparison, "best@k", "answers", k)
    assert values[MARGINAL] > values[VPO]


def test_vpo_learned_something(comparison):
    assert over_base(comparison, VPO, "one generation", "", "set")["low"] > 0


def test_vpo_is_three_times_as_diverse_as_grpo(comparison):
    values = means(comparison, "diversity", "", "l1")
    assert values[VPO] >= 3 * values[GRPO]
