"""One call of a scorer, and what happens where it raises, hangs or returns something invalid."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vpo.rewards.scorer import Sample, Scorer, Scores
from vpo.util.errors import one_line

MAX_FAILURES = 16  # consecutive exceptions after which the rest of a call abstains
TOLERANCE = 1e-6  # rounding errors beyond [0, 1] that are forgiven

# Kinds of failure.
RAISES, HANGS, INVALID = "raises", "hangs", "invalid"


@dataclass
class ScorerCall:
    """A call of a scorer on some samples. `run` may still be running in its thread after `abandon`.

    Attributes:
        scorer: to call.
        samples: to score.
        failures: description of the first failure of each kind.
    """

    scorer: Scorer
    samples: Sequence[Sample]
    failures: dict[str, str] = field(default_factory=dict)
    _scores: dict[int, Scores] = field(default_factory=dict, init=False)  # by index of the sample
    _abandoned: bool = field(default=False, init=False)

    def run(self) -> None:
        """Score the samples. Where that raises, each half of them is tried separately, down to single answers."""
        parts = [(0, len(self.samples))]
        consecutive = 0
        while parts and not self._abandoned and consecutive < MAX_FAILURES:
            start, stop = parts.pop()
            try:
                rows = list(self.scorer.score(self.samples[start:stop]))
                if len(rows) != stop - start:
                    raise ValueError(f"it returned {len(rows)} scores for {stop - start} answers")
            except BaseException as error:  # whatever a user's reward raises; interrupts only reach the main thread
                consecutive += 1
                self.failures.setdefault(RAISES, f"raised {type(error).__name__}: {one_line(error)}")
                if stop - start > 1:
                    middle = (start + stop) // 2
                    parts += [(middle, stop), (start, middle)]
                continue
            consecutive = 0
            for index, row in enumerate(rows, start=start):
                self._scores[index] = self._checked(row)

    def abandon(self, reason: str) -> None:
        """Give up on what is not scored yet, since the scorer hangs."""
        self._abandoned = True
        self.failures = {**self.failures, HANGS: reason}  # a new dict: the thread may be writing into the old one

    def results(self) -> list[Scores]:
        """Scores of each sample, None for those that are missing."""
        scores, missing = dict(self._scores), (None,) * len(self.scorer.names)
        return [scores.get(index, missing) for index in range(len(self.samples))]

    def _checked(self, row: Any) -> Scores:
        width = len(self.scorer.names)
        if not isinstance(row, Sequence) or len(row) != width:
            self.failures.setdefault(INVALID, f"returned {row!r:.60}, not {width} scores in a tuple")
            return (None,) * width
        return tuple(self._number(score) for score in row)

    def _number(self, score: Any) -> float | None:
        if score is None:
            return None
        is_number = isinstance(score, int | float | np.number)
        if is_number and -TOLERANCE <= score <= 1 + TOLERANCE:
            return min(1.0, max(0.0, float(score)))
        hint = ": give it a calibration" if is_number and np.isfinite(score) else ""
        self.failures.setdefault(INVALID, f"returned {score!r:.60}, not a number in [0, 1]{hint}")
        return None
