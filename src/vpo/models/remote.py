"""Models behind an OpenAI-compatible endpoint: concurrent requests for chat completions, each with a time limit."""

from collections.abc import Awaitable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vpo.models.generate import Completion, Sampling
from vpo.models.locate import EMBEDDED, LocatedModel, locate, with_absolute_files
from vpo.models.prompt_format import PromptFormat
from vpo.util.endpoint import Client, Endpoint, Reply
from vpo.util.errors import InputError
from vpo.util.progress import progress
from vpo.util.retries import RequestError, retry

GENERATORS = ("transformers", "vllm", "endpoint")
CONCURRENT = 16  # requests in flight
TRIES = 3  # of a request
BACKOFF = 2.0  # seconds before a second try, at most


@dataclass(frozen=True)
class Generation:
    """A completion, or why there is none.

    Attributes:
        text: the completion with its prefix.
        tokens: how many were generated; None where the endpoint does not count them.
        failure: why there is no completion.
    """

    text: str
    tokens: int | None
    failure: str | None = None


@dataclass(frozen=True)
class ChatRequest:
    """A prompt for an endpoint.

    Attributes:
        messages: of the chat.
        max_tokens: token budget of the completion.
        seed: reproduces the completion as far as the endpoint honours it.
    """

    messages: Sequence[dict[str, str]]
    max_tokens: int
    seed: int


class RemoteModel:
    """A model behind an endpoint. A request that fails, after some tries, is a failed generation."""

    def __init__(
        self,
        address: str,
        name: str,
        sampling: Sampling,
        *,
        concurrent: int = CONCURRENT,
        timeout: float = 120.0,
        tries: int = TRIES,
    ) -> None:
        """Request the model of a name at an address such as http://localhost:8000/v1; nothing is sent yet."""
        self.endpoint = Endpoint(address, name, concurrent=concurrent, timeout=timeout)
        self.sampling, self.tries = sampling, tries

    def generate(self, requests: Sequence[ChatRequest]) -> list[Generation]:
        """A completion for each request, in order."""
        with self.endpoint.connect() as client:
            futures = [client.submit(self._generate(client, request)) for request in requests]
            return [future.result() for future in futures]

    async def _generate(self, client: Client, request: ChatRequest) -> Generation:
        def attempt() -> Awaitable[Reply]:
            return client.chat(
                request.messages,
                temperature=self.sampling.temperature,
                top_p=self.sampling.top_p,
                max_tokens=request.max_tokens,
                seed=request.seed,
            )

        max_wait = self.endpoint.timeout
        async with client.slots:
            try:
                reply = await retry(attempt, tries=self.tries, backoff=BACKOFF, max_wait=max_wait, seed=request.seed)
            except RequestError as error:  # of the network, the server or the reply
                return Generation("", 0, str(error))
        return Generation(reply.text, reply.completion_tokens)


def request_batches(
    model: RemoteModel, prompts: Sequence[Sequence[dict[str, str]]], known: Collection[int]
) -> Iterator[dict[int, Completion]]:
    """Completions by the index of their prompt, batch by batch, of the prompts that are not known.

    The completions of a batch are yielded before a request of it that failed is raised, so that the caller can keep
    them. Prompt i has the seed of the sampling plus i, whatever batch it is in.
    """
    sampling = model.sampling
    left = [index for index in range(len(prompts)) if index not in known]
    batches = [left[start : start + sampling.batch] for start in range(0, len(left), sampling.batch)]
    for batch in progress(batches, "generating", len(batches)):
        generations = model.generate(
            [ChatRequest(prompts[index], sampling.max_new_tokens, sampling.seed + index) for index in batch]
        )
        pairs = list(zip(batch, generations, strict=True))
        if answered := {index: _completion(each) for index, each in pairs if each.failure is None}:
            yield answered
        if failures := [each.failure for each in generations if each.failure is not None]:
            raise InputError(
                f"{model.endpoint.host}: {len(failures)} of {len(batch)} requests failed: {failures[0]}; "
                "repeat the command to continue"
            )


def _completion(generation: Generation) -> Completion:
    """A server may count no token for a completion without text, where a pool counts its end."""
    return Completion(generation.text, None if generation.tokens is None else max(1, generation.tokens))


def served_name(model: str) -> str:
    """The name of a model at its endpoint: for a local model that of its folder, as `vpo serve` names it."""
    folder = Path(model)
    return folder.absolute().name if folder.exists() else model


def locate_remote(model: str, task: str | None, settings: Mapping[str, Any]) -> LocatedModel:
    """As `locate`, for a model behind an endpoint, which need not be on this machine."""
    if model == EMBEDDED or Path(model).exists():
        return locate(model, task, settings)
    if task is None:
        raise InputError("task must be given with an endpoint whose model is not on this machine")
    return LocatedModel(task, model, PromptFormat(task=task), with_absolute_files(settings, task))


def chosen_generator(generator: str, endpoint: str | None) -> str:
    """The generator of a command, "" for its default; refuses an endpoint without its URL, and a URL without need."""
    generator = generator or ("transformers" if endpoint is None else "endpoint")
    if generator == "endpoint" and endpoint is None:
        raise InputError("generator endpoint needs its URL: give --endpoint URL")
    if generator != "endpoint" and endpoint is not None:
        raise InputError(f"an endpoint needs generator endpoint, not {generator}")
    return generator


def check_remote(*, thinking: bool, prefill: bool | None) -> None:
    """Refuse what an endpoint decides itself."""
    if thinking:
        raise InputError("thinking cannot be set for an endpoint: it is a setting of its server")
    if prefill:
        raise InputError("prefill does not work with an endpoint, which begins completions itself: give --no-prefill")
