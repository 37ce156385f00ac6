"""Warnings about batches that went wrong in a way that training would not show, and when that has to end it."""

import warnings
from collections.abc import Sequence

import numpy as np

from vpo.core.types import Floats
from vpo.engines.grading import TOLERANCE
from vpo.engines.metrics import Mean
from vpo.util.text import excerpt

# A share of answers that could be read, or of known rewards, below this, in so many batches in a row, raises the alarm.
LOW_SHARE, ALARM_AFTER = 0.5, 5
NEARLY_NONE = 0.05  # a share of answers that could be read up to this, in the first batch, raises it at once
PATIENCE = 10  # batches in a row without a known reward that end the training


class Alarms:
    """Counts what it has seen, and warns once of each."""

    def __init__(self) -> None:
        """Nothing was seen yet."""
        self.warned_of: set[str] = set()  # objectives with scores outside [0, 1]
        # In a row, with few answers that could be read; None before the first batch.
        self.low_batches: int | None = None
        self.mostly_unknown_batches = 0  # in a row
        self.unknown_batches = 0  # in a row, without any known reward

    def check_scores(self, vectors: Sequence[Floats | None], objectives: Sequence[str]) -> None:
        """Warn of each objective with scores outside [0, 1]; of all together where problems differ in theirs."""
        known = [vectors_MD for vectors_MD in vectors if vectors_MD is not None]
        if not known or self.warned_of.issuperset(objectives or [""]):
            return
        columns = np.concatenate(known).T if objectives else [np.concatenate([each.ravel() for each in known])]
        for name, scores_n in zip(objectives or [""], columns, strict=True):
            low, high = float(np.min(scores_n)), float(np.max(scores_n))
            if name in self.warned_of or (low >= -TOLERANCE and high <= 1 + TOLERANCE):
                continue
            self.warned_of.add(name)
            of = f" of objective {name!r}" if name else ""
            if low < -TOLERANCE:
                text = (
                    f"some scores are below 0, down to {low:g}{of}, and an answer that is missing or cannot be read "
                    "counts 0: giving no answer would have the larger reward; shift the scores until the worst answer "
                    "has 0 or more"
                )
            else:
                text = (
                    f"some scores are above 1, up to {high:g}{of}: the larger its numbers, the more an objective "
                    "outweighs the others; scale all to [0, 1], for example by a calibration of vpo.rewards, unless "
                    "they share that scale"
                )
            warnings.warn(text, stacklevel=5)

    def check_known_share(self, known: Mean, why: str) -> None:
        """Warn where most rewards are unknown in batch after batch; `why` is what is known of the reasons."""
        low = known.number > 0 and known.value < LOW_SHARE
        self.mostly_unknown_batches = self.mostly_unknown_batches + 1 if low else 0
        if self.mostly_unknown_batches == ALARM_AFTER:
            warnings.warn(
                f"only {known.value:.0%} of the completions have a known reward, and few in the last {ALARM_AFTER} "
                "batches" + (f": {why}" if why else ""),
                stacklevel=4,
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
        return self.unknown_batches > 0 and self.unknown_batches >= min(PATIENCE, batches)

    def check_read_rate(self, rate: float, completions: int, unread: str | None) -> None:
        """Warn where no answer can be read in the first batch, or few can in batch after batch.

        Args:
            rate: the share of answers that could be read, in the form that was asked for or another.
            completions: how many the batch has. One alone, as some engines pass them, says little.
            unread: a completion of the batch that lacks an answer; None where there is none.
        """
        first = self.low_batches is None
        self.low_batches = (self.low_batches or 0) + 1 if rate < LOW_SHARE else 0
        if first and completions > 1 and rate <= NEARLY_NONE:
            self.low_batches = ALARM_AFTER  # the same is not said again
            found = f"only {rate:.0%}" if rate else "none"
            text = f"{found} of the answers of the first batch could be read, and nothing is learned without answers"
        elif self.low_batches == ALARM_AFTER:
            text = f"only {rate:.0%} of the answers could be read, and few in the last {ALARM_AFTER} batches"
        else:
            return
        shown = "" if unread is None else f"; one of the completions: {excerpt(unread)}"
        warnings.warn(
            f"{text}: check that the prompts ask for them (ask_for, task_dataset), raise max_completion_length if "
            f"completions are cut off, or teach the model the format first: vpo warmup{shown}",
            stacklevel=4,
        )
