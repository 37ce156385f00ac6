"""From any number to [0, 1], by a rule that is stated, saved with the run, and checked while it trains.

===========================================  =========================================================================
``{"range": [low, high]}``                   (x − low) / (high − low), cut off at 0 and 1; high below low turns it round
``{"sigmoid": {"shift": 0, "scale": 1}}``    1 / (1 + exp(−(x − shift) / scale))
``{"quantiles": "answers.jsonl"}``           the share of a reference set that scores lower, its ties by half
``{"quantiles": [x_0, …, x_n]}``             the same of quantiles at even levels, which is how it is saved
===========================================  =========================================================================
"""

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from vpo.core.types import Floats
from vpo.rewards.rows import read_items
from vpo.rewards.scorer import Item, Scores
from vpo.util.errors import InputError, nearest, one_line

LEVELS = 101  # quantiles that are kept of a reference set: each hundredth


class Calibration(Protocol):
    """A rule from numbers to [0, 1]."""

    def __call__(self, raw_n: Floats) -> Floats:
        """Return a score in [0, 1] for each number."""

    def clips(self, raw_n: Floats) -> Any:
        """Return which numbers lie beyond what the rule tells apart."""

    def data(self) -> dict[str, Any]:
        """Return the rule as plain data, which `calibration_of` reads back."""


@dataclass(frozen=True)
class Range:
    """A straight line from `low`, which scores 0, to `high`, which scores 1."""

    low: float
    high: float

    def __post_init__(self) -> None:
        """Refuse a range of no length."""
        if not (math.isfinite(self.low) and math.isfinite(self.high)) or self.low == self.high:
            raise InputError(f"range must be two different numbers, not {[self.low, self.high]}")

    def __call__(self, raw_n: Floats) -> Floats:
        """Return the place of each number between the two ends."""
        return np.clip((raw_n - self.low) / (self.high - self.low), 0.0, 1.0)

    def clips(self, raw_n: Floats) -> Any:
        """Return which numbers lie beyond an end."""
        return (raw_n < min(self.low, self.high)) | (raw_n > max(self.low, self.high))

    def data(self) -> dict[str, Any]:
        """Return the two ends."""
        return {"range": [self.low, self.high]}


@dataclass(frozen=True)
class Sigmoid:
    """An S about `shift`, which scores 0.5."""

    shift: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        """Refuse a scale that is not above 0."""
        if not (math.isfinite(self.shift) and 0 < self.scale < math.inf):
            raise InputError(f"sigmoid must have a finite shift and a scale above 0, not {self.shift}, {self.scale}")

    def __call__(self, raw_n: Floats) -> Floats:
        """Return the sigmoid of each number."""
        return 0.5 * (1.0 + np.tanh((raw_n - self.shift) / (2.0 * self.scale)))  # no overflow

    def clips(self, raw_n: Floats) -> Any:
        """Return that it tells all numbers apart."""
        return np.zeros(raw_n.shape, dtype=bool)

    def data(self) -> dict[str, Any]:
        """Return shift and scale."""
        return {"sigmoid": {"shift": self.shift, "scale": self.scale}}


@dataclass(frozen=True)
class Quantiles:
    """The level of a number among the scores of a reference set, between quantiles by a straight line."""

    points: tuple[float, ...]

    def __post_init__(self) -> None:
        """Refuse points that are no quantiles."""
        points = np.asarray(self.points, dtype=np.float64)
        if len(points) < 2 or not np.isfinite(points).all() or (np.diff(points) < 0).any() or points[0] == points[-1]:
            raise InputError("quantiles must be 2 or more rising numbers, or a file of answers that score differently")

    @classmethod
    def of(cls, raw_n: Floats) -> "Quantiles":
        """Return the quantiles of some scores."""
        if not len(raw_n) or not np.isfinite(raw_n).all():
            raise InputError("the reference set of quantiles must hold answers, each of which has a finite score")
        points = np.quantile(raw_n, np.linspace(0.0, 1.0, min(LEVELS, len(raw_n))))
        return cls(tuple(float(f"{point:.9g}") for point in points))

    def __call__(self, raw_n: Floats) -> Floats:
        """Return the level of each number; that of equal quantiles is the middle of theirs."""
        points, places = np.unique(np.asarray(self.points), return_inverse=True)
        levels = np.bincount(places, weights=np.linspace(0.0, 1.0, len(self.points))) / np.bincount(places)
        return np.interp(raw_n, points, levels)

    def clips(self, raw_n: Floats) -> Any:
        """Return which numbers are below or above all of the reference set."""
        return (raw_n < self.points[0]) | (raw_n > self.points[-1])

    def data(self) -> dict[str, Any]:
        """Return the quantiles."""
        return {"quantiles": list(self.points)}


RULES = ("range", "sigmoid", "quantiles")


def calibration_of(data: Mapping[str, Any], reference: Callable[[str], Floats] | None = None) -> Calibration:
    """Return the calibration that plain data states.

    Args:
        data: one rule, as the table above says.
        reference: from the name of a file to the numbers that its answers score, for quantiles.
    """
    if len(data) != 1 or (rule := next(iter(data))) not in RULES:
        wrong = next((name for name in data if name not in RULES), None)
        hint = nearest(wrong, RULES) if wrong else f"give one of {', '.join(RULES)}"
        raise InputError(f"calibration must be one rule, not {dict(data)!r}: {hint}")
    value = data[rule]
    if rule == "range":
        if not (isinstance(value, list | tuple) and len(value) == 2 and all(map(_is_number, value))):
            raise InputError(f"range must be two numbers, such as [-4, 4], not {value!r}")
        return Range(*map(float, value))
    if rule == "sigmoid":
        settings = value if isinstance(value, Mapping) else {} if value is True else {"": value}
        if not settings.keys() <= {"shift", "scale"} or not all(map(_is_number, settings.values())):
            raise InputError(f"sigmoid must be true, or have a shift and a scale, not {value!r}")
        return Sigmoid(**{name: float(each) for name, each in settings.items()})
    if isinstance(value, str) and reference is not None:
        return Quantiles.of(reference(value))
    if not isinstance(value, list | tuple) or not all(map(_is_number, value)):
        raise InputError(f"quantiles must be a file of answers, or a list of numbers, not {value!r}")
    return Quantiles(tuple(map(float, value)))


def _raw_of(raw: Callable[[Sequence[Item]], Floats], file: str) -> Floats:
    """Return what the answers of a file score."""
    items = read_items(file)
    try:
        return raw(items)
    except (Exception, SystemExit) as error:  # whatever somebody's reward raises
        reason = one_line(f"{type(error).__name__}: {error}")
        raise InputError(f"{file}: the answers cannot be scored ({reason})") from None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class Calibrated:
    """The calibrations of a scorer's objectives, and how much they cut off."""

    def __init__(
        self,
        names: Sequence[str],
        calibration: Mapping[str, Any],
        raw: Callable[[Sequence[Item]], Floats],
    ) -> None:
        """Take one rule for all objectives, or one by name.

        Args:
            names: of the objectives.
            calibration: a rule, or name → rule.
            raw: returns the numbers of items, (N, D), as they are before calibration.
        """
        self.names = tuple(names)
        by_name = dict.fromkeys(names, calibration) if calibration.keys() & set(RULES) else calibration
        if by_name.keys() != set(names):
            raise InputError(
                f"calibration must be one rule ({', '.join(RULES)}), or one for each of {', '.join(names)}, not for "
                f"{', '.join(calibration) or 'none'}"
            )
        scored: dict[str, Floats] = {}  # a file serves all objectives

        def reference(place: int) -> Callable[[str], Floats]:
            def read(file: str) -> Floats:
                if file not in scored:
                    scored[file] = _raw_of(raw, file)
                return scored[file][:, place]

            return read

        self.rules = [calibration_of(by_name[name], reference(place)) for place, name in enumerate(names)]
        self.clipped = dict.fromkeys(self.names, (0.0, 0))
        self.lock = threading.Lock()  # several calls of a scorer may run at once

    def __call__(self, raw_ND: Floats) -> list[Scores]:
        """Return the scores of numbers, NaN for those that are not finite, and count what is cut off."""
        known_ND = np.isfinite(raw_ND)
        scores_ND = np.empty(raw_ND.shape)
        for place, (name, rule) in enumerate(zip(self.names, self.rules, strict=True)):
            raw_n = np.where(known_ND[:, place], raw_ND[:, place], 0.0)
            scores_ND[:, place] = rule(raw_n)
            cut = rule.clips(raw_n) & known_ND[:, place]
            with self.lock:
                total, number = self.clipped[name]
                self.clipped[name] = (total + float(cut.sum()), number + int(known_ND[:, place].sum()))
        return [tuple(row) for row in np.where(known_ND, scores_ND, np.nan).tolist()]

    def data(self) -> dict[str, Any]:
        """Return the rule of each objective."""
        return {name: rule.data() for name, rule in zip(self.names, self.rules, strict=True)}

    def counted(self) -> dict[str, tuple[float, int]]:
        """Return for each objective how many numbers were cut off since this was last asked, and of how many."""
        with self.lock:
            found, self.clipped = self.clipped, dict.fromkeys(self.names, (0.0, 0))
        return found
