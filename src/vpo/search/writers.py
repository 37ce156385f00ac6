"""What writes the completions of a search: a model in this process, or one behind an endpoint."""

import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Protocol

from vpo.errors import InputError
from vpo.generate import Sampling, complete, written_prompts
from vpo.policies import Policy
from vpo.search.operators import Ask

SILENT = 3  # batches on end without any answer are enough


@dataclass(frozen=True)
class Written:
    """What came of an ask.

    Attributes:
        text: the completion, its prefix included.
        tokens: that were generated; None where nobody knows.
        failure: why there is none, if so.
    """

    text: str
    tokens: int | None
    failure: str | None = None


class Writer(Protocol):
    """Writes completions.

    Attributes:
        prefixes: whether it can go on from the beginning of a completion.
    """

    prefixes: bool

    def write(self, asks: Sequence[Ask], seed: int) -> list[Written]:
        """Return a completion for each ask."""


class ModelWriter:
    """A model in this process, by transformers."""

    prefixes = True

    def __init__(self, policy: Policy, sampling: Sampling) -> None:
        """Take the model and how it is sampled."""
        self.policy, self.sampling = policy, sampling

    def write(self, asks: Sequence[Ask], seed: int) -> list[Written]:
        """Return completions, which depend on the asks and the seed alone."""
        prompts, prefixes = [ask.messages for ask in asks], [ask.prefix for ask in asks]
        drawn = complete(self.policy, prompts, replace(self.sampling, seed=seed), prefixes, quiet=True)
        return [Written(ask.prefix + text, tokens) for ask, (text, tokens) in zip(asks, drawn, strict=True)]


class VllmWriter:
    """A model in this process, by vLLM. It has not been run by us yet."""

    prefixes = True

    def __init__(self, path: str, sampling: Sampling) -> None:
        """Take the folder of the model, or its name on the hub, and how it is sampled."""
        try:
            from vllm import LLM
        except ImportError:
            raise InputError("backend vllm needs vLLM: pip install vllm, or leave it to transformers") from None
        self.model, self.sampling = LLM(model=path), sampling

    def write(self, asks: Sequence[Ask], seed: int) -> list[Written]:
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
        return [Written(ask.prefix + one.text, len(one.token_ids)) for ask, one in zip(asks, found, strict=True)]


class EndpointWriter:
    """A model behind an OpenAI-compatible endpoint, asked several times at once, each time within a limit.

    An ask that fails, after some tries, is a failure that is recorded. Where nothing was ever answered, or whole
    batches fail one after another, the search stops.
    """

    prefixes = False

    def __init__(
        self, address: str, model: str, sampling: Sampling, *, at_once: int = 16, limit: float = 120.0, tries: int = 3
    ) -> None:
        """Take the address, such as http://localhost:8000/v1, and the name of the model there."""
        try:
            from openai import OpenAI
        except ImportError:
            raise InputError("an endpoint needs the package openai: pip install openai") from None
        self.address, self.model, self.sampling = address, model, sampling
        self.at_once, self.tries, self.limit = at_once, tries, limit
        self.stopping = False
        self.answered, self.silent = False, 0  # whether it ever answered, and batches on end in which it did not
        key = os.environ.get("OPENAI_API_KEY", "none")
        self.client = OpenAI(base_url=address, api_key=key, timeout=limit, max_retries=0)

    def write(self, asks: Sequence[Ask], seed: int) -> list[Written]:
        """Return completions; the same again only as far as the endpoint keeps to the seed."""
        self.stopping = False
        with ThreadPoolExecutor(self.at_once) as pool:
            try:
                found = list(pool.map(self._write, asks, range(seed, seed + len(asks))))
            except KeyboardInterrupt:
                self.stopping = True  # the threads need not be waited for
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        failures = [each.failure for each in found if each.failure]
        self.answered |= len(failures) < len(found)
        self.silent = self.silent + 1 if len(failures) == len(found) else 0
        if self.silent and (not self.answered or self.silent >= SILENT):
            raise InputError(f"{self.address}: none of {len(found)} asks was answered: {failures[0]}")
        return found

    def _write(self, ask: Ask, seed: int) -> Written:
        failure = ""
        for attempt in range(self.tries):
            if attempt:
                self._wait(min(2**attempt, 10))
            try:
                return self._within_limit(ask, seed)
            except Exception as error:  # of the network, of the server, of what it sent: all are one failed ask
                failure = f"{type(error).__name__}: {error}"
        return Written("", 0, failure[:300])

    def _within_limit(self, ask: Ask, seed: int) -> Written:
        """Ask in a thread that is left alone if it takes too long: the client's own limit is for each read."""
        found: list[Written | Exception] = []

        def run() -> None:
            try:
                found.append(self._ask(ask, seed))
            except Exception as error:  # is raised below, in the thread that waits
                found.append(error)

        threading.Thread(target=run, daemon=True).start()
        self._wait(self.limit, found)
        if not found:
            raise TimeoutError(f"not answered within {self.limit:g} s")
        if isinstance(found[0], Exception):
            raise found[0]
        return found[0]

    def _wait(self, seconds: float, found: Sequence[object] = ()) -> None:
        """Wait for some time, for something to be found, or until somebody stops the search."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not found and not self.stopping:
            time.sleep(0.01)

    def _ask(self, ask: Ask, seed: int) -> Written:
        answer = self.client.chat.completions.create(
            model=self.model,
            messages=ask.messages,  # type: ignore[arg-type]  # a role and a content each
            temperature=self.sampling.temperature,
            top_p=self.sampling.top_p,
            max_tokens=self.sampling.max_new_tokens,
            seed=seed,
        )
        text = answer.choices[0].message.content
        if not isinstance(text, str):
            raise ValueError("the answer has no text")
        plain = text.encode("utf-8", "backslashreplace").decode()  # lone surrogates
        return Written(plain, answer.usage.completion_tokens if answer.usage else None)
