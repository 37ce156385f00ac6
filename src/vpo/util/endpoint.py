"""Asking an OpenAI-compatible endpoint: several asks at once, each within a limit, and again where that may help.

Asks run in an event loop in a thread of its own, which lives as long as somebody has a line open: there an ask that
takes too long is truly ended, even where the server sends a byte now and then, and no thread is left behind.
"""

import asyncio
import math
import os
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from random import Random
from typing import Any, TypeVar

from vpo.util.errors import InputError
from vpo.util.files import storable

# Why an ask came to nothing.
TIMEOUT = "timeout"
UNREACHABLE = "unreachable"
CUT_OFF = "cut off"
RATE_LIMITED = "rate limited"
SERVER_ERROR = "server error"
REFUSED = "refused"
NO_TEXT = "no text in the reply"

CLOSING = 5.0  # seconds for connections to be closed
LARGEST = 16 * 2**20  # bytes of a reply
PASSING = (408, 409, 425)  # statuses of requests that may pass the next time

T = TypeVar("T")


class UnansweredError(Exception):
    """An ask came to nothing.

    Attributes:
        reason: one of a few, to be counted.
        status: of the reply, if there was one.
        after: seconds after which the server wants to be asked again, if it says so.
    """

    def __init__(self, reason: str, detail: str, *, status: int | None = None, after: float | None = None) -> None:
        """Take the reason, and what was raised."""
        super().__init__(detail[:300])
        self.reason, self.status, self.after = reason, status, after

    @property
    def passing(self) -> bool:
        """Whether to ask once more may help."""
        return self.reason != REFUSED or self.status in PASSING

    @property
    def free(self) -> bool:
        """Whether it is certain that nothing was generated, and so nothing is to be paid."""
        return self.status is not None or self.reason == UNREACHABLE


@dataclass(frozen=True)
class Reply:
    """What an endpoint answered.

    Attributes:
        text: of the message.
        written: tokens that were generated; None where nobody counted.
        total: these and the tokens of the prompt; None where nobody counted.
        whole: whether it came to its end, and was not cut off at the most tokens that it may have.
    """

    text: str
    written: int | None
    total: int | None
    whole: bool = True


class Endpoint:
    """A model behind an endpoint."""

    def __init__(self, address: str, model: str, *, at_once: int, limit: float) -> None:
        """Take the address, such as http://localhost:8000/v1, the model's name there, and the limits of asks.

        Args:
            address: of the endpoint. A key is taken from the environment: OPENAI_API_KEY.
            model: its name.
            at_once: how many asks may be under way.
            limit: seconds for one of them.
        """
        try:
            import openai  # noqa: F401  # slow, and needed only where something is asked
        except ImportError:
            raise InputError("an endpoint needs the package openai: pip install openai") from None
        self.address, self.model, self.at_once, self.limit = address, model, at_once, limit
        self._lock = threading.Lock()
        self._line: Line | None = None
        self._users = 0

    @contextmanager
    def line(self) -> Iterator["Line"]:
        """Give a line to the endpoint, the same to all who want one at the same time."""
        with self._lock:
            line = self._line = self._line or Line(self)
            self._users += 1
        try:
            yield line
        finally:
            with self._lock:  # until it is closed, so that there are never two loops
                self._users -= 1
                if self._users == 0:
                    self._line = None
                    line.close()


class Line:
    """Connections to an endpoint, and the event loop that they belong to.

    Attributes:
        slots: of asks that may be under way.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        """Start the loop."""
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient

        self.endpoint = endpoint
        self._key = os.environ.get("OPENAI_API_KEY", "").strip()
        self.slots = asyncio.Semaphore(endpoint.at_once)
        self._client = AsyncOpenAI(
            base_url=endpoint.address,
            api_key=self._key or "none",
            timeout=endpoint.limit,
            max_retries=0,
            default_headers={"Accept-Encoding": "identity"},  # so that a small reply cannot unfold into a large one
            # To go where a server points would be a request that nobody counts, with the key, to who knows whom.
            http_client=DefaultAsyncHttpxClient(follow_redirects=False, event_hooks={"response": [_bound]}),
        )
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="vpo-endpoint")
        self._thread.start()

    def submit(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Do something in the loop, and return what will come of it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def once(self, messages: Sequence[dict[str, str]], **options: Any) -> Reply:
        """Return the answer to an ask, or raise why there is none."""
        import openai

        limit = self.endpoint.limit
        body = {"model": self.endpoint.model, "messages": list(messages), **options}
        try:
            async with asyncio.timeout(limit):
                # The client's own method would check what is sent and read, field by field, for a third of its time.
                answer = await self._client.post("/chat/completions", body=body, cast_to=object)
            return _reply(answer)
        except (TimeoutError, openai.APITimeoutError):
            raise UnansweredError(TIMEOUT, f"TimeoutError: not answered within {limit:g} s") from None
        except openai.APIStatusError as error:
            headers = error.response.headers
            after = _seconds(headers.get("retry-after"))
            raise UnansweredError(
                _reason(error.status_code), self._said(error), status=error.status_code, after=after
            ) from None
        except openai.APIConnectionError as error:
            refused = type(error.__cause__).__name__ == "ConnectError"
            raise UnansweredError(UNREACHABLE if refused else CUT_OFF, self._said(error)) from None
        except Exception as error:  # whatever the client makes of a reply that is none
            raise UnansweredError(NO_TEXT, self._said(error)) from None

    def _said(self, error: Exception) -> str:
        """Return what was raised, without the key: some servers repeat it, and what they say is logged."""
        text = f"{type(error).__name__}: {error}"
        return text.replace(self._key, "…") if self._key else text

    def close(self) -> None:
        """End what is under way, and the loop."""
        with suppress(TimeoutError):
            self.submit(self._end()).result(CLOSING)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CLOSING)
        if not self._thread.is_alive():
            self._loop.close()

    async def _end(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._client.close()


async def retried(
    attempt: Callable[[], Awaitable[T]], *, tries: int, backoff: float, longest: float, seed: object
) -> T:
    """Return what one of several attempts gives, or raise what the last one does.

    Between attempts it waits twice as long each time, less up to a half that follows from the seed, or as long as the
    server wants; one that wants to be left alone for longer than the longest wait is given up.
    """
    for turn in range(tries):
        try:
            return await attempt()
        except UnansweredError as error:
            after = error.after or 0.0
            if not error.passing or turn == tries - 1 or after > longest:
                raise
            wait = backoff * 2**turn * Random(f"{seed}/{turn}").uniform(0.5, 1.0)
            await asyncio.sleep(max(after, min(wait, longest)))
    raise AssertionError("there is at least one try")


def check_asks(at_once: int, limit: float, tries: int, backoff: float) -> None:
    """Refuse numbers that mean nothing."""
    for name, value in {"at_once": at_once, "tries": tries}.items():
        if value < 1:
            raise InputError(f"{name} must be 1 or more, not {value}")
    if not 0 < limit < math.inf:
        raise InputError(f"limit must be greater than 0 and finite, not {limit}")
    if not 0 <= backoff < math.inf:
        raise InputError(f"backoff must be 0 or more and finite, not {backoff}")


async def _bound(response: Any) -> None:
    """Let a response be read up to a size, and no further."""
    library: Any = sys.modules[type(response).__module__.partition(".")[0]]  # httpx, or httpx2 for a later openai
    whole = response.stream

    class Bounded(library.AsyncByteStream):  # type: ignore[misc]  # whichever it is
        async def __aiter__(self) -> AsyncIterator[bytes]:
            left = LARGEST
            async for part in whole:
                left -= len(part)
                if left < 0:
                    raise ValueError(f"the reply is larger than {LARGEST:,} bytes")
                yield part

        async def aclose(self) -> None:
            await whole.aclose()

    response.stream = Bounded()


def _reply(answer: Any) -> Reply:
    choice = answer["choices"][0]
    text = choice["message"]["content"]
    if not isinstance(text, str):
        raise ValueError("the answer has no text")
    usage = answer.get("usage")
    whole = choice.get("finish_reason") != "length"
    return Reply(storable(text), _count(usage, "completion_tokens"), _count(usage, "total_tokens"), whole)


def _count(usage: Any, name: str) -> int | None:
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _reason(status: int) -> str:
    if status == 429:
        return RATE_LIMITED
    return SERVER_ERROR if status >= 500 else REFUSED


def _seconds(after: str | None) -> float | None:
    """Return the seconds of a Retry-After, which may be a date; None for one that cannot be read."""
    if after is None:
        return None
    try:
        found = float(after)
    except ValueError:
        try:
            found = parsedate_to_datetime(after).timestamp() - time.time()
        except ValueError:
            return None
    return max(found, 0.0) if math.isfinite(found) else None
