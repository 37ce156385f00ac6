import sys

import pytest

from vpo.util.records import command_line, first_difference

BEFORE = {"scorers": [{"model": "a", "calibration": {"range": [-4.0, 4.0]}}], "weights": [0.5, 0.5]}


def test_plain_data_is_the_same_but_for_rounding():
    again = {"weights": (0.5, 0.5), "scorers": [{"calibration": {"range": [-4, 4.0001]}, "model": "a"}]}
    assert first_difference(BEFORE, again) == ""
    assert first_difference({}, {}) == ""


@pytest.mark.parametrize(
    ("after", "path"),
    [
        ({**BEFORE, "weights": [0.5, 0.6]}, "weights.1"),
        ({**BEFORE, "weights": [0.5]}, "weights"),
        ({**BEFORE, "weights": None}, "weights"),
        ({"weights": [0.5, 0.5]}, "scorers"),
        ({**BEFORE, "more": 1}, "more"),
        ({**BEFORE, "scorers": [{"model": "b", "calibration": {"range": [-4.0, 4.0]}}]}, "scorers.0.model"),
        (
            {**BEFORE, "scorers": [{"model": "a", "calibration": {"range": [-4.0, "4"]}}]},
            "scorers.0.calibration.range.1",
        ),
    ],
)
def test_the_first_difference_is_named(after, path):
    assert first_difference(BEFORE, after) == path
    assert first_difference(after, BEFORE) == path


@pytest.mark.parametrize("password", ["secret", "se/cret", "se:cret"])
def test_the_command_has_no_password(password, monkeypatch):
    arguments = [
        "eval",
        "m",
        "--endpoint",
        f"https://user:{password}@host:8000/v1",
        f"--endpoint=http://{password}@host",
    ]
    monkeypatch.setattr(sys, "argv", ["/bin/vpo", *arguments])
    assert command_line() == "vpo eval m --endpoint 'https://…@host:8000/v1' '--endpoint=http://…@host'"
