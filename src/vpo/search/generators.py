"""What writes the completions of a search: a model in this process, or one behind an endpoint."""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

from vpo.models.generate import Sampling, complete, written_prompts
from vpo.models.policy import Policy
from vpo.search.operators import GenerationRequest
from vpo.util.endpoint import Client, Endpoint, Reply, RequestError
from vpo.util.errors import InputError
from vpo.util.retries import retry

SILENT = 3  # batches on end without any answer are enough
BACKOFF = 2.0  # seconds before a second try, at most


@dataclass(frozen=True)
class Generation:
    """What came of an ask.

    Attributes:
        text: the completion, its prefix included.
        tokens: that were generated; None where nobody knows.
        failure: why there is none, if so.
    """

    text: str
    tokens: int | None
    failure: str | None = None


class Generator(Protocol):
    """Writes completions.

    Attributes:
        unable: operators that it cannot carry out, and why.
    """

    unable: ClassVar[Mapping[str, str]]

    def write(self, asks: Sequence[GenerationRequest], seed: int) -> list[Generation]:
        """Return a completion for each ask."""


class TransformersGenerator:
    """A model in this process, by transformers."""

    unable: ClassVar[Mapping[str, str]] = {}

    def __init__(self, policy: Policy, sampling: Sampling) -> None:
        """Take the model and how it is sampled."""
        self.policy, self.sampling = policy, sampling

    def write(self, asks: Sequence[GenerationRequest], seed: int) -> list[Generation]:
        """Return completions, which depend on the asks and the seed alone."""
        drawn = complete(
            self.policy,
            [ask.messages for ask in asks],
            replace(self.sampling, seed=seed),
            [ask.prefix for ask in asks],
            [ask.avoided for ask in asks],
            quiet=True,
        )
        return [Generation(ask.prefix + text, tokens) for ask, (text, tokens) in zip(asks, drawn, strict=True)]


class VllmGenerator:
    """A model in this process, by vLLM. It has not been run by us yet."""

    unable: ClassVar[Mapping[str, str]] = {"branch": "bars a token at one place, which vLLM does not do"}

    def __init__(self, path: str, sampling: Sampling) -> None:
        """Take the folder of the model, or its name on the hub, and how it is sampled."""
        try:
            from vllm import LLM
        except ImportError:
            raise InputError("generator vllm needs vLLM: pip install vllm, or leave it to transformers") from None
        self.model, self.sampling = LLM(model=path), sampling

    def write(self, asks: Sequence[GenerationRequest], seed: int) -> list[Generation]:
        """Return completions, each drawn from a seed of its own."""
        from vllm import SamplingParams

        texts = written_prompts(
            self.model.get_tokenizer(),
            [ask.messages for ask in asks],
            [ask.prefix for ask in asks],
            thinking=self.sampling.thinking,
        )
        drawn = [
            SamplingParams(
                temperature=self.sampling.temperature,
                top_p=self.sampling.top_p,
                max_tokens=self.sampling.max_new_tokens,
                seed=seed + place,
            )
            for place in range(len(asks))
        ]
        found = [each.outputs[0] for each in self.model.generate(texts, drawn, use_tqdm=False)]
        return [Generation(ask.prefix + one.text, len(one.token_ids)) for ask, one in zip(asks, found, strict=True)]


class EndpointGenerator:
    """A model behind an OpenAI-compatible endpoint, asked several times at once, each time within a limit.

    An ask that fails, after some tries, is a failure that is recorded. Where nothing was ever answered, or whole
    batches fail one after another, the search stops.
    """

    unable: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("regrow", "branch", "extend"), "begins a completion, which an endpoint does not let others do"
    )

    def __init__(
        self, address: str, model: str, sampling: Sampling, *, at_once: int = 16, limit: float = 120.0, tries: int = 3
    ) -> None:
        """Take the address, such as http://localhost:8000/v1, and the name of the model there."""
        self.endpoint = Endpoint(address, model, concurrent=at_once, timeout=limit)
        self.sampling, self.tries = sampling, tries
        self.answered, self.silent = False, 0  # whether it ever answered, and batches on end in which it did not

    def write(self, asks: Sequence[GenerationRequest], seed: int) -> list[Generation]:
        """Return completions; the same again only as far as the endpoint keeps to the seed."""
        with self.endpoint.connect() as client:
            under_way = [client.submit(self._write(client, ask, seed + place)) for place, ask in enumerate(asks)]
            found = [each.result() for each in under_way]
        failures = [each.failure for each in found if each.failure]
        self.answered |= len(failures) < len(found)
        self.silent = self.silent + 1 if len(failures) == len(found) else 0
        if self.silent and (not self.answered or self.silent >= SILENT):
            raise InputError(f"{self.endpoint.address}: none of {len(found)} asks was answered: {failures[0]}")
        return found

    async def _write(self, client: Client, ask: GenerationRequest, seed: int) -> Generation:
        def attempt() -> Awaitable[Reply]:
            return client.chat(
                ask.messages,
                temperature=self.sampling.temperature,
                top_p=self.sampling.top_p,
                max_tokens=self.sampling.max_new_tokens,
                seed=seed,
            )

        longest = self.endpoint.timeout
        async with client.slots:
            try:
                reply = await retry(attempt, tries=self.tries, backoff=BACKOFF, max_wait=longest, seed=seed)
            except RequestError as error:  # of the network, of the server, of what it sent: all are one failed ask
                return Generation("", 0, str(error))
        return Generation(reply.text, reply.completion_tokens)
