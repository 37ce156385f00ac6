"""Client of an OpenAI-compatible endpoint: concurrent chat requests, each with a timeout that always holds.

Requests run in an event loop in a thread of its own. A request that takes too long is cancelled there, even where the
server keeps sending a byte now and then, which a client's own timeout (per read) does not notice.
"""

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

from vpo.util.errors import InputError
from vpo.util.files import storable
from vpo.util.packages import require
from vpo.util.retries import (
    CUT_OFF,
    NO_TEXT,
    TIMEOUT,
    UNREACHABLE,
    RequestError,
    failure_reason,
    retry_after_seconds,
)

NO_KEY = "none"  # sent where there is no key: the client insists on one
CLOSE_TIMEOUT = 5.0  # seconds
MAX_REPLY_BYTES = 16 * 2**20

T = TypeVar("T")


@dataclass(frozen=True)
class Reply:
    """A chat completion.

    Attributes:
        text: content of the message.
        completion_tokens: generated tokens; None where the server does not count.
        total_tokens: these and the prompt's; None where the server does not count.
        truncated: whether it was cut off at max_tokens.
    """

    text: str
    completion_tokens: int | None
    total_tokens: int | None
    truncated: bool = False


def check_address(address: str) -> None:
    """Refuse what is no address of a server, without repeating it: it may hold a password."""
    try:
        parts = urlsplit(address)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:  # a port that is no number
        valid = False
    if not valid:
        raise InputError("endpoint must be an address such as http://localhost:8000/v1")


class Endpoint:
    """A model behind an endpoint."""

    def __init__(self, address: str, model: str, *, concurrent: int, timeout: float, key: str | None = None) -> None:
        """Configure the endpoint; nothing is sent.

        Args:
            address: base URL, such as http://localhost:8000/v1.
            model: its name there.
            concurrent: the most requests in flight.
            timeout: seconds for one request.
            key: for the API; None for OPENAI_API_KEY of the environment, if one is needed.
        """
        check_address(address)
        require("openai", "an endpoint", extra=None)  # a slow import: not within the timeout of the first request
        self.address, self.model, self.concurrent, self.timeout = address, model, concurrent, timeout
        self.key = key
        self._lock = threading.Lock()
        self._client: Client | None = None
        self._users = 0

    @property
    def host(self) -> str:
        """Host and port, for messages: an address may hold a password."""
        return urlsplit(self.address).netloc.rpartition("@")[2]

    @contextmanager
    def connect(self) -> Iterator["Client"]:
        """Open a client. Threads that are connected at the same time share one; the last to leave closes it.

        So there is nothing to close between calls, and the process may fork there.
        """
        with self._lock:
            client = self._client = self._client or Client(self)
            self._users += 1
        try:
            yield client
        finally:
            with self._lock:  # held until it is closed, so that there are never two event loops
                self._users -= 1
                if self._users == 0:
                    self._client = None
                    client.close()


class Client:
    """Connections to an endpoint, and the event loop that they belong to.

    Attributes:
        slots: semaphore of the requests in flight. A caller holds a slot across its retries.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        """Start the event loop."""
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient

        self.endpoint = endpoint
        key = (endpoint.key or os.environ.get("OPENAI_API_KEY", "")).strip()
        self._key = "" if key == NO_KEY else key
        self.slots = asyncio.Semaphore(endpoint.concurrent)
        self._openai = AsyncOpenAI(
            base_url=endpoint.address,
            api_key=self._key or NO_KEY,
            timeout=endpoint.timeout,
            max_retries=0,
            default_headers={"Accept-Encoding": "identity"},  # no small reply that decompresses into a large one
            # A redirect would be a request that is not counted, and would send the key to another host.
            http_client=DefaultAsyncHttpxClient(follow_redirects=False, event_hooks={"response": [_limit_size]}),
        )
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="vpo-endpoint")
        self._thread.start()

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> "Future[T]":
        """Run a coroutine in the event loop, from any thread."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    async def chat(self, messages: Sequence[dict[str, str]], **options: Any) -> Reply:
        """Send one request for a chat completion, without retries; raises `RequestError`."""
        import openai

        timeout = self.endpoint.timeout
        body = {"model": self.endpoint.model, "messages": list(messages), **options}
        try:
            async with asyncio.timeout(timeout):
                # client.chat.completions.create validates every field, which takes a third of its time.
                response = await self._openai.post("/chat/completions", body=body, cast_to=object)
            return _reply(response)
        except (TimeoutError, openai.APITimeoutError):
            raise RequestError(TIMEOUT, f"TimeoutError: not answered within {timeout:g} s") from None
        except openai.APIStatusError as error:
            retry_after = retry_after_seconds(error.response.headers.get("retry-after"))
            reason, status = failure_reason(error.status_code), error.status_code
            raise RequestError(reason, self._detail(error), status=status, retry_after=retry_after) from None
        except openai.APIConnectionError as error:
            unreachable = type(error.__cause__).__name__ == "ConnectError"
            detail = self._detail(error, _first_cause(error))
            raise RequestError(UNREACHABLE if unreachable else CUT_OFF, detail) from None
        except Exception as error:  # whatever the client raises on a malformed reply
            raise RequestError(NO_TEXT, self._detail(error)) from None

    def _detail(self, error: Exception, cause: BaseException | None = None) -> str:
        """The error as text without the API key: some servers repeat it, and the text is logged."""
        text = f"{type(error).__name__}: {error}" + (f" ({type(cause).__name__}: {cause})" if cause else "")
        return text.replace(self._key, "…") if self._key else text

    def close(self) -> None:
        """Cancel all requests and end the event loop."""
        with suppress(TimeoutError):
            self.submit(self._cancel_all()).result(CLOSE_TIMEOUT)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CLOSE_TIMEOUT)
        if not self._thread.is_alive():
            self._loop.close()

    async def _cancel_all(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._openai.close()


def _first_cause(error: BaseException) -> BaseException:
    """What a "connection error" was: connection refused, an unknown host, a bad certificate."""
    seen = [error]
    while (cause := seen[-1].__cause__ or seen[-1].__context__) is not None and cause not in seen:
        seen.append(cause)
    return seen[-1]


async def _limit_size(response: Any) -> None:
    """Replace the stream of a response by one that raises beyond MAX_REPLY_BYTES."""
    library: Any = sys.modules[type(response).__module__.partition(".")[0]]  # httpx, or httpx2 for a later openai
    stream = response.stream

    class LimitedStream(library.AsyncByteStream):  # type: ignore[misc]  # whichever library it is
        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for chunk in stream:
                size += len(chunk)
                if size > MAX_REPLY_BYTES:
                    raise ValueError(f"the reply is larger than {MAX_REPLY_BYTES:,} bytes")
                yield chunk

        async def aclose(self) -> None:
            await stream.aclose()

    response.stream = LimitedStream()


def _reply(response: Any) -> Reply:
    choice = response["choices"][0]
    text = choice["message"]["content"]
    if not isinstance(text, str):
        raise ValueError("the answer has no text")
    usage = response.get("usage")
    truncated = choice.get("finish_reason") == "length"
    return Reply(storable(text), _count(usage, "completion_tokens"), _count(usage, "total_tokens"), truncated)


def _count(usage: Any, name: str) -> int | None:
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
