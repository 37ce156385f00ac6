"""Limits on what a judge sends: a budget of requests and tokens, and a circuit breaker."""

import asyncio
import time

from vpo.util.retries import RequestError

REQUESTS_SPENT = "request limit reached"
TOKENS_SPENT = "token limit reached"
DOWN = "endpoint down"


class NotSentError(RequestError):
    """A request that a limit kept from being sent; retrying does not help."""

    def __init__(self, reason: str) -> None:
        """Take the limit as the reason."""
        super().__init__(reason, reason)

    @property
    def retryable(self) -> bool:
        """A limit that is reached stays so, or outlasts the retries."""
        return False


class RequestBudget:
    """Requests and tokens, never more than their limits, however many requests are in flight.

    What a request costs is known only afterwards, so the most that it can cost is reserved until then. A request that
    does not fit waits for the true costs of those in flight. A limit that was reached stays so. Not thread-safe: all
    is done in one event loop at a time.

    Attributes:
        requests: sent so far.
        tokens: used so far.
        exhausted: the limit that is reached, if one is.
    """

    def __init__(self, max_requests: int | None, max_tokens: int | None) -> None:
        """Take the limits; None for none."""
        self.max_requests, self.max_tokens = max_requests, max_tokens
        self.requests = self.tokens = 0
        self.exhausted: str | None = None
        self._reserved = 0
        self._waiters: list[asyncio.Future[None]] = []

    async def reserve(self, tokens: int) -> None:
        """Count a request and reserve the most tokens that it can cost; raises `NotSentError` beyond a limit."""
        while not self.exhausted and not self._fits(tokens):
            if not self._reserved:
                self._exhaust(TOKENS_SPENT)
                break
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter
        if self.requests == self.max_requests:
            self._exhaust(REQUESTS_SPENT)
        if self.exhausted:
            raise NotSentError(self.exhausted)
        self.requests += 1
        self._reserved += tokens

    def settle(self, reserved: int, used: int) -> None:
        """Replace the reservation of a request by its true cost."""
        self._reserved -= reserved
        self.tokens += used
        self._wake()

    def _fits(self, tokens: int) -> bool:
        return self.max_tokens is None or self.tokens + self._reserved + tokens <= self.max_tokens

    def _exhaust(self, reason: str) -> None:
        self.exhausted = self.exhausted or reason
        self._wake()

    def _wake(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()


class CircuitBreaker:
    """Stops requests after some consecutive failures, and lets a single one through after each pause.

    Attributes:
        opened: how often it has stopped them.
        error: the last failure that it counted.
    """

    def __init__(self, max_failures: int, pause: float) -> None:
        """Take the consecutive failures that open it, and the pause in seconds."""
        self.max_failures, self.pause = max_failures, pause
        self.opened = 0
        self.error: RequestError | None = None
        self._failures = 0
        self._retry_at = 0.0

    def check(self) -> None:
        """Raise `NotSentError` while it is open; the first caller after a pause passes."""
        if self._failures < self.max_failures:
            return
        if time.monotonic() < self._retry_at:
            raise NotSentError(DOWN)
        self._retry_at = time.monotonic() + self.pause

    def failed(self, error: RequestError) -> None:
        """Count a failure."""
        self.error = error
        self._failures += 1
        if self._failures == self.max_failures:
            self.opened += 1
        if self._failures >= self.max_failures:
            self._retry_at = time.monotonic() + self.pause

    def succeeded(self) -> None:
        """Forget all failures."""
        self._failures = 0
