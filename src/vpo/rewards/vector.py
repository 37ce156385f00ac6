"""Several scorers as one vector: they run at once, and one that fails abstains."""

import math
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from vpo.core.checks import as_integer
from vpo.core.targets import scaled, weights_for
from vpo.rewards.functions import Function, name_of
from vpo.rewards.running import run_within
from vpo.rewards.scorer import Item, Scorer, Scores
from vpo.tasks.task import Vector as Numbers
from vpo.util.errors import InputError, one_line

if TYPE_CHECKING:
    from vpo.rewards.prompts import PromptTask

MOST_FAILURES = 16  # on end: a call that raises is cut into halves, to find the answers that it raises on
MOST_HANGING = 4  # calls that a scorer may hang in before it is asked no more
NEARLY = 1e-6  # what rounding may add to 1

Reward: TypeAlias = Scorer | Callable[..., Any]


@dataclass(frozen=True)
class Limited:
    """A scorer with limits of its own.

    Attributes:
        scorer: itself, or a reward function.
        time_limit: seconds that a call may take.
        call_size: answers that a call gets at most; several calls run at once.
    """

    scorer: Scorer
    time_limit: float | None = None
    call_size: int | None = None

    def __post_init__(self) -> None:
        """Refuse limits that are none, and make a scorer of a function."""
        object.__setattr__(self, "scorer", _scorer(self.scorer))
        if self.time_limit is not None and not 0 < self.time_limit < math.inf:
            raise InputError(f"time_limit must be above 0 and finite, not {self.time_limit}")
        if self.call_size is not None:
            as_integer(self.call_size, "call_size", 1)


class Vector:
    """Scorers whose objectives, in their order, are a vector.

    A scorer that raises, hangs, or returns what is no number in [0, 1] abstains on the answers concerned: it is named
    in a warning, and counted. Of an answer on which one abstains the whole vector is not known.
    """

    def __init__(
        self,
        *rewards: Reward | Limited,
        weights: Mapping[str, float] | None = None,
        concurrent: int = 4,
        time_limit: float = 600.0,
    ) -> None:
        """Take scorers, and reward functions as TRL has them, which get their own name.

        Args:
            rewards: one or more.
            weights: w*, objective → weight, what is deployed; all alike by default.
            concurrent: calls at once.
            time_limit: seconds that a call may take.
        """
        given = [each if isinstance(each, Limited) else Limited(_scorer(each)) for each in rewards]
        self.limited = [replace(each, time_limit=each.time_limit or time_limit) for each in given]
        for each in self.limited:
            within, limit = getattr(each.scorer, "call_limit", None), each.time_limit or math.inf
            if within is not None and within >= limit:  # else what it has by then would be lost
                raise InputError(f"call_limit of {each.scorer.names[0]} must be below its time_limit, {limit:g}")
        self.names = tuple(name for each in self.limited for name in each.scorer.names)
        repeated = [name for name, count in Counter(self.names).items() if count > 1]
        if repeated or not self.names or not all(self.names):
            raise InputError(f"objectives must be 1 or more different names, not {', '.join(self.names) or 'none'}")
        self.target = scaled(dict(weights)) if weights else {name: 1 / len(self.names) for name in self.names}
        self.weights: Numbers = tuple(weights_for(self.target, self.names).tolist())
        self.concurrent = as_integer(concurrent, "concurrent", 1)
        self.hanging: list[list[threading.Thread]] = [[] for _ in self.limited]
        self.failures: Counter[tuple[str, str]] = Counter()  # of a scorer, by what it did
        self.abstained = dict.fromkeys(self.names, 0)

    def score(self, items: Sequence[Item]) -> list[Numbers | None]:
        """Return the vector of each answer, None where an objective abstains."""
        return [None if None in found else tuple(map(float, found)) for found in self.scores(items)]  # type: ignore[arg-type]  # none is None

    def scores(self, items: Sequence[Item]) -> list[Scores]:
        """Return the scores of each answer on each objective, None for those that abstain."""
        calls = [call for place in range(len(self.limited)) for call in self._calls(place, items)]
        seconds = [self.limited[call.place].time_limit or math.inf for call in calls]
        found = run_within([call.run for call in calls], seconds, concurrent=self.concurrent)
        columns: dict[int, list[Scores]] = {place: [] for place in range(len(self.limited))}
        for call, thread in zip(calls, found, strict=True):
            columns[call.place] += call.ended(thread is not None)
            if thread is not None:
                self.hanging[call.place].append(thread)
            self._note(call)
        together = zip(*columns.values(), strict=True) if items else ()
        rows = [tuple(score for part in parts for score in part) for parts in together]
        for name, scores in zip(self.names, zip(*rows, strict=True), strict=bool(rows)):
            self.abstained[name] += scores.count(None)
        return rows

    def described(self) -> dict[str, Any]:
        """Return what the vector is, as plain data: objectives, w*, and each scorer with its calibration."""
        return {
            "objectives": list(self.names),
            "weights": list(self.weights),
            "scorers": [{**each.scorer.described(), "objectives": list(each.scorer.names)} for each in self.limited],
        }

    def counted(self) -> dict[str, tuple[float, int]]:
        """Return what is worth watching since this was last asked: total and number, a number of 0 for a count.

        That is ``abstained/NAME``, answers; ``clipped/NAME``, the share that a calibration cut off; and of a judge
        ``requests/NAME``, ``tokens/NAME`` and ``cached/NAME``.
        """
        found: dict[str, tuple[float, int]] = {f"abstained/{name}": (n, 0) for name, n in self.abstained.items()}
        self.abstained = dict.fromkeys(self.names, 0)
        for each in self.limited:
            if ask := getattr(each.scorer, "counted", None):
                found |= {f"clipped/{name}": share for name, share in ask().items()}
            if ask := getattr(each.scorer, "spent", None):
                found |= ask()
        return found

    @property
    def columns(self) -> dict[str, str]:
        """The columns that a data set must have, each with the objective that needs it."""
        return {column: each.scorer.names[0] for each in self.limited for column in getattr(each.scorer, "columns", ())}

    def task(self, prompts: str | Path | Sequence[Mapping[str, Any]]) -> "PromptTask":
        """Return a task out of prompts: a file, or rows with `prompt` and further columns."""
        from vpo.rewards.prompts import PromptTask, read_prompts

        return PromptTask(self, read_prompts(prompts))

    def _calls(self, place: int, items: Sequence[Item]) -> list["_Call"]:
        limited = self.limited[place]
        self.hanging[place] = [thread for thread in self.hanging[place] if thread.is_alive()]
        size = limited.call_size or max(1, len(items))
        calls = [_Call(place, limited.scorer, items[start : start + size]) for start in range(0, len(items), size)]
        if len(self.hanging[place]) >= MOST_HANGING:
            for call in calls:
                call.given_up = True
                call.reasons["hangs"] = f"still hangs in {len(self.hanging[place])} calls, and is not asked again"
        return calls

    def _note(self, call: "_Call") -> None:
        """Count what went wrong in a call, and say it the first time."""
        label = "/".join(call.scorer.names)
        for kind, reason in list(call.reasons.items()):  # a call that hangs may still add some
            if not self.failures[label, kind]:
                warnings.warn(f"reward {label} {reason}; it abstains on such answers", stacklevel=4)
            self.failures[label, kind] += 1


@dataclass
class _Call:
    """A call of a scorer on some answers, in a thread of its own."""

    place: int
    scorer: Scorer
    items: Sequence[Item]
    found: dict[int, Scores] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)  # what went wrong, by its kind: the first of each
    raised: int = 0  # on end
    given_up: bool = False

    def run(self) -> None:
        """Score the answers."""
        self._part(0, len(self.items))

    def ended(self, hangs: bool) -> list[Scores]:
        """Return the scores that are there, none for others."""
        if hangs:
            self.given_up = True
            self.reasons = {**self.reasons, "hangs": "takes longer than its time limit"}
        nothing = (None,) * len(self.scorer.names)
        found = dict(self.found)
        return [found.get(place, nothing) for place in range(len(self.items))]

    def _part(self, start: int, stop: int) -> None:
        """Score some answers; where that raises, each half of them by itself."""
        if self.given_up or self.raised >= MOST_FAILURES:
            return
        try:
            scores = list(self.scorer.score(self.items[start:stop]))
            if len(scores) != stop - start:
                raise ValueError(f"it returned {len(scores)} scores for {stop - start} answers")
        except BaseException as error:  # whatever somebody's reward raises: an interrupt never comes to this thread
            self.raised += 1
            self.reasons.setdefault("raises", f"raised {type(error).__name__}: {one_line(error)}")
            if stop - start > 1:
                middle = (start + stop) // 2
                self._part(start, middle)
                self._part(middle, stop)
            return
        self.raised = 0
        for place, score in enumerate(scores, start=start):
            self.found[place] = self._checked(score)

    def _checked(self, scores: Any) -> Scores:
        """Return scores, none for what is no number in [0, 1]."""
        width = len(self.scorer.names)
        if not isinstance(scores, Sequence) or len(scores) != width:
            self.reasons.setdefault("nonsense", f"returned {scores!r:.60}, not {width} scores in a tuple")
            return (None,) * width
        return tuple(self._number(score) for score in scores)

    def _number(self, score: Any) -> float | None:
        if score is None:
            return None
        if isinstance(score, int | float | np.number) and -NEARLY <= score <= 1 + NEARLY:
            return min(1.0, max(0.0, float(score)))
        hint = ": give it a calibration" if isinstance(score, int | float | np.number) and np.isfinite(score) else ""
        self.reasons.setdefault("nonsense", f"returned {score!r:.60}, no number in [0, 1]{hint}")
        return None


def _scorer(reward: Reward) -> Scorer:
    """Return a reward as a scorer."""
    if isinstance(reward, Scorer):
        return reward
    if not callable(reward):
        raise InputError(f"a reward must be a scorer or a function, not {reward!r}")
    return Function(name_of(reward), function=reward)
