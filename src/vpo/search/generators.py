"""Generators write the completions of a search: transformers or vLLM in this process, or an endpoint."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Protocol

from vpo.models.forced_tags import ForcedTags
from vpo.models.generate import Completion, Sampling, complete
from vpo.models.policy import Policy
from vpo.models.remote import ChatRequest, Generation, RemoteModel
from vpo.models.vllm_model import VllmModel
from vpo.search.operators import GenerationRequest
from vpo.util.errors import InputError
from vpo.util.grouping import group_by

MAX_FAILED_BATCHES = 3  # in a row, before a search stops


class Generator(Protocol):
    """Writes completions.

    Attributes:
        unsupported: operators that it cannot carry out, and why.
    """

    unsupported: ClassVar[Mapping[str, str]]

    def generate(self, requests: Sequence[GenerationRequest], seed: int) -> list[Generation]:
        """One completion for each request."""


class TransformersGenerator:
    """A model in this process, with transformers."""

    unsupported: ClassVar[Mapping[str, str]] = {}

    def __init__(self, policy: Policy, sampling: Sampling, forced: ForcedTags | None = None) -> None:
        """Generate with a loaded model, and force tags; the seed of `sampling` is not used."""
        self.policy, self.sampling, self.forced = policy, sampling, forced

    def generate(self, requests: Sequence[GenerationRequest], seed: int) -> list[Generation]:
        """The completions depend on the requests and the seed alone. Those with an equal token budget are one batch."""
        by_length = group_by(range(len(requests)), lambda index: _length(requests[index], self.sampling))
        made: dict[int, Generation] = {}
        for number, (length, indices) in enumerate(by_length.items()):
            sampling = replace(self.sampling, seed=seed + number, max_new_tokens=length)
            made.update(zip(indices, self._complete([requests[index] for index in indices], sampling), strict=True))
        return [made[index] for index in range(len(requests))]

    def _complete(self, requests: Sequence[GenerationRequest], sampling: Sampling) -> list[Generation]:
        completions = complete(
            self.policy,
            [request.messages for request in requests],
            sampling,
            [request.prefix for request in requests],
            [request.avoided for request in requests],
            forced=self.forced,
            quiet=True,
        )
        return _begun(requests, completions)


class VllmGenerator:
    """A model in this process, with vLLM."""

    unsupported: ClassVar[Mapping[str, str]] = {
        "branch": "forbids a token at one position, which vLLM does not support"
    }

    def __init__(self, model: VllmModel) -> None:
        """Generate with a loaded model; the seed of its sampling is not used."""
        self.model = model

    def generate(self, requests: Sequence[GenerationRequest], seed: int) -> list[Generation]:
        """Completion i is sampled with `seed + i`."""
        completions = self.model.complete(
            [request.messages for request in requests],
            [seed + index for index in range(len(requests))],
            [request.prefix for request in requests],
            [_length(request, self.model.sampling) for request in requests],
        )
        return _begun(requests, completions)


class EndpointGenerator:
    """A model behind an OpenAI-compatible endpoint.

    A request that fails is recorded as a failed generation. The search stops where no request was ever answered, or
    where several whole batches in a row fail.
    """

    unsupported: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("regrow", "branch", "extend"), "starts the completion with a prefix, which a chat endpoint does not support"
    )

    def __init__(self, address: str, model: str, sampling: Sampling, **settings: Any) -> None:
        """Generate with the model of a name behind an address; the settings are those of `RemoteModel`."""
        self.remote = RemoteModel(address, model, sampling, **settings)
        self.ever_answered = False
        self.failed_batches = 0  # in a row

    def generate(self, requests: Sequence[GenerationRequest], seed: int) -> list[Generation]:
        """Reproducible only as far as the endpoint honours the seed."""
        generations = self.remote.generate(
            [
                ChatRequest(request.messages, _length(request, self.remote.sampling), seed + index)
                for index, request in enumerate(requests)
            ]
        )
        failures = [generation.failure for generation in generations if generation.failure]
        if len(failures) < len(generations):
            self.ever_answered, self.failed_batches = True, 0
            return generations
        self.failed_batches += 1
        if not self.ever_answered or self.failed_batches >= MAX_FAILED_BATCHES:
            host = self.remote.endpoint.host  # the whole address may hold a password
            raise InputError(f"{host}: none of {len(generations)} requests was answered: {failures[0]}")
        return generations


def _begun(requests: Sequence[GenerationRequest], completions: Sequence[Completion]) -> list[Generation]:
    """Completions with the prefixes that they continue."""
    return [
        Generation(request.prefix + each.text, each.tokens) for request, each in zip(requests, completions, strict=True)
    ]


def _length(request: GenerationRequest, sampling: Sampling) -> int:
    """The token budget of a completion."""
    return sampling.max_new_tokens if request.max_tokens is None else request.max_tokens
