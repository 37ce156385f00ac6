"""A language model as a judge: a rubric for each persona, each an objective of its own.

A judge that fails abstains. No failure, of the network, of the endpoint, of what it says or of the money, is ever a
number, and each is counted by its reason.
"""

import asyncio
import math
import threading
import time
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, ClassVar, TypeAlias
from urllib.parse import urlsplit

from vpo.rewards.judge_cache import Book, Cache
from vpo.rewards.judge_limits import DOWN, Breaker, Spending
from vpo.rewards.judge_questions import TOO_LONG, Question, ReplyError, shown
from vpo.rewards.scorer import Item, Scores
from vpo.util.endpoint import RATE_LIMITED, Client, Endpoint, Reply, RequestError
from vpo.util.errors import InputError, one_line
from vpo.util.retries import retry

OF_THE_ASK = (400, 413, 422)  # statuses that say something of the ask, and nothing of the endpoint
OUT_OF_TIME = "out of time"
UNSTRUCTURED = (400, 422, 501)  # statuses of endpoints that know no response_format
BURSTS = 2  # as many failures on end as this times at_once are enough

# The score of each answer that was shown, or why there is none.
Said: TypeAlias = dict[str, float] | str


class Judge:
    """Scores answers by asking a model behind an OpenAI-compatible endpoint.

    Attributes:
        names: the personas.
        failures: how many scores it abstained from, by reason.
        cached: how many requests the cache has saved.
    """

    made: ClassVar[tuple[str, ...]] = ("cache",)

    def __init__(
        self,
        name: str = "judge",
        *,
        endpoint: str,
        model: str,
        rubrics: dict[str, str],
        scale: list[float] | tuple[float, float] = (1, 5),
        together: bool = False,
        at_once: int = 16,
        limit: float = 60.0,
        call_limit: float = 540.0,
        tries: int = 4,
        backoff: float = 1.0,
        pause: float = 30.0,
        reply_tokens: int = 512,
        max_requests: int | None = None,
        max_tokens: int | None = None,
        cache: str | Path | None = None,
    ) -> None:
        """Take what is asked, where, and within which limits.

        Args:
            name: by which warnings call it.
            endpoint: its address, such as http://localhost:8000/v1; the key is OPENAI_API_KEY of the environment.
            model: its name there.
            rubrics: for each persona the text by which it scores.
            scale: the worst and the best number that it may give; they become 0 and 1.
            together: whether the answers of a set are judged in one request, side by side, or each by itself.
            at_once: how many requests may be under way.
            limit: seconds for one of them, and the longest wait before the next.
            call_limit: seconds for one call of `score`; what is not answered by then goes without.
            tries: how often a request is sent that fails for a reason that may pass.
            backoff: seconds before the second try, at most; before each further one twice as long.
            pause: seconds without a request, after 2 × at_once failures on end.
            reply_tokens: the longest reply.
            max_requests: how many are sent at most, further tries included; None for no limit.
            max_tokens: of prompts and replies; None for no limit.
            cache: a folder for what was said, on a local disk; None for none.
        """
        for what, seconds in {"limit": limit, "pause": pause, "call_limit": call_limit}.items():
            if not 0 < seconds < math.inf:
                raise InputError(f"{what} must be greater than 0 and finite, not {seconds}")
        self.rubrics, self.scale = _rubrics(rubrics), _scale(scale)
        self.names = tuple(self.rubrics)
        self.name, self.model, self.together = name, model, together
        self.call_limit = call_limit
        self.tries, self.backoff, self.reply_tokens = tries, backoff, reply_tokens
        if not 0 <= backoff < math.inf:
            raise InputError(f"backoff must be 0 or more and finite, not {backoff}")
        amounts = {
            "at_once": at_once,
            "tries": tries,
            "reply_tokens": reply_tokens,
            "max_requests": max_requests,
            "max_tokens": max_tokens,
        }
        for what, amount in amounts.items():
            if amount is not None and amount < 1:
                raise InputError(f"{what} must be 1 or more, not {amount}")
        if not _is_address(endpoint):
            raise InputError(f"endpoint must be an address such as http://localhost:8000/v1, not {endpoint!r}")
        self.endpoint = Endpoint(endpoint, model, concurrent=at_once, timeout=limit)
        self.spending = Spending(max_requests, max_tokens)
        self.breaker = Breaker(BURSTS * at_once, pause)
        self.cache = None if cache is None else Cache(cache)
        self.failures: Counter[str] = Counter()
        self.cached = 0
        self._structured: bool | None = None  # whether the endpoint knows response_format; None until it is known
        self._warned: set[str] = set()
        self._details: dict[str, str] = {}  # what was first said, by reason
        self._told = (0, 0, 0)  # what `spent` has returned
        self._lock = threading.Lock()  # of what several calls count

    def score(self, items: Sequence[Item]) -> list[Scores]:
        """Return a number in [0, 1] of each persona for each item, or None."""
        asked = [[self._question(item, rubric) for rubric in self.rubrics.values()] for item in items]
        said = self._answers({question.key: question for row in asked for question in row})
        failures: Counter[str] = Counter()
        found = []
        for item, row in zip(items, asked, strict=True):
            cells = [said[question.key] for question in row]
            failures.update(cell for cell in cells if isinstance(cell, str))
            found.append(tuple(None if isinstance(cell, str) else cell[item.answer] for cell in cells))
        with self._lock:
            self.failures.update(failures)
        self._warn()
        return found

    def described(self) -> dict[str, Any]:
        """Return what it is and how it is calibrated; not where: a model may move, and addresses hold passwords."""
        return {
            "kind": "judge",
            "model": self.model,
            "rubrics": dict(self.rubrics),
            "calibration": {"range": list(self.scale)},
            "together": self.together,
            "temperature": 0,
        }

    def spent(self) -> dict[str, tuple[float, int]]:
        """Return requests, tokens and requests that the cache saved, since this was last asked."""
        now = self.spending.requests, self.spending.tokens, self.cached
        new = [after - before for after, before in zip(now, self._told, strict=True)]
        self._told = now
        return {f"{what}/{self.name}": (n, 0) for what, n in zip(("requests", "tokens", "cached"), new, strict=True)}

    def _question(self, item: Item, rubric: str) -> Question:
        answers = shown([item.answer, *item.others]) if self.together else (item.answer,)
        return Question(self.model, rubric, self.scale, item.messages, answers)

    def _answers(self, questions: Mapping[str, Question]) -> dict[str, Said]:
        """Return for each key the score of each answer, or why there is none."""
        with self.cache.opened() if self.cache else nullcontext() as book:
            said: dict[str, Said] = {}
            for key, numbers in (book.get(questions) if book else {}).items():
                known = questions[key].known(numbers)
                if known is not None:
                    said[key] = known
            with self._lock:
                self.cached += len(said)
            left = [question for key, question in questions.items() if key not in said]
            if left:
                said.update(self._asked(left, book))
            return said

    def _asked(self, questions: Sequence[Question], book: Book | None) -> dict[str, Said]:
        """Ask the endpoint, and note each answer as soon as it is there."""
        said: dict[str, Said] = {}
        done: SimpleQueue[tuple[str, Said] | None] = SimpleQueue()
        deadline = time.monotonic() + self.call_limit
        with self.endpoint.connect() as client:
            asks = client.submit(self._ask_all(client, questions, done))
            asks.add_done_callback(lambda _: done.put(None))
            try:
                while len(said) < len(questions):
                    first = done.get(timeout=max(0.0, deadline - time.monotonic()))
                    got = [first, *(done.get() for _ in range(done.qsize()))]
                    new = dict(each for each in got if each is not None)
                    said.update(new)
                    if book:
                        book.put({key: list(each.values()) for key, each in new.items() if isinstance(each, dict)})
                    if None in got:
                        asks.result()  # raises what has ended them, if something did
            except Empty:
                for question in questions:
                    said.setdefault(question.key, OUT_OF_TIME)
            finally:
                asks.cancel()  # what is out of time, or interrupted
        return said

    async def _ask_all(self, client: Client, questions: Sequence[Question], done: "SimpleQueue[Any]") -> None:
        """Ask everything, and hand on each answer; begun in the loop, since to submit each from outside takes long."""

        async def ask(question: Question) -> None:
            done.put((question.key, await self._ask(client, question)))

        await asyncio.gather(*map(ask, questions))

    async def _ask(self, client: Client, question: Question) -> Said:
        """Return what came of a question."""
        async with client.slots:
            reply = None
            try:
                reply = await retry(
                    lambda: self._attempt(client, question),
                    tries=self.tries,
                    backoff=self.backoff,
                    max_wait=self.endpoint.timeout,
                    seed=question.key,
                )
                if reply.truncated:  # what stands in half a thought is no verdict
                    raise ReplyError(TOO_LONG)
                return question.read(reply.text)
            except RequestError as error:
                if error.reason == RATE_LIMITED:  # to be told to wait is nothing; to be told so at every try is
                    self.breaker.failed()
                self._details.setdefault(error.reason, str(error))
                return error.reason
            except ReplyError as error:
                self._details.setdefault(str(error), repr(reply.text if reply else ""))
                return str(error)

    async def _attempt(self, client: Client, question: Question) -> Reply:
        """Ask once, with a schema if the endpoint takes one, and without where it refuses."""
        if self._structured is not False:
            try:
                reply = await self._paid(client, question, response_format=question.response_format)
                self._structured = True
                return reply
            except RequestError as error:
                if self._structured or error.status not in UNSTRUCTURED:
                    raise
        reply = await self._paid(client, question)
        if self._structured is None:
            self._structured = False
        return reply

    async def _paid(self, client: Client, question: Question, **options: Any) -> Reply:
        """Send one request, if that is still allowed, and account for it."""
        self.breaker.check()
        most = question.size + self.reply_tokens
        await self.spending.claim(most)
        tokens = most  # where nobody tells, the most that it can have been
        try:
            reply = await client.chat(question.messages, temperature=0, max_tokens=self.reply_tokens, **options)
            tokens = most if reply.total_tokens is None else reply.total_tokens
            self.breaker.worked()
            return reply
        except RequestError as error:
            tokens = 0 if error.unbilled else most
            if error.reason != RATE_LIMITED and error.status not in OF_THE_ASK:
                self.breaker.failed()
            raise
        finally:
            self.spending.settle(most, tokens)

    def _warn(self) -> None:
        """Say once of each reason that it abstains, that a limit is reached, or that the endpoint does not answer."""
        spending, pause = self.spending, self.breaker.pause
        if spending.over:
            spent = f"{spending.requests} requests, {spending.tokens} tokens"
            self._once(spending.over, f"({spent}): it abstains from all that it has not scored yet")
        if self.breaker.opened:
            self._once(DOWN, f"({dict(self.failures)}): it abstains, and asks again every {pause:g} s")
        for reason in list(self.failures):
            detail = one_line(self._details.get(reason, ""))
            self._once(reason, f"({detail}): it abstains on such answers" if detail else "on some answers: it abstains")

    def _once(self, what: str, text: str) -> None:
        if what not in self._warned:
            self._warned.add(what)
            warnings.warn(f"reward {self.name}: {what} {text}", stacklevel=4)


def _is_address(endpoint: str) -> bool:
    try:
        parts = urlsplit(endpoint)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # half a bracket, or a port beyond all
        return False


def _rubrics(rubrics: dict[str, str]) -> dict[str, str]:
    if not rubrics:
        raise InputError("rubrics must hold a text for at least one persona")
    for persona, text in rubrics.items():
        if not persona or not isinstance(text, str) or not text.strip():
            raise InputError(f"rubrics: persona {persona!r} needs a name and a text, not {text!r}")
    return dict(rubrics)


def _scale(scale: list[float] | tuple[float, float]) -> tuple[float, float]:
    numbers = isinstance(scale, list | tuple) and all(isinstance(each, int | float) for each in scale)
    if numbers and len(scale) == 2 and -math.inf < scale[0] < scale[1] < math.inf:
        return float(scale[0]), float(scale[1])
    raise InputError(f"scale must be the worst and the best number, such as [1, 5], not {scale!r}")
