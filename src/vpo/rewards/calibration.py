"""Calibration rules: from any number to [0, 1]. The rule is saved with the run.

===========================================  ==========================================================================
``{"range": [low, high]}``                   (x − low) / (high − low), clipped to [0, 1]; high < low reverses the order
``{"sigmoid": {"shift": 0, "scale": 1}}``    1 / (1 + exp(−(x − shift) / scale))
``{"quantiles": "answers.jsonl"}``           share of a reference set that scores lower, ties counted by half
``{"quantiles": [x_0, …, x_n]}``             the same by quantiles at evenly spaced levels: how the former is saved
===========================================  ==========================================================================

`Calibrator` applies the rules of a scorer's objectives and resolves files of answers.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from vpo.core.types import Floats
from vpo.util.errors import InputError, nearest

RULES = ("range", "sigmoid", "quantiles")
LEVELS = 101  # quantiles saved of a reference set: every percent


class Calibration(Protocol):
    """A rule from numbers to [0, 1]."""

    def __call__(self, raw_n: Floats) -> Floats:
        """Scores in [0, 1]."""

    def clips(self, raw_n: Floats) -> Any:
        """Which numbers lie outside the range in which the rule is strictly monotonic."""

    def data(self) -> dict[str, Any]:
        """The rule as JSON data, which `parse_calibration` reads back."""


@dataclass(frozen=True)
class Range:
    """Linear: `low` scores 0, `high` scores 1, beyond them it is clipped."""

    low: float
    high: float

    def __post_init__(self) -> None:
        """Refuse a range of length 0."""
        if not (math.isfinite(self.low) and math.isfinite(self.high)) or self.low == self.high:
            raise InputError(f"range must be two different numbers, not {[self.low, self.high]}")

    def __call__(self, raw_n: Floats) -> Floats:
        """Scores in [0, 1]."""
        return np.clip((raw_n - self.low) / (self.high - self.low), 0.0, 1.0)

    def clips(self, raw_n: Floats) -> Any:
        """Which numbers lie outside of the range."""
        return (raw_n < min(self.low, self.high)) | (raw_n > max(self.low, self.high))

    def data(self) -> dict[str, Any]:
        """The rule as JSON data."""
        return {"range": [self.low, self.high]}


@dataclass(frozen=True)
class Sigmoid:
    """Logistic: `shift` scores 0.5."""

    shift: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        """Refuse a scale that is not above 0."""
        if not (math.isfinite(self.shift) and 0 < self.scale < math.inf):
            raise InputError(f"sigmoid must have a finite shift and a scale above 0, not {self.shift}, {self.scale}")

    def __call__(self, raw_n: Floats) -> Floats:
        """Scores in [0, 1]."""
        return 0.5 * (1.0 + np.tanh((raw_n - self.shift) / (2.0 * self.scale)))  # no overflow

    def clips(self, raw_n: Floats) -> Any:
        """Nothing is clipped."""
        return np.zeros(raw_n.shape, dtype=bool)

    def data(self) -> dict[str, Any]:
        """The rule as JSON data."""
        return {"sigmoid": {"shift": self.shift, "scale": self.scale}}


@dataclass(frozen=True)
class Quantiles:
    """Level of a number among the scores of a reference set, interpolated linearly between `points`."""

    points: tuple[float, ...]

    def __post_init__(self) -> None:
        """Refuse points that are not quantiles."""
        points = np.asarray(self.points, dtype=np.float64)
        if len(points) < 2 or not np.isfinite(points).all() or (np.diff(points) < 0).any() or points[0] == points[-1]:
            raise InputError("quantiles must be 2 or more rising numbers, or a file of answers that score differently")

    @classmethod
    def of(cls, raw_n: Floats) -> "Quantiles":
        """Quantiles of the scores of a reference set."""
        if not len(raw_n) or not np.isfinite(raw_n).all():
            raise InputError("the reference set of quantiles must hold answers, each of which has a finite score")
        points = np.quantile(raw_n, np.linspace(0.0, 1.0, min(LEVELS, len(raw_n))))
        return cls(tuple(float(f"{point:.9g}") for point in points))

    def __call__(self, raw_n: Floats) -> Floats:
        """Scores in [0, 1]; equal quantiles score the mean of their levels."""
        points, inverse = np.unique(np.asarray(self.points), return_inverse=True)
        levels = np.bincount(inverse, weights=np.linspace(0.0, 1.0, len(self.points))) / np.bincount(inverse)
        return np.interp(raw_n, points, levels)

    def clips(self, raw_n: Floats) -> Any:
        """Which numbers are below or above the whole reference set."""
        return (raw_n < self.points[0]) | (raw_n > self.points[-1])

    def data(self) -> dict[str, Any]:
        """The rule as JSON data."""
        return {"quantiles": list(self.points)}


def parse_calibration(data: Any) -> Calibration:
    """The rule that JSON data states; a file of quantiles is resolved by `Calibrator`, not here."""
    if not isinstance(data, Mapping) or len(data) != 1 or (rule := next(iter(data))) not in RULES:
        wrong = next((name for name in data if name not in RULES), None) if isinstance(data, Mapping) else None
        hint = nearest(wrong, RULES) if wrong else f"give one of {', '.join(RULES)}"
        raise InputError(f"calibration must be one rule, not {data!r}: {hint}")
    value = data[rule]
    if rule == "range":
        return _parse_range(value)
    return _parse_sigmoid(value) if rule == "sigmoid" else _parse_quantiles(value)


def _parse_range(value: Any) -> Range:
    if not _are_numbers(value) or len(value) != 2:
        raise InputError(f"range must be two numbers, such as [-4, 4], not {value!r}")
    return Range(*map(float, value))


def _parse_sigmoid(value: Any) -> Sigmoid:
    settings = {} if value is True else value
    valid = isinstance(settings, Mapping) and settings.keys() <= {"shift", "scale"}
    if not valid or not _are_numbers(list(settings.values())):
        raise InputError(f"sigmoid must be true, or have a shift and a scale, not {value!r}")
    return Sigmoid(**{name: float(number) for name, number in settings.items()})


def _parse_quantiles(value: Any) -> Quantiles:
    if not _are_numbers(value):
        raise InputError(f"quantiles must be a file of answers, or a list of numbers, not {value!r}")
    return Quantiles(tuple(map(float, value)))


def _are_numbers(values: Any) -> bool:
    return isinstance(values, list | tuple) and all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in values
    )
