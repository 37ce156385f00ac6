"""Warnings about batches that went wrong in a way that training would not show, and when that has to end it."""

import warnings
from collections.abc import Sequence

import numpy as np

from vpo.core.types import Floats
from vpo.engines.metrics import Mean

# A parse rate below this, in so many batches in a row, raises the alarm.
LOW_PARSE_RATE, ALARM_AFTER = 0.5, 5
PATIENCE = 10  # batches in a row without a known reward that end the training


class Alarms:
    """Counts what it has seen, and warns once of each."""

    def __init__(self) -> None:
        """Nothing was seen yet."""
        self.warned_below_zero = False
        self.low_batches = 0
        self.unknown_batches = 0  # in a row, without a known reward

    def check_scores(self, vectors: Sequence[Floats | None]) -> None:
        """Warn of scores below 0, to which a missing answer is preferable."""
        if self.warned_below_zero:
            return
        known = [vectors_MD.ravel() for vectors_MD in vectors if vectors_MD is not None]
        if not known or np.concatenate(known).min() >= 0:
            return
        self.warned_below_zero = True
        warnings.warn(
            "some scores are below 0, and an answer that is missing or cannot be read counts 0: giving no answer "
            "would have the larger reward; shift the scores until the worst answer has 0 or more",
            stacklevel=5,
        )

    def count_batch(self, known: Mean, batches: int) -> bool:
        """Count a batch without a known reward; whether that were too many in a row.

        Args:
            known: the share of completions with an answer whose reward is known. A batch without an answer says
                nothing of whether rewards can be known.
            batches: of the whole training. One that never has a known reward is too long, however short.
        """
        if known.number:
            self.unknown_batches = 0 if known.total else self.unknown_batches + 1
        return self.unknown_batches >= min(PATIENCE, batches)

    def check_parse_rate(self, rate: float) -> None:
        """Warn where answers cannot be read in batch after batch."""
        self.low_batches = self.low_batches + 1 if rate < LOW_PARSE_RATE else 0
        if self.low_batches == ALARM_AFTER:
            warnings.warn(
                f"only {rate:.0%} of the answers could be read, and few in the last {ALARM_AFTER} batches: check that "
                "the prompts ask for them (ask_for, task_dataset), raise max_completion_length if completions are cut "
                "off, or teach the model the format first: vpo warmup",
                stacklevel=4,
            )
