"""Sends the prompts of a judge: concurrently, with retries, within its limits."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any, TypeAlias, TypeVar

from vpo.rewards.judge.config import JudgeConfig
from vpo.rewards.judge.limits import CircuitBreaker, NotSentError, RequestBudget
from vpo.rewards.judge.prompts import TOO_LONG, JudgePrompt, ReplyError
from vpo.util.endpoint import Client, Endpoint, Reply
from vpo.util.retries import RATE_LIMITED, TIMEOUT, RequestError, retry

T = TypeVar("T")

OUT_OF_TIME = "out of time"
PROMPT_STATUSES = (400, 413, 422)  # the fault is the prompt's, not the endpoint's
NO_SCHEMA_STATUSES = (400, 422, 501)  # of endpoints that do not know response_format
SAVE_SECONDS = 1.0  # between calls of `save`, at most
BREAKER_FACTOR = 2  # times concurrent: consecutive failures that open the circuit breaker


@dataclass(frozen=True)
class Judgement:
    """The scores of a prompt's answers by text, or why there are none."""

    scores: Mapping[str, float] = field(default_factory=dict)
    failure: str | None = None


Judgements: TypeAlias = dict[str, Judgement]  # by key of the prompt


class JudgeClient:
    """Requests of a judge.

    Attributes:
        budget: what was spent.
        breaker: stops requests to an endpoint that is down.
        details: the first error message or reply of each kind of failure.
    """

    def __init__(self, config: JudgeConfig) -> None:
        """Configure the endpoint and the limits; nothing is sent."""
        self.config = config
        self.endpoint = Endpoint(config.endpoint, config.model, concurrent=config.concurrent, timeout=config.limit)
        self.budget = RequestBudget(config.max_requests, config.max_tokens)
        self.breaker = CircuitBreaker(BREAKER_FACTOR * config.concurrent, config.pause)
        self.details: dict[str, str] = {}
        self._takes_schema: bool | None = None  # whether the endpoint knows response_format; None until it is known

    def send(
        self, prompts: Sequence[JudgePrompt], deadline: float, save: Callable[[Judgements], Judgements]
    ) -> Judgements:
        """Judgements of all prompts; those that are not there at the deadline are failures.

        Args:
            prompts: with different keys.
            deadline: by time.monotonic().
            save: called in this thread with judgements as they come in, and every second with none; returns those that
                hold.
        """
        judgements: Judgements = {}
        queue: SimpleQueue[tuple[str, Judgement] | None] = SimpleQueue()  # None: all requests have ended
        with self.endpoint.connect() as client:
            future = client.submit(self._send_all(client, prompts, queue))
            future.add_done_callback(lambda _: queue.put(None))
            try:
                while len(judgements) < len(prompts) and time.monotonic() < deadline:
                    batch = _next_batch(queue, min(SAVE_SECONDS, deadline - time.monotonic()))
                    judgements.update(save(dict(each for each in batch if each is not None)))
                    if None in batch:
                        future.result()  # raises what ended the requests, if something did
            finally:
                future.cancel()  # requests that are out of time, or interrupted
        return {prompt.key: judgements.get(prompt.key, Judgement(failure=OUT_OF_TIME)) for prompt in prompts}

    def probe(self, prompt: JudgePrompt) -> Reply:
        """The reply to one prompt, within `limit` seconds, retries included; raises `RequestError`."""
        with self.endpoint.connect() as client:
            return client.submit(self._probe(client, prompt)).result()

    async def _probe(self, client: Client, prompt: JudgePrompt) -> Reply:
        last: RequestError | None = None  # of the endpoint: what the limits say after it tells less

        async def attempt() -> Reply:
            nonlocal last
            try:
                return await self._attempt(client, prompt)
            except RequestError as error:
                last = last if last and isinstance(error, NotSentError) else error
                raise

        limit = self.config.limit
        try:
            async with asyncio.timeout(limit):
                return await retry(
                    attempt, tries=self.config.tries, backoff=self.config.backoff, max_wait=limit, seed=prompt.key
                )
        except (RequestError, TimeoutError):
            raise last or RequestError(TIMEOUT, f"not answered within {limit:g} s") from None

    async def _send_all(self, client: Client, prompts: Sequence[JudgePrompt], queue: "SimpleQueue[Any]") -> None:
        """Send all prompts from inside the event loop: to submit each from another thread is slow."""

        async def send(prompt: JudgePrompt) -> None:
            queue.put((prompt.key, await self._judge(client, prompt)))

        await asyncio.gather(*map(send, prompts))

    async def _judge(self, client: Client, prompt: JudgePrompt) -> Judgement:
        async with client.slots:
            try:
                reply = await retry(
                    lambda: self._attempt(client, prompt),
                    tries=self.config.tries,
                    backoff=self.config.backoff,
                    max_wait=self.config.limit,
                    seed=prompt.key,
                )
            except RequestError as error:
                if error.reason == RATE_LIMITED:  # one is normal; every attempt of a request is a failure
                    self.breaker.failed(error)
                return self._failure(error.reason, str(error))
        return self.judgement(prompt, reply)

    def judgement(self, prompt: JudgePrompt, reply: Reply) -> Judgement:
        """The scores that a reply states, or why it states none."""
        try:
            if reply.truncated:  # scores in half of a thought are not final
                raise ReplyError(TOO_LONG)
            return Judgement(prompt.parse(reply.text))
        except ReplyError as error:
            return self._failure(str(error), repr(reply.text))

    def _failure(self, reason: str, detail: str) -> Judgement:
        self.details.setdefault(reason, detail)
        return Judgement(failure=reason)

    async def _attempt(self, client: Client, prompt: JudgePrompt) -> Reply:
        """Send a prompt once with a JSON schema, and without where the endpoint refuses schemas."""
        if self._takes_schema is not False:
            try:
                reply = await self._request(client, prompt, response_format=prompt.response_format)
                self._takes_schema = True
                return reply
            except RequestError as error:
                if self._takes_schema or error.status not in NO_SCHEMA_STATUSES:
                    raise
        reply = await self._request(client, prompt)
        if self._takes_schema is None:
            self._takes_schema = False
        return reply

    async def _request(self, client: Client, prompt: JudgePrompt, **options: Any) -> Reply:
        """Send one request, if the limits allow it, and account for it."""
        self.breaker.check()
        most = prompt.max_tokens + self.config.reply_tokens
        await self.budget.reserve(most)
        tokens = most  # what is charged where the true number is not known
        try:
            reply = await client.chat(prompt.messages, temperature=0, max_tokens=self.config.reply_tokens, **options)
            tokens = most if reply.total_tokens is None else reply.total_tokens
            self.breaker.succeeded()
            return reply
        except RequestError as error:
            tokens = 0 if error.unbilled else most
            if error.reason != RATE_LIMITED and error.status not in PROMPT_STATUSES:
                self.breaker.failed(error)
            raise
        finally:
            self.budget.settle(most, tokens)


def _next_batch(queue: "SimpleQueue[T]", timeout: float) -> "list[T]":
    """What is in a queue, after a wait for the first; empty where nothing comes."""
    try:
        first = queue.get(timeout=max(0.0, timeout))
    except Empty:
        return []
    return [first, *(queue.get() for _ in range(queue.qsize()))]
