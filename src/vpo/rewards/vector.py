"""Several scorers as one vector reward. They run concurrently, and one that fails abstains."""

import math
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from vpo.core.checks import as_integer
from vpo.core.targets import scaled, weights_for
from vpo.rewards.calls import RAISES, ScorerCall
from vpo.rewards.functions import FunctionReward, function_name
from vpo.rewards.scorer import Sample, Scorer, Scores
from vpo.rewards.threads import run_with_limits
from vpo.tasks.task import Vector
from vpo.util.errors import InputError

if TYPE_CHECKING:
    from vpo.rewards.prompts import PromptTask

MAX_HANGING = 4  # hanging calls of a scorer after which it is not called again until one ends

Reward: TypeAlias = Scorer | Callable[..., Any]


@dataclass(frozen=True)
class Limited:
    """A scorer with its limits.

    Attributes:
        scorer: or a reward function as TRL has them.
        time_limit: seconds per call; None for that of the vector reward.
        call_size: answers per call at most; calls of one scorer run concurrently. None for all answers in one call.
    """

    scorer: Scorer
    time_limit: float | None = None
    call_size: int | None = None

    def __post_init__(self) -> None:
        """Check the limits, and wrap a function as a scorer."""
        object.__setattr__(self, "scorer", _as_scorer(self.scorer))
        if self.time_limit is not None and not 0 < self.time_limit < math.inf:
            raise InputError(f"time_limit must be above 0 and finite, not {self.time_limit}")
        if self.call_size is not None:
            as_integer(self.call_size, "call_size", 1)


class VectorReward:
    """Scorers whose objectives, in their order, make up a vector.

    A scorer that raises, hangs, or returns something other than numbers in [0, 1] abstains on these answers, with a
    warning the first time. Where one objective abstains, the whole vector of the answer is unknown (None).
    """

    def __init__(
        self,
        *rewards: Reward | Limited,
        weights: Mapping[str, float] | None = None,
        concurrent: int = 4,
        time_limit: float = 600.0,
    ) -> None:
        """Take scorers, and reward functions as TRL has them, whose objective is the function's name.

        Args:
            rewards: one or more.
            weights: w*, objective → weight, the weighting that is deployed; uniform by default.
            concurrent: calls in parallel.
            time_limit: seconds per call.
        """
        limited = [each if isinstance(each, Limited) else Limited(_as_scorer(each)) for each in rewards]
        self.limited = [replace(each, time_limit=each.time_limit or time_limit) for each in limited]
        for each in self.limited:
            call_limit, limit = getattr(each.scorer, "call_limit", None), each.time_limit or math.inf
            if call_limit is not None and call_limit >= limit:  # else the scores that it has by then would be lost
                raise InputError(f"call_limit of {each.scorer.names[0]} must be below its time_limit, {limit:g}")
        self.names = tuple(name for each in self.limited for name in each.scorer.names)
        repeated = [name for name, count in Counter(self.names).items() if count > 1]
        if repeated or not self.names or not all(self.names):
            raise InputError(f"objectives must be 1 or more different names, not {', '.join(self.names) or 'none'}")
        self.target = scaled(dict(weights)) if weights else {name: 1 / len(self.names) for name in self.names}
        self.weights: Vector = tuple(weights_for(self.target, self.names).tolist())
        self.concurrent = as_integer(concurrent, "concurrent", 1)
        self.hanging: list[list[threading.Thread]] = [[] for _ in self.limited]
        self.failures: Counter[tuple[str, str]] = Counter()  # calls by scorer and kind of failure
        self.reasons: dict[tuple[str, str], str] = {}  # the last one of each
        self.abstained = dict.fromkeys(self.names, 0)

    def score(self, samples: Sequence[Sample]) -> list[Vector | None]:
        """The vector of each answer, None where an objective abstains."""
        return [_known_vector(scores) for scores in self.scores(samples)]

    def scores(self, samples: Sequence[Sample]) -> list[Scores]:
        """The score of each answer on each objective, None for objectives that abstain."""
        by_scorer = [self._calls(index, samples) for index in range(len(self.limited))]
        indexed = [(index, call) for index, calls in enumerate(by_scorer) for call in calls]
        hanging = run_with_limits(
            [call.run for _, call in indexed],
            [self.limited[index].time_limit or math.inf for index, _ in indexed],
            concurrent=self.concurrent,
        )
        for (index, call), thread in zip(indexed, hanging, strict=True):
            if thread is not None:
                call.abandon("takes longer than its time limit")
                self.hanging[index].append(thread)
            self._report(call)
        columns = [[scores for call in calls for scores in call.results()] for calls in by_scorer]
        rows: list[Scores] = [tuple(chain.from_iterable(parts)) for parts in zip(*columns, strict=True)]
        for index, name in enumerate(self.names):
            self.abstained[name] += sum(row[index] is None for row in rows)
        return rows

    def described(self) -> dict[str, Any]:
        """Everything that the vectors depend on, as JSON data: objectives, w*, and each scorer."""
        return {
            "objectives": list(self.names),
            "weights": list(self.weights),
            "scorers": [{**each.scorer.described(), "objectives": list(each.scorer.names)} for each in self.limited],
        }

    def probe(self) -> None:
        """Raise where a service that a scorer needs does not answer."""
        for each in self.limited:
            if hasattr(each.scorer, "probe"):
                each.scorer.probe()

    def why_unknown(self) -> str:
        """Why scorers have abstained so far, the reasons of each; empty where none has."""
        reasons = {"/".join(each.scorer.names): _why_unknown(each.scorer) for each in self.limited}
        for (names, kind), count in self.failures.items():
            counted = f"{self.reasons[names, kind]} × {count}"
            reasons[names] = ", ".join(filter(None, [reasons[names], counted]))
        return "; ".join(f"{names}: {reason}" for names, reason in reasons.items() if reason)

    def counted(self) -> dict[str, tuple[float, int]]:
        """Counts since the last call, for the log: (sum, number) of a mean, (count, 0) of a count.

        ``abstained/NAME`` counts answers; ``clipped/NAME`` is the share that the calibration clipped; a judge has
        ``requests/NAME``, ``tokens/NAME`` and ``cached/NAME``.
        """
        counts: dict[str, tuple[float, int]] = {f"abstained/{name}": (n, 0) for name, n in self.abstained.items()}
        self.abstained = dict.fromkeys(self.names, 0)
        for each in self.limited:
            if hasattr(each.scorer, "counted"):
                counts |= {f"clipped/{name}": share for name, share in each.scorer.counted().items()}
            if hasattr(each.scorer, "spent"):
                counts |= each.scorer.spent()
        return counts

    @property
    def columns(self) -> dict[str, str]:
        """The columns that a data set must have, each with an objective that needs it."""
        return {column: each.scorer.names[0] for each in self.limited for column in getattr(each.scorer, "columns", ())}

    def task(self, prompts: str | Path | Sequence[Mapping[str, Any]]) -> "PromptTask":
        """A task with these prompts: a file, or rows with `prompt` and further columns."""
        from vpo.rewards.prompts import PromptTask, read_prompts

        return PromptTask(self, read_prompts(prompts))

    def _calls(self, index: int, samples: Sequence[Sample]) -> list[ScorerCall]:
        limited = self.limited[index]
        size = limited.call_size or max(1, len(samples))
        calls = [ScorerCall(limited.scorer, samples[start : start + size]) for start in range(0, len(samples), size)]
        self.hanging[index] = [thread for thread in self.hanging[index] if thread.is_alive()]
        if len(self.hanging[index]) >= MAX_HANGING:
            for call in calls:
                call.abandon(f"still hangs in {len(self.hanging[index])} calls, and is not called again")
        return calls

    def _report(self, call: ScorerCall) -> None:
        """Count the failures of a call, and warn of each kind the first time."""
        names = "/".join(call.scorer.names)
        for kind, reason in list(call.failures.items()):  # a copy: a call that hangs may still add some
            if not self.failures[names, kind]:
                retried = kind == RAISES and len(call.samples) > 1
                then = "it is called again on fewer answers" if retried else "it abstains on such answers"
                warnings.warn(f"reward {names} {reason}; {then}", stacklevel=4)
            self.failures[names, kind] += 1
            self.reasons[names, kind] = reason


def _why_unknown(scorer: Any) -> str:
    return str(scorer.why_unknown()) if hasattr(scorer, "why_unknown") else ""


def _known_vector(scores: Scores) -> Vector | None:
    known = tuple(score for score in scores if score is not None)
    return known if len(known) == len(scores) else None


def _as_scorer(reward: Reward) -> Scorer:
    if isinstance(reward, Scorer):
        return reward
    if not callable(reward):
        raise InputError(f"a reward must be a scorer or a function, not {reward!r}")
    return FunctionReward(function_name(reward), function=reward)
