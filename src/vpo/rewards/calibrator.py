"""Applies calibration rules to the objectives of a scorer, and counts how much they clip."""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from vpo.core.types import Floats
from vpo.rewards.calibration import RULES, Calibration, Quantiles, parse_calibration
from vpo.rewards.rows import read_samples
from vpo.rewards.scorer import Sample, Scores
from vpo.util.errors import InputError, one_line


class Calibrator:
    """One calibration rule per objective of a scorer."""

    def __init__(
        self, names: Sequence[str], calibration: Mapping[str, Any], raw: Callable[[Sequence[Sample]], Floats]
    ) -> None:
        """Parse the rules, and score the reference sets of quantiles.

        Args:
            names: of the objectives.
            calibration: a rule for all, or name → rule.
            raw: numbers of samples before calibration, (N, D); it scores reference sets.
        """
        self.names = tuple(names)
        by_name = dict.fromkeys(names, calibration) if calibration.keys() & set(RULES) else calibration
        if by_name.keys() != set(names):
            raise InputError(
                f"calibration must be one rule ({', '.join(RULES)}), or one for each of {', '.join(names)}, not for "
                f"{', '.join(calibration) or 'none'}"
            )
        self.rules: list[Calibration] = []
        references: dict[str, Floats] = {}  # by file: a file serves all objectives
        for index, name in enumerate(names):
            file = _reference_file(by_name[name])
            if file is None:
                self.rules.append(parse_calibration(by_name[name]))
                continue
            if file not in references:
                references[file] = _score_file(file, raw)
            self.rules.append(Quantiles.of(references[file][:, index]))
        self._clipped = dict.fromkeys(self.names, (0.0, 0))
        self._lock = threading.Lock()  # of the counts: calls of a scorer may run concurrently

    def __call__(self, raw_ND: Floats) -> list[Scores]:
        """Scores in [0, 1]; a number that is not finite stays NaN, for `VectorReward` to report."""
        finite_ND = np.isfinite(raw_ND)
        scores_ND = np.empty(raw_ND.shape)
        for index, (name, rule) in enumerate(zip(self.names, self.rules, strict=True)):
            raw_N = np.where(finite_ND[:, index], raw_ND[:, index], 0.0)
            scores_ND[:, index] = rule(raw_N)
            clipped = (rule.clips(raw_N) & finite_ND[:, index]).sum()
            with self._lock:
                count, total = self._clipped[name]
                self._clipped[name] = (count + float(clipped), total + int(finite_ND[:, index].sum()))
        return [tuple(row) for row in np.where(finite_ND, scores_ND, np.nan).tolist()]

    def data(self) -> dict[str, Any]:
        """The rule of each objective, as JSON data."""
        return {name: rule.data() for name, rule in zip(self.names, self.rules, strict=True)}

    def counted(self) -> dict[str, tuple[float, int]]:
        """Per objective, how many numbers were clipped since the last call, and of how many."""
        with self._lock:
            counts, self._clipped = self._clipped, dict.fromkeys(self.names, (0.0, 0))
        return counts


def _reference_file(rule: Any) -> str | None:
    """The file of answers that a rule of quantiles names, if it is one."""
    file = rule.get("quantiles") if isinstance(rule, Mapping) and len(rule) == 1 else None
    return file if isinstance(file, str) else None


def _score_file(file: str, raw: Callable[[Sequence[Sample]], Floats]) -> Floats:
    samples = read_samples(file)
    try:
        return raw(samples)
    except (Exception, SystemExit) as error:  # whatever a user's reward raises
        reason = one_line(f"{type(error).__name__}: {error}")
        raise InputError(f"{file}: the answers cannot be scored ({reason})") from None
