"""The judge as a scorer.

A judge that fails abstains. No failure, of the network, the endpoint, the reply or the budget, ever becomes a score,
and each is counted by its reason.
"""

import threading
import time
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from vpo.rewards.judge.cache import CacheConnection, JudgeCache
from vpo.rewards.judge.client import OUT_OF_TIME, JudgeClient, Judgement, Judgements
from vpo.rewards.judge.config import JudgeConfig
from vpo.rewards.judge.limits import DOWN
from vpo.rewards.judge.prompts import JudgePrompt, ordered
from vpo.rewards.scorer import Sample, Scores
from vpo.util.errors import InputError, one_line
from vpo.util.retries import RATE_LIMITED, RequestError

POLL_SECONDS = 0.2  # while another call requests a score

# What a judge is asked before the first step.
PROBE = Sample("probe", [{"role": "user", "content": "Say hello."}], "Hello.")


class Judge:
    """Scores answers by a model behind an OpenAI-compatible endpoint: one objective per persona.

    Attributes:
        names: the personas.
        failures: how many scores it abstained from, by reason.
        cached: how many requests the cache has saved.
    """

    config_class: ClassVar[type] = JudgeConfig
    output_paths: ClassVar[tuple[str, ...]] = ("cache",)

    def __init__(self, name: str, config: JudgeConfig) -> None:
        """Open the cache; nothing is sent.

        Args:
            name: of the judge, for warnings and counts.
            config: its settings.
        """
        self.name, self.config = name, config
        self.names = tuple(config.rubrics)
        self.scale = (float(config.scale[0]), float(config.scale[1]))
        self.call_limit = config.call_limit
        self.client = JudgeClient(config)
        self.cache = None if config.cache is None else JudgeCache(config.cache)
        self.failures: Counter[str] = Counter()
        self.cached = 0
        self._warned: set[str] = set()
        self._reported = (0, 0, 0)  # counts that `spent` has returned
        self._lock = threading.Lock()  # of counts: calls may run concurrently

    def score(self, samples: Sequence[Sample]) -> list[Scores]:
        """Scores of each answer, one per persona."""
        prompts = [[self._prompt(sample, rubric) for rubric in self.config.rubrics.values()] for sample in samples]
        judgements = self._judgements({prompt.key: prompt for row in prompts for prompt in row})
        failures: Counter[str] = Counter()
        scores: list[Scores] = []
        for sample, row in zip(samples, prompts, strict=True):
            judged = [judgements[prompt.key] for prompt in row]
            failures.update(each.failure for each in judged if each.failure)
            scores.append(tuple(each.scores.get(sample.answer) for each in judged))
        with self._lock:
            self.failures.update(failures)
        self._warn()
        return scores

    def probe(self) -> None:
        """Send one request; raise where the endpoint does not answer it within `limit` seconds, retries included.

        It counts like any request, and nothing of it is cached. A reply that is not a score is only a warning, since
        the next may be one, and so is a full queue.
        """
        prompt = self._prompt(PROBE, next(iter(self.config.rubrics.values())))
        try:
            reply = self.client.probe(prompt)
        except RequestError as error:
            text = f"reward {self.name}: the judge at {self.client.endpoint.host} does not answer: {_error_text(error)}"
            if error.reason != RATE_LIMITED:
                raise InputError(f"{text}; {error.advice}" if error.advice else text) from None
            warnings.warn(text, stacklevel=2)
            return
        if failure := self.client.judgement(prompt, reply).failure:
            self._warn_once(failure, f"({one_line(repr(reply.text))}), the reply to a first request")

    def why_unknown(self) -> str:
        """The most frequent reasons of its failures so far; empty without any."""
        with self._lock:
            return ", ".join(f"{reason} × {count}" for reason, count in self.failures.most_common(3))

    def described(self) -> dict[str, Any]:
        """Model, rubrics and scale; not the address: a model may move, and addresses may hold passwords."""
        return {
            "kind": "judge",
            "model": self.config.model,
            "rubrics": dict(self.config.rubrics),
            "calibration": {"range": list(self.scale)},
            "together": self.config.together,
            "temperature": 0,
        }

    def spent(self) -> dict[str, tuple[float, int]]:
        """Requests, tokens, and requests that the cache saved, since the last call."""
        totals = self.client.budget.requests, self.client.budget.tokens, self.cached
        new = [total - reported for total, reported in zip(totals, self._reported, strict=True)]
        self._reported = totals
        return {f"{what}/{self.name}": (n, 0) for what, n in zip(("requests", "tokens", "cached"), new, strict=True)}

    def _prompt(self, sample: Sample, rubric: str) -> JudgePrompt:
        answers = ordered([sample.answer, *sample.others]) if self.config.together else (sample.answer,)
        return JudgePrompt(self.config.model, rubric, self.scale, sample.messages, answers)

    def _judgements(self, prompts: Mapping[str, JudgePrompt]) -> Judgements:
        """Judgements by key. With a cache each score is requested by one call, and the others wait for it."""
        deadline = time.monotonic() + self.call_limit
        if self.cache is None:
            return self.client.send(list(prompts.values()), deadline, save=lambda new: new)
        judgements: Judgements = {}
        with self.cache.open() as cache:
            while missing := {key: prompt for key, prompt in prompts.items() if key not in judgements}:
                known = _cached(missing, cache)
                judgements |= known
                with self._lock:
                    self.cached += len(known)
                claimed = cache.claim([key for key in missing if key not in known])
                if claimed:
                    requests = [prompts[key] for key in claimed]
                    judgements |= self.client.send(requests, deadline, save=lambda new: _save(new, prompts, cache))
                elif len(known) < len(missing):  # another call is requesting the others
                    if time.monotonic() >= deadline:
                        judgements |= {key: Judgement(failure=OUT_OF_TIME) for key in missing.keys() - known.keys()}
                    time.sleep(POLL_SECONDS)
        return judgements

    def _warn(self) -> None:
        """Warn once per limit and per reason."""
        budget, breaker = self.client.budget, self.client.breaker
        if budget.exhausted:
            spent = f"{budget.requests} requests, {budget.tokens} tokens"
            self._warn_once(budget.exhausted, f"({spent}): it abstains from all that it has not scored yet")
        if breaker.opened:
            self._warn_once(DOWN, self._why_down())
        for reason in list(self.failures):
            detail = one_line(self.client.details.get(reason, ""))
            text = f"({detail}): it abstains on such answers" if detail else "on some answers: it abstains"
            self._warn_once(reason, text)

    def _why_down(self) -> str:
        """The last error of an endpoint that is down, and what to check."""
        error, breaker = self.client.breaker.error, self.client.breaker
        assert error is not None
        return (
            f"({self.client.endpoint.host}: {_error_text(error)}): it abstains, and tries again every "
            f"{breaker.pause:g} s; {error.advice}"
        )

    def _warn_once(self, reason: str, text: str) -> None:
        if reason not in self._warned:
            self._warned.add(reason)
            warnings.warn(f"reward {self.name}: {reason} {text}", stacklevel=4)


def _error_text(error: RequestError) -> str:
    status = "" if error.status is None else f"HTTP {error.status}, "
    return f"{error.reason}, {status}{one_line(error)}"


def _cached(prompts: Mapping[str, JudgePrompt], cache: CacheConnection) -> Judgements:
    """The judgements that are in the cache; damaged ones are removed from it."""
    values = cache.get(prompts)
    scores = {key: prompts[key].from_cache(value) for key, value in values.items()}
    if damaged := {key: values[key] for key, each in scores.items() if each is None}:
        cache.discard(damaged)
    return {key: Judgement(each) for key, each in scores.items() if each is not None}


def _save(new: Judgements, prompts: Mapping[str, JudgePrompt], cache: CacheConnection) -> Judgements:
    """Save scores, and return those that hold: of each key the first that was saved. Failures are not cached."""
    cache.renew()
    failed = [key for key, each in new.items() if each.failure]
    if failed:
        cache.release(failed)
    if len(failed) == len(new):
        return new
    stored = cache.put({key: list(each.scores.values()) for key, each in new.items() if not each.failure})
    scores = {key: prompts[key].from_cache(value) for key, value in stored.items()}
    return new | {key: Judgement(each) for key, each in scores.items() if each is not None}
