"""What the README says of `make demo`, read from what it left; `.ci/run` runs it first."""

import json
from pathlib import Path

import pytest

COMPARISON = Path(__file__).parent.parent / "demo" / "comparison" / "comparison.json"
GRPO, VPO, BASE = 0, 1, 2


@pytest.fixture(scope="module")
def comparison():
    if not COMPARISON.is_file():
        pytest.skip("run make demo first")
    return json.loads(COMPARISON.read_text())


def change(comparison, section, by, at, pair):
    (measure,) = [
        each for each in comparison["measures"] if (each["section"], each["by"], each["at"]) == (section, by, at)
    ]
    return measure["differences"][comparison["pairs"].index(list(pair))]


def test_grpo_is_ahead_at_one_sample_and_vpo_at_thirty(comparison):
    assert change(comparison, "best@k", "answers", 1, (VPO, GRPO))["high"] < 0
    assert change(comparison, "best@k", "answers", 30, (VPO, GRPO))["low"] > 0


def test_vpo_learned_something(comparison):
    assert change(comparison, "one generation", "", "set", (BASE, VPO))["high"] < 0


def test_vpo_is_three_times_as_diverse(comparison):
    (l1,) = [each["values"] for each in comparison["measures"] if each["at"] == "l1"]
    assert l1[VPO]["mean"] >= 3 * l1[GRPO]["mean"]
