"""Sampling completions from a policy with transformers."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any

from vpo.models import transformers_private
from vpo.models.decoding import decode, group_equal, shares_prompts
from vpo.models.forced_tags import ForcedTags, ForcingProcessor, check_budget
from vpo.models.memory import free_gpu
from vpo.models.policy import Policy
from vpo.util.batches import batches_by_length
from vpo.util.progress import progress
from vpo.util.settings import check_settings, setting


@dataclass(frozen=True)
class Sampling:
    """How completions are sampled. Another batch samples other text from the same seed."""

    temperature: float = setting(0.7, "sampling temperature; 0 takes the likeliest token", metavar="T", least=0)
    top_p: float = setting(1.0, "probability mass of the tokens to sample from", metavar="P", above=0, most=1)
    max_new_tokens: int = setting(256, "token budget of a completion", least=1)
    batch: int = setting(256, "completions generated in parallel; fewer where GPU memory is short", least=1)
    seed: int = setting(0, "random seed")
    thinking: bool = setting(False, "let a reasoning model think before it answers")

    def __post_init__(self) -> None:
        """Refuse values out of bounds."""
        check_settings(self)


@dataclass(frozen=True)
class Completion:
    """What a policy wrote after a prompt.

    Attributes:
        text: without special tokens, and without the prefix that the completion was begun with; with forced tags.
        tokens: how many were generated, forced tags and the end included; None where an endpoint does not count them.
    """

    text: str
    tokens: int | None


def complete(
    policy: Policy,
    prompts: Sequence[Sequence[dict[str, str]]],
    sampling: Sampling,
    prefixes: Sequence[str] | None = None,
    avoided: Sequence[str] | None = None,
    *,
    forced: ForcedTags | None = None,
    quiet: bool = False,
) -> list[Completion]:
    """Sample a completion for each prompt.

    Args:
        policy: to sample from.
        prompts: as chat messages.
        sampling: temperature, length, batch, seed.
        prefixes: beginnings of the completions; the policy continues them.
        avoided: continuations to avoid: no completion begins with the first token of its own; "" avoids nothing.
        forced: the tags that open the answers, where the policy does not write them.
        quiet: whether to show no progress bar.
    """
    completions: dict[int, Completion] = {}
    for batch in complete_batches(policy, prompts, sampling, prefixes, avoided, forced=forced, quiet=quiet):
        completions.update(batch)
    return [completions[index] for index in range(len(prompts))]


def complete_batches(
    policy: Policy,
    prompts: Sequence[Sequence[dict[str, str]]],
    sampling: Sampling,
    prefixes: Sequence[str] | None = None,
    avoided: Sequence[str] | None = None,
    *,
    forced: ForcedTags | None = None,
    first: int = 0,
    every: int = 1,
    quiet: bool = False,
) -> Iterator[dict[int, Completion]]:
    """As `complete`, batch by batch: each yields its completions by the index of their prompt.

    Each batch has a seed of its own, so its completions do not depend on whether those before it were sampled in the
    same process. `first` is the number of the first batch to sample, from 0; then every so many are.
    """
    import torch

    if forced:
        check_budget(forced, sampling.max_new_tokens)
    texts = render_prompts(policy.tokenizer, prompts, prefixes, thinking=sampling.thinking)
    banned = [
        _first_token(policy.tokenizer, text, further)
        for text, further in zip(texts, avoided or [""] * len(texts), strict=True)
    ]
    batches = list(enumerate(_batches(texts, sampling.batch)))[first::every]
    for number, batch in batches if quiet else progress(batches, "generating", len(batches)):
        torch.manual_seed(_batch_seed(sampling.seed, number))
        completions: dict[int, Completion] = {}
        parts = [batch]  # of the batch, in order, that are still to be sampled
        while parts:
            part = parts.pop(0)
            indices = [index for group in part for index in group]
            sampled = _sample(
                policy,
                sampling,
                [texts[index] for index in indices],
                [banned[index] for index in indices],
                forced.processor([(prefixes or [""] * len(texts))[index] for index in indices]) if forced else None,
                can_split=len(part) > 1,
            )
            if sampled is None:
                free_gpu()
                half = len(part) // 2
                parts[:0] = [part[:half], part[half:]]
            else:
                completions.update(zip(indices, sampled, strict=True))
        yield completions


def _batch_seed(seed: int, number: int) -> int:
    """The seed of a batch: that of the sampling for the first one, and one that follows from both for the others."""
    return seed if number == 0 else Random(f"{seed} {number}").getrandbits(63)


def render_prompts(
    tokenizer: Any, prompts: Sequence[Sequence[dict[str, str]]], prefixes: Sequence[str] | None, *, thinking: bool
) -> list[str]:
    """Prompts as the model's chat template renders them, each with the beginning of its completion."""
    texts = [
        tokenizer.apply_chat_template(list(each), add_generation_prompt=True, tokenize=False, enable_thinking=thinking)
        for each in prompts
    ]
    return [text + prefix for text, prefix in zip(texts, prefixes or [""] * len(texts), strict=True)]


def _batches(texts: Sequence[str], size: int) -> list[list[list[int]]]:
    """Batches of groups of indices: the texts of a group are equal, those of a batch are of like length."""
    order, times = group_equal(texts, size)
    groups = [order[start : start + times] for start in range(0, len(order), times)]
    batches = batches_by_length([len(texts[group[0]]) for group in groups], max(1, size // times))
    return [[groups[number] for number in batch] for batch in batches]


def _first_token(tokenizer: Any, text: str, further: str) -> int | None:
    """The token with which a text continues; None where it does not, or where that is no token of its own."""
    if not further:
        return None
    before, whole = (tokenizer(each, add_special_tokens=False)["input_ids"] for each in (text, text + further))
    return whole[len(before)] if len(whole) > len(before) and whole[: len(before)] == before else None


def _sample(
    policy: Policy,
    sampling: Sampling,
    texts: Sequence[str],
    banned: Sequence[int | None],
    forcing: ForcingProcessor | None,
    *,
    can_split: bool,
) -> list[Completion] | None:
    """Sample a completion for each text in one batch; None where the memory of the GPU is too small for it.

    Args:
        policy: to sample from.
        sampling: temperature and length.
        texts: rendered prompts.
        banned: a token for each text that its completion must not begin with, or None.
        forcing: of tags, or None.
        can_split: whether the batch can be split; otherwise torch's error is raised.
    """
    import torch

    tokenizer, model = policy.tokenizer, policy.model
    inputs = tokenizer(list(texts), return_tensors="pt", padding=True, add_special_tokens=False).to(model.device)
    tokens, mask = inputs["input_ids"], inputs["attention_mask"]
    length = tokens.shape[1]
    config = _generation_config(policy, sampling)
    shared = shares_prompts(model)
    with torch.inference_mode(), _own_config(model, config):
        loop = {"custom_generate": decode} if shared else _static_cache(model, length + sampling.max_new_tokens)
        try:
            processors = [_ban_first_tokens(banned, length), *([forcing] if forcing else [])]
            output = model.generate(tokens, attention_mask=mask, logits_processor=processors, **loop)
        except torch.OutOfMemoryError:
            if not can_split:
                raise
            return None  # the caller frees memory once this error, which refers to it, is gone
    completions = []
    for row in output[:, length:].tolist():
        end = next((index + 1 for index, token in enumerate(row) if token in config.eos_token_id), len(row))
        completions.append(Completion(tokenizer.decode(row[:end], skip_special_tokens=True), end))
    return completions


def _ban_first_tokens(banned: Sequence[int | None], length: int) -> Callable[[Any, Any], Any]:
    """A logits processor that bans one token of each row, or none, right after prompts of some length."""
    rows = [row for row, token in enumerate(banned) if token is not None]
    tokens = [token for token in banned if token is not None]

    def process(input_ids: Any, scores: Any) -> Any:
        if rows and input_ids.shape[1] == length:
            scores[rows, tokens] = -math.inf
        return scores

    return process


def _static_cache(model: Any, length: int) -> dict[str, Any]:
    """On a GPU, a cache that has memory for all tokens from the start.

    A cache that grows is copied with every token: SmolLM2-135M, 256 completions after prompts of 1,100 tokens, took
    122 ms a token on an H200, and 42 with this one.
    """
    if model.device.type != "cuda" or not transformers_private.can_be_recorded(model):
        return {}
    from transformers import StaticCache

    return {"past_key_values": StaticCache(config=model.config, max_cache_len=length)}


@contextmanager
def _own_config(model: Any, config: Any) -> Iterator[None]:
    """Replace a model's generation config: `generate` would take from it what ours leaves open."""
    usual, model.generation_config = model.generation_config, config
    try:
        yield
    finally:
        model.generation_config = usual


def _generation_config(policy: Policy, sampling: Sampling) -> Any:
    """A generation config that takes nothing from the model's own but the tokens that end a completion."""
    from transformers import GenerationConfig

    own = policy.model.generation_config.eos_token_id
    ends = {policy.tokenizer.eos_token_id, *(own if isinstance(own, list) else [own])} - {None}
    sampled = {"do_sample": True, "temperature": sampling.temperature, "top_p": sampling.top_p, "top_k": 0}
    return GenerationConfig(
        max_new_tokens=sampling.max_new_tokens,
        eos_token_id=sorted(ends),
        pad_token_id=policy.tokenizer.pad_token_id,
        disable_compile=True,  # every batch has a shape of its own, and compiling takes longer than it saves
        **(sampled if sampling.temperature > 0 else {"do_sample": False}),
    )
