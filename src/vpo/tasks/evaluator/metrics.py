"""From the metrics of an evaluator to scores: which of them are objectives, on which scales."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vpo.tasks.evaluator.evaluation import Evaluation
from vpo.tasks.task import Vector
from vpo.util.errors import InputError, one_line

COMBINED = "combined_score"  # where it is there it decides, as in OpenEvolve
BOOKKEEPING = ("error", "timeout", "llm_average")  # metrics of OpenEvolve that are no objectives
TIME = "time"  # ends the names of those that say how long an evaluation took
LARGEST = 1e100  # what a search computes with larger ones would overflow


@dataclass(frozen=True)
class Scale:
    """A linear map of a metric to [0, 1]: `low` to 0 and `high` to 1, where `low` may be the larger number.

    What lies beyond is 0 or 1.
    """

    low: float
    high: float

    def score(self, value: float) -> float:
        """Of a metric."""
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))


def read_scales(text: str | None) -> dict[str, Scale]:
    """Read NAME=LOW:HIGH,…."""
    scales: dict[str, Scale] = {}
    for part in text.split(",") if text else ():
        name, _, bounds = part.rpartition("=")
        try:
            low, high = map(float, bounds.split(":"))
            usable = math.isfinite(low) and math.isfinite(high) and low != high
        except ValueError:
            usable = False
        if not (name.strip() and usable):
            raise InputError(f"scale must be written NAME=LOW:HIGH,… with two different numbers, not {part.strip()!r}")
        scales[name.strip()] = Scale(low, high)
    return scales


def default_objectives(metrics: Mapping[str, float]) -> tuple[str, ...]:
    """The metrics of the start program that are objectives: all but bookkeeping and times; the deciding one first."""
    names = [name for name in metrics if name not in BOOKKEEPING and not name.lower().endswith(TIME)]
    return tuple(sorted(names, key=lambda name: name != COMBINED))


def weights_of(names: Sequence[str]) -> Vector:
    """w*: `combined_score` alone where it is an objective; else the mean of all."""
    if COMBINED in names:
        return tuple(float(name == COMBINED) for name in names)
    return (1 / len(names),) * len(names)


def vector_of(evaluation: Evaluation, names: Sequence[str], scales: Mapping[str, Scale]) -> Vector | str:
    """The scores of a program, or why there are none."""
    if evaluation.failure:
        return evaluation.failure
    if missing := [name for name in names if name not in evaluation.metrics]:
        why = evaluation.artifacts.get("error", "")
        return f"evaluate returned no {missing[0]}" + (f": {one_line(why)}" if why else "")
    values = [evaluation.metrics[name] for name in names]
    for name, value in zip(names, values, strict=True):
        if not abs(value) <= LARGEST:  # NaN too
            return f"{name} is {value:g}, not a number of a usable size"
    pairs = zip(names, values, strict=True)
    return tuple(scales[name].score(value) if name in scales else value for name, value in pairs)
