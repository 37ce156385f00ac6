"""A model behind an endpoint, as OpenEvolve's ensembles call it.

OpenEvolve chooses the parameters of a request. It is sent by the client that the rest of this library uses: with a time
limit that always holds, and one loop of retries. OpenEvolve's own client retries within its retries, and a request that
is out of time goes on in a thread.
"""

import asyncio
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from openevolve.config import LLMConfig, LLMModelConfig
from openevolve.llm.openai import OpenAILLM

from vpo.models.remote import BACKOFF
from vpo.util.endpoint import Endpoint, Reply
from vpo.util.retries import retry

TIMEOUT = 60.0  # seconds for a request, where the config has no timeout


def use_endpoints(config: LLMConfig) -> None:
    """Have all models of a config that OpenEvolve would call with its own client called with ours."""
    for model in (*config.models, *config.evaluator_models):
        if model.init_client is None and model.provider in (None, "openai"):
            model.init_client = EndpointLLM


class EndpointLLM(OpenAILLM):  # type: ignore[misc]  # untyped
    """A model of OpenEvolve's config.

    Attributes:
        last_usage: tokens of the last reply; None where the server does not count them.
    """

    def __init__(self, config: LLMModelConfig) -> None:
        """Take address, key, time limit and retries from the config; nothing is sent."""
        super().__init__(replace(config, api_key=config.api_key or "none"))
        self.client = None  # OpenEvolve's own must not be used
        self._tries = 1 + (config.retries or 0)
        self._backoff = BACKOFF if config.retry_delay is None else float(config.retry_delay)
        self._endpoint = Endpoint(
            config.api_base, config.name, concurrent=1, timeout=float(config.timeout or TIMEOUT), key=config.api_key
        )
        self.retries, self.timeout = 0, None  # those of OpenEvolve, around `_call_api`

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Keep the connection open between calls."""
        with self._endpoint.connect():
            yield

    async def _call_api(self, params: dict[str, Any]) -> str:
        """Send a request, with retries; raises `RequestError`."""
        options = {name: value for name, value in params.items() if name not in ("model", "messages")}
        with self._endpoint.connect() as client:

            def attempt() -> Awaitable[Reply]:
                return client.chat(params["messages"], **options)

            limit = self._endpoint.timeout
            retried = retry(attempt, tries=self._tries, backoff=self._backoff, max_wait=limit, seed=params.get("seed"))
            reply = await asyncio.wrap_future(client.submit(retried))
        self.last_usage = self._usage(reply)
        return reply.text

    def _usage(self, reply: Reply) -> dict[str, Any] | None:
        if reply.completion_tokens is None:
            return None
        total = reply.completion_tokens if reply.total_tokens is None else reply.total_tokens
        counts = {"completion_tokens": reply.completion_tokens, "total_tokens": total}
        return {**counts, "prompt_tokens": total - reply.completion_tokens, "model": str(self.model)}
