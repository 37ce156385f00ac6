"""Retries of requests, with exponential backoff."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import TypeVar

from vpo.util.endpoint import RequestError

T = TypeVar("T")


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
