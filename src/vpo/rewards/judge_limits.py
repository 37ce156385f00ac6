"""What a judge may spend, and when it stops asking an endpoint that does not answer."""

import asyncio
import time

from vpo.util.endpoint import RequestError

REQUESTS_SPENT = "request limit reached"
TOKENS_SPENT = "token limit reached"
DOWN = "endpoint down"


class Spending:
    """Requests and tokens, never more than their limits.

    What a request will cost is not known beforehand, so the most that it can cost is set aside until it is known. Where
    that is too much while others are under way, their true costs are waited for. Once a limit is reached it stays so.
    All is done in one event loop at a time.

    Attributes:
        requests: that were sent.
        tokens: that were paid for.
        over: the limit that is reached, if one is.
    """

    def __init__(self, max_requests: int | None, max_tokens: int | None) -> None:
        """Take the limits; None for none."""
        self.max_requests, self.max_tokens = max_requests, max_tokens
        self.requests = self.tokens = 0
        self.over: str | None = None
        self._aside = 0
        self._waiting: list[asyncio.Future[None]] = []

    async def claim(self, most: int) -> None:
        """Count a request, and set aside the most tokens that it can cost; raise where there is nothing left."""
        while self.max_tokens is not None and self.tokens + self._aside + most > self.max_tokens and not self.over:
            if not self._aside:
                self._end(TOKENS_SPENT)
                break
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            await waiter
        if self.requests == self.max_requests:
            self._end(REQUESTS_SPENT)
        if self.over:
            raise UnspentError(self.over)
        self.requests += 1
        self._aside += most

    def settle(self, most: int, tokens: int) -> None:
        """Count what a request did cost."""
        self._aside -= most
        self.tokens += tokens
        self._wake()

    def _end(self, reason: str) -> None:
        self.over = self.over or reason
        self._wake()

    def _wake(self) -> None:
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)
        self._waiting.clear()


class UnspentError(RequestError):
    """A request was not sent."""

    def __init__(self, reason: str) -> None:
        """Take the reason."""
        super().__init__(reason, reason)

    @property
    def retryable(self) -> bool:
        """To try again does not help."""
        return False


class Breaker:
    """Stops asking an endpoint after some failures on end, and lets a single ask through after a pause.

    Attributes:
        opened: how often it has stopped.
    """

    def __init__(self, failures: int, pause: float) -> None:
        """Take how many failures on end are enough, and the seconds of the pause."""
        self.enough, self.pause = failures, pause
        self.opened = 0
        self._failures = 0
        self._until = 0.0

    def check(self) -> None:
        """Raise where the endpoint is not to be asked; the first who comes after a pause may try."""
        if self._failures < self.enough:
            return
        if time.monotonic() < self._until:
            raise UnspentError(DOWN)
        self._until = time.monotonic() + self.pause

    def failed(self) -> None:
        """Count a failure."""
        self._failures += 1
        if self._failures == self.enough:
            self.opened += 1
        if self._failures >= self.enough:
            self._until = time.monotonic() + self.pause

    def worked(self) -> None:
        """Forget all failures."""
        self._failures = 0
