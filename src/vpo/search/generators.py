"""Generators write the completions of a search: transformers or vLLM in this process, or an endpoint."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Protocol

from vpo.models.forced_tags import ForcedTags
from vpo.models.generate import Sampling, complete, render_prompts
from vpo.models.policy import Policy
from vpo.models.remote import ChatRequest, Generation, RemoteModel
from vpo.search.operators import GenerationRequest
from vpo.util.errors import InputError
from vpo.util.grouping import group_by
from vpo.util.packages import require

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
        return [
            Generation(request.prefix + each.text, each.tokens)
            for request, each in zip(requests, completions, strict=True)
        ]


class VllmGenerator:
    """A model in this process, with vLLM. Not tested yet with vLLM itself."""

    unsupported: ClassVar[Mapping[str, str]] = {
        "branch": "forbids a token at one position, which vLLM does not support"
    }

    def __init__(self, path: str, sampling: Sampling, opening: str = "") -> None:
        """Load a model from its folder, or by its name on the hub; `opening` begins completions without a prefix."""
        self.vllm = require("vllm", "generator vllm", extra=None)
        self.model, self.sampling, self.opening = self.vllm.LLM(model=path), sampling, opening

    def generate(self, requests: Sequence[GenerationRequest], seed: int) -> list[Generation]:
        """Completion i is sampled with `seed + i`."""
        tokenizer = self.model.get_tokenizer()
        prefixes = [request.prefix or self.opening for request in requests]
        opening_tokens = len(tokenizer(self.opening, add_special_tokens=False)["input_ids"]) if self.opening else 0
        counted = [0 if request.prefix else opening_tokens for request in requests]  # as where they are forced
        prompts = render_prompts(
            tokenizer,
            [request.messages for request in requests],
            prefixes,
            thinking=self.sampling.thinking,
        )
        parameters = [
            self.vllm.SamplingParams(
                temperature=self.sampling.temperature,
                top_p=self.sampling.top_p,
                max_tokens=max(1, _length(request, self.sampling) - counted[index]),
                seed=seed + index,
            )
            for index, request in enumerate(requests)
        ]
        outputs = [each.outputs[0] for each in self.model.generate(prompts, parameters, use_tqdm=False)]
        return [
            Generation(prefix + output.text, count + len(output.token_ids))
            for prefix, count, output in zip(prefixes, counted, outputs, strict=True)
        ]


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


def _length(request: GenerationRequest, sampling: Sampling) -> int:
    """The token budget of a completion."""
    return sampling.max_new_tokens if request.max_tokens is None else request.max_tokens
