"""Errors of requests, and retries with exponential backoff."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from email.utils import parsedate_to_datetime
from random import Random
from typing import TypeVar

T = TypeVar("T")

# Why a request failed.
TIMEOUT = "timeout"
UNREACHABLE = "unreachable"
CUT_OFF = "cut off"
RATE_LIMITED = "rate limited"
SERVER_ERROR = "server error"
REFUSED = "refused"
NO_TEXT = "no text in the reply"

ADVICE = {
    TIMEOUT: "raise its limit, or send fewer requests at a time",
    UNREACHABLE: "is the server running, and is the address right?",
    CUT_OFF: "see the log of the server",
    RATE_LIMITED: "send fewer requests at a time",
    SERVER_ERROR: "see the log of the server",
    REFUSED: "check the address and the name of the model",
    NO_TEXT: "is it an OpenAI-compatible address, such as http://localhost:8000/v1?",
}
KEY_STATUSES = (401, 403)
RETRYABLE_STATUSES = (408, 409, 425)  # 4xx that may succeed the next time; 429 is RATE_LIMITED


class RequestError(Exception):
    """A request that failed.

    Attributes:
        reason: one of the constants above, or of a caller's own; failures are counted by it.
        status: HTTP status of the reply, if there was one.
        retry_after: seconds to wait before the next request, if the server says so.
    """

    def __init__(
        self, reason: str, detail: str, *, status: int | None = None, retry_after: float | None = None
    ) -> None:
        """Take the reason, and as detail what the client or the server said."""
        super().__init__(detail[:300])
        self.reason, self.status, self.retry_after = reason, status, retry_after

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed later."""
        return self.reason != REFUSED or self.status in RETRYABLE_STATUSES

    @property
    def advice(self) -> str:
        """What to check."""
        if self.status in KEY_STATUSES:
            return "check OPENAI_API_KEY"
        return ADVICE.get(self.reason, "")

    @property
    def unbilled(self) -> bool:
        """Whether it is certain that no tokens were generated."""
        return self.status is not None or self.reason == UNREACHABLE


async def retry(attempt: Callable[[], Awaitable[T]], *, tries: int, backoff: float, max_wait: float, seed: object) -> T:
    """Result of the first attempt that succeeds; raises the last attempt's `RequestError`.

    The wait before attempt k + 1 is backoff · 2^(k − 1) seconds, less a jitter of up to a half that follows from the
    seed, or what the server's Retry-After says if that is longer. A Retry-After beyond `max_wait` ends the attempts.

    Args:
        attempt: makes one request.
        tries: the most attempts, 1 or more.
        backoff: seconds.
        max_wait: the longest wait, in seconds.
        seed: of the jitter.
    """
    for number in range(tries):
        try:
            return await attempt()
        except RequestError as error:
            retry_after = error.retry_after or 0.0
            if not error.retryable or number == tries - 1 or retry_after > max_wait:
                raise
            wait = backoff * 2**number * Random(f"{seed}/{number}").uniform(0.5, 1.0)
            await asyncio.sleep(max(retry_after, min(wait, max_wait)))
    raise AssertionError("tries is 1 or more")


def failure_reason(status: int) -> str:
    """The reason that an HTTP status of 3xx, 4xx or 5xx stands for."""
    if status == 429:
        return RATE_LIMITED
    return SERVER_ERROR if status >= 500 else REFUSED


def retry_after_seconds(header: str | None) -> float | None:
    """Seconds of a Retry-After header, a number or a date; None for one that cannot be read."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(header).timestamp() - time.time()
        except ValueError:
            return None
    return max(seconds, 0.0) if math.isfinite(seconds) else None
