import json

import numpy as np
import pytest

from tests.rewards.small import sample
from vpo.rewards.calibration import Quantiles, parse_calibration
from vpo.rewards.calibrator import Calibrator

RAW = np.asarray([-6.0, -4.0, 0.0, 2.0, 4.0, 5.0])


def test_a_range_is_linear_and_clipped():
    rule = parse_calibration({"range": [-4, 4]})
    assert rule(RAW).tolist() == [0, 0, 0.5, 0.75, 1, 1]
    assert rule.clips(RAW).tolist() == [True, False, False, False, False, True]


def test_a_reversed_range_scores_low_numbers_high():
    rule = parse_calibration({"range": [4, -4]})
    assert rule(RAW).tolist() == [1, 1, 0.5, 0.25, 0, 0]
    assert rule.clips(RAW).tolist() == [True, False, False, False, False, True]


def test_a_sigmoid():
    rule = parse_calibration({"sigmoid": {"shift": 2, "scale": 0.5}})
    assert rule(RAW)[3] == 0.5
    assert rule(RAW)[4] == pytest.approx(1 / (1 + np.exp(-4)))  # (4 − 2) / 0.5
    assert rule(np.asarray([-1e9, 1e9])).tolist() == [0, 1]
    assert not rule.clips(RAW).any()
    assert parse_calibration({"sigmoid": True})(np.asarray([0.0])).tolist() == [0.5]


def test_quantiles_are_levels_of_the_reference_set():
    rule = Quantiles.of(np.asarray([3.0, 1.0, 2.0, 5.0, 4.0]))  # levels 0, 1/4, 1/2, 3/4, 1
    assert rule(np.asarray([0.0, 1.0, 2.5, 5.0, 9.0])).tolist() == [0, 0, 0.375, 1, 1]
    assert rule.clips(np.asarray([0.0, 1.0, 5.0, 9.0])).tolist() == [True, False, False, True]


def test_ties_of_the_reference_set_score_in_their_middle():
    rule = Quantiles.of(np.asarray([0.0, 1.0, 1.0, 1.0, 2.0]))  # three ones, at 1/4, 1/2 and 3/4
    assert rule(np.asarray([1.0])).tolist() == [0.5]


@pytest.mark.parametrize(
    "data", [{"range": [-4.0, 4.0]}, {"sigmoid": {"shift": 1.0, "scale": 2.0}}, {"quantiles": [0.1, 0.25, 3.0]}]
)
def test_what_is_saved_is_read_back(data):
    rule = parse_calibration(data)
    again = parse_calibration(json.loads(json.dumps(rule.data())))
    assert rule.data() == data
    assert again == rule
    assert again(RAW).tolist() == rule(RAW).tolist()


def test_many_scores_are_kept_as_a_hundred_and_one_quantiles(rng):
    raw = rng.normal(size=5000)
    rule = Quantiles.of(raw)
    assert len(rule.points) == 101
    assert np.abs(np.sort(rule(raw)) - np.linspace(0, 1, 5000)).max() < 0.01


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"rang": [0, 1]}, "did you mean 'range'"),
        ({"range": [1, 1]}, "two different numbers"),
        ({"range": [1]}, "two numbers"),
        ({"range": [0, 1], "sigmoid": True}, "must be one rule"),
        (3, "calibration must be one rule, not 3: give one of range, sigmoid, quantiles"),
        ({"sigmoid": {"scale": 0}}, "scale above 0"),
        ({"sigmoid": {"slope": 1}}, "sigmoid must be true"),
        ({"quantiles": [2, 1]}, "rising numbers"),
        ({"quantiles": "nowhere.jsonl"}, "quantiles must be a file of answers"),
    ],
)
def test_invalid_rules_are_refused(data, message):
    with pytest.raises(ValueError, match=message):
        parse_calibration(data)


def test_clipped_numbers_are_counted_since_the_last_call():
    calibrated = Calibrator(["a", "b"], {"a": {"range": [0, 1]}, "b": {"sigmoid": True}}, lambda samples: None)
    scores = calibrated(np.asarray([[2.0, 0.0], [0.5, np.nan]]))
    assert scores[0] == (1.0, 0.5)
    assert scores[1][0] == 0.5
    assert np.isnan(scores[1][1])  # what is not finite stays none, for a vector to name
    assert calibrated.counted() == {"a": (1.0, 2), "b": (0.0, 1)}
    assert calibrated.counted() == {"a": (0.0, 0), "b": (0.0, 0)}


def test_a_file_of_answers_is_scored_once_for_all_objectives(tmp_path):
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps({"prompt": "?", "answer": "x" * n}) + "\n" for n in (1, 2, 3)))
    calls = []

    def raw(samples):
        calls.append(len(samples))
        return np.asarray([[len(each.answer), -len(each.answer)] for each in samples], dtype=float)

    calibrated = Calibrator(["long", "short"], {"quantiles": str(path)}, raw)
    assert calls == [3]
    assert calibrated.data() == {"long": {"quantiles": [1, 2, 3]}, "short": {"quantiles": [-3, -2, -1]}}
    assert calibrated(raw([sample("xx")])) == [(0.5, 0.5)]


def test_a_reference_set_that_cannot_tell_answers_apart_is_refused(tmp_path):
    path = tmp_path / "answers.jsonl"
    path.write_text('{"prompt": "?", "answer": "same"}\n' * 3)
    with pytest.raises(ValueError, match="a file of answers that score differently"):
        Calibrator(["a"], {"quantiles": str(path)}, lambda samples: np.ones((len(samples), 1)))
    with pytest.raises(ValueError, match="each of which has a finite score"):
        Calibrator(["a"], {"quantiles": str(path)}, lambda samples: np.full((len(samples), 1), np.nan))
    with pytest.raises(ValueError, match=r"answers\.jsonl: the answers cannot be scored .KeyError: 'b'"):
        Calibrator(["a"], {"quantiles": str(path)}, lambda samples: {}["b"])


def test_a_rule_for_some_objectives_is_refused():
    with pytest.raises(ValueError, match="one for each of a, b, not for a"):
        Calibrator(["a", "b"], {"a": {"sigmoid": True}}, lambda samples: None)
