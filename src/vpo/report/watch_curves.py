"""The metrics of a run, step by step, as curves and as speed."""

import math
from array import array
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vpo.core.types import Floats
from vpo.evaluation.metrics import AT_K

# Panel → its lines: name → the metrics, of TRL or of verl, the first of which that is logged is shown.
PANELS: dict[str, dict[str, tuple[str, ...]]] = {
    "reward": {"reward": ("reward", "critic/rewards/mean", "critic/score/mean")},
    "set reward": {"set reward": ("vpo/set_reward",)},
    "answers in form, and read": {"in form": ("vpo/parse_rate",), "read": ("vpo/read_rate",)},
    "diversity": {"diversity": ("vpo/diversity",)},
    "loss": {"loss": ("loss", "actor/loss", "actor/pg_loss")},
    "entropy": {"entropy": ("entropy", "actor/entropy")},
}
OBJECTIVE = "vpo/objective/"
# Of evaluations on held-out problems, beside best@k and pass@k: panel → its lines: name → the measure.
HELD_OUT = {
    "held-out, one completion": {"set": "set", "first answer": "first", "set reward": "set_reward"},
    "held-out answers in form, and read": {"in form": "parse_rate", "read": "read_rate"},
}
SECONDS = ("step_time", "timing_s/step")
LENGTHS = ("completions/mean_length", "response_length/mean")
KEPT = {*SECONDS, *LENGTHS, *(metric for lines in PANELS.values() for names in lines.values() for metric in names)}
RECENT = 20  # steps over which speed is averaged
LARGEST = 1e100  # of numbers that are shown: sums of them stay finite
POINTS = 300  # of a curve; neighbouring steps are averaged


class StepTable:
    """The metrics that are shown, a column each, NaN where a step lacks one."""

    def __init__(self) -> None:
        """An empty table."""
        self.steps = array("d")
        self.columns: dict[str, array[float]] = {}

    @property
    def last(self) -> int:
        """The last step; 0 where none is done."""
        return int(self.steps[-1]) if self.steps else 0

    def add(self, row: Mapping[str, Any]) -> None:
        """Add the metrics of a step. Later steps are removed: a run may be resumed without truncating its log."""
        while self.steps and self.steps[-1] >= row["step"]:
            for column in (self.steps, *self.columns.values()):
                column.pop()
        for name in row:
            if name not in self.columns and self._shows(name):
                self.columns[name] = array("d", [math.nan] * len(self.steps))
        self.steps.append(row["step"])
        for name, column in self.columns.items():
            value = number(row.get(name))
            column.append(math.nan if value is None else value)

    def seconds(self) -> float | None:
        """Mean time of the newest steps; None where the log does not say."""
        known = self._recent(SECONDS)
        mean = float(np.nanmean(known)) if np.isfinite(known).any() else 0.0
        return number(mean) or None

    def tokens_per_second(self, rollouts: int) -> float | None:
        """Generated tokens per second of the newest steps, of so many rollouts each; None where it is not known."""
        seconds, lengths = self._recent(SECONDS), self._recent(LENGTHS)
        timed = np.isfinite(seconds)
        # Further updates on the same rollouts log no lengths: they take time, and generate nothing.
        tokens, total = float(np.nansum(lengths[timed])) * rollouts, float(seconds[timed].sum())
        return number(tokens / total) if tokens and total else None

    def panels(self) -> list[dict[str, Any]]:
        """The curves, by panel; those of metrics that are not logged are left out."""
        curves = {
            title: [{"name": name, **curve} for name, metrics in lines.items() if (curve := self._curve(metrics))]
            for title, lines in self._lines().items()
        }
        return [{"title": title, "lines": lines} for title, lines in curves.items() if lines]

    def _shows(self, name: str) -> bool:
        return name in KEPT or name.startswith(OBJECTIVE)

    def _lines(self) -> dict[str, dict[str, tuple[str, ...]]]:
        objectives = [name for name in self.columns if name.startswith(OBJECTIVE)]
        return {**PANELS, "objectives": {name.removeprefix(OBJECTIVE): (name,) for name in objectives}}

    def _values(self, metrics: Sequence[str]) -> Floats:
        """The first of some metrics that is logged."""
        name = next((name for name in metrics if name in self.columns), None)
        # A copy: an array that numpy looks into cannot grow.
        return np.array(self.columns[name]) if name else np.full(len(self.steps), np.nan)

    def _recent(self, metrics: Sequence[str]) -> Floats:
        recent: Floats = self._values(metrics)[-RECENT:]
        return recent

    def _curve(self, metrics: Sequence[str]) -> dict[str, list[float]]:
        """The known values by step, averaged over neighbouring steps where there are many; empty without any."""
        values, steps = self._values(metrics), np.array(self.steps)
        known = np.flatnonzero(np.isfinite(values))
        if not len(known):
            return {}
        bins = np.array_split(known, min(POINTS, len(known)))
        return {
            "x": [float(f"{steps[each].mean():.6g}") for each in bins],
            "y": [float(f"{values[each].mean():.5g}") for each in bins],
        }


class EvaluationTable(StepTable):
    """The measures of evaluations on held-out problems."""

    def largest(self, measure: str) -> dict[str, Any] | None:
        """The largest value of a measure with its step, the earliest of equal ones; None where it is not logged."""
        values = self._values([measure])
        if not np.isfinite(values).any():
            return None
        index = int(np.nanargmax(values))
        return {"measure": measure, "value": float(values[index]), "step": int(self.steps[index])}

    def _shows(self, name: str) -> bool:
        return bool(AT_K.fullmatch(name)) or any(name in lines.values() for lines in HELD_OUT.values())

    def _lines(self) -> dict[str, dict[str, tuple[str, ...]]]:
        panels: dict[str, dict[str, tuple[str, ...]]] = {
            f"held-out {kind}@k": {name: (name,) for name in self.columns if name.startswith(f"{kind}@")}
            for kind in ("best", "pass")
        }
        for title, lines in HELD_OUT.items():
            panels[title] = {name: (metric,) for name, metric in lines.items()}
        return panels


def number(value: Any) -> float | None:
    """A number that can be summed up and drawn; None for anything else: a text, NaN, a number beyond 1e100."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
        return None
    return float(value)
