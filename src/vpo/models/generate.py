"""Sampling completions from a policy with transformers."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from vpo.models.decoding import decode, grouped, shares_prompts
from vpo.models.memory import free_gpu
from vpo.models.policy import Policy
from vpo.util.batches import batches_by_length
from vpo.util.progress import progress
from vpo.util.settings import check_settings, setting


@dataclass(frozen=True)
class Sampling:
    """How completions are sampled."""

    temperature: float = setting(0.7, "sampling temperature; 0 takes the likeliest token", metavar="T", least=0)
    top_p: float = setting(1.0, "probability mass of the tokens to sample from", metavar="P", above=0, most=1)
    max_new_tokens: int = setting(256, "token budget of a completion", least=1)
    batch: int = setting(256, "completions generated in parallel; fewer where GPU memory is short", least=1)
    seed: int = setting(0, "random seed")
    thinking: bool = setting(False, "let a reasoning model think before it answers")

    def __post_init__(self) -> None:
        """Refuse values out of bounds."""
        check_settings(self)


def complete(
    policy: Policy,
    prompts: Sequence[Sequence[dict[str, str]]],
    sampling: Sampling,
    prefixes: Sequence[str] | None = None,
    avoided: Sequence[str] | None = None,
    *,
    quiet: bool = False,
) -> list[tuple[str, int]]:
    """Return a completion for each prompt, and the number of its tokens.

    Args:
        policy: what writes.
        prompts: as chat messages.
        sampling: how.
        prefixes: beginnings of the completions, of which only the rest is written and returned.
        avoided: how the completions must not go on: none begins with the first token of its own; "" leaves it free.
        quiet: whether to show no bar.
    """
    import torch

    tokenizer, model = policy.tokenizer, policy.model
    texts = written_prompts(tokenizer, prompts, prefixes, thinking=sampling.thinking)
    torch.manual_seed(sampling.seed)
    settings, ends = _generation(policy, sampling)
    barred = [_first_token(tokenizer, *pair) for pair in zip(texts, avoided or [""] * len(texts), strict=True)]
    order, times = grouped(texts, sampling.batch)
    groups = [order[start : start + times] for start in range(0, len(order), times)]
    batches = batches_by_length([len(texts[group[0]]) for group in groups], max(1, sampling.batch // times))
    shared = shares_prompts(model)
    written: dict[int, tuple[str, int]] = {}

    def draw(chosen: list[int]) -> None:
        """Write the completions of some groups; where there is no room for all at once, one half after the other."""
        batch = [place for number in chosen for place in groups[number]]
        inputs = tokenizer(
            [texts[place] for place in batch], return_tensors="pt", padding=True, add_special_tokens=False
        ).to(model.device)
        asked, mask = inputs["input_ids"], inputs["attention_mask"]
        turned = [_turned([barred[place] for place in batch], asked.shape[1])]
        output = None
        with torch.inference_mode(), _habits(model, settings):
            loop = {"custom_generate": decode} if shared else _room(model, asked.shape[1] + sampling.max_new_tokens)
            try:
                output = model.generate(asked, attention_mask=mask, logits_processor=turned, **loop)
            except torch.OutOfMemoryError:
                if len(chosen) == 1:
                    raise
        if output is None:  # here, where the error no longer holds what filled the room
            free_gpu()
            draw(chosen[: len(chosen) // 2])
            draw(chosen[len(chosen) // 2 :])
            return
        rows = output[:, asked.shape[1] :].tolist()
        for place, row in zip(batch, rows, strict=True):
            length = next((index + 1 for index, token in enumerate(row) if token in ends), len(row))
            written[place] = tokenizer.decode(row[:length], skip_special_tokens=True), length

    for chosen in batches if quiet else progress(batches, "generating", len(batches)):
        draw(chosen)
    return [written[place] for place in range(len(texts))]


def written_prompts(
    tokenizer: Any, prompts: Sequence[Sequence[dict[str, str]]], prefixes: Sequence[str] | None, *, thinking: bool
) -> list[str]:
    """Return prompts as the model's template writes them, each with the beginning of its completion."""
    texts = [
        tokenizer.apply_chat_template(list(each), add_generation_prompt=True, tokenize=False, enable_thinking=thinking)
        for each in prompts
    ]
    return [text + prefix for text, prefix in zip(texts, prefixes or [""] * len(texts), strict=True)]


def _first_token(tokenizer: Any, text: str, further: str) -> int | None:
    """Return the token with which a text goes on; None where it does not, or where that is no token of its own."""
    if not further:
        return None
    before, whole = (tokenizer(each, add_special_tokens=False)["input_ids"] for each in (text, text + further))
    return whole[len(before)] if len(whole) > len(before) and whole[: len(before)] == before else None


def _turned(barred: Sequence[int | None], length: int) -> Callable[[Any, Any], Any]:
    """Return what bars a token, or none, of each completion at its very beginning, after prompts of some length."""
    rows = [row for row, token in enumerate(barred) if token is not None]
    tokens = [token for token in barred if token is not None]

    def turn(written: Any, scores: Any) -> Any:
        if rows and written.shape[1] == length:
            scores[rows, tokens] = -math.inf
        return scores

    return turn


def _room(model: Any, length: int) -> dict[str, Any]:
    """Return on a GPU room for the keys and values of so many tokens, all of it at once.

    A cache that grows is copied with every token: SmolLM2-135M, 256 completions after prompts of 1,100 tokens, took
    122 ms a token on an H200, and 42 in such room.
    """
    if model.device.type != "cuda" or not model._can_compile_fullgraph:  # which is what such room asks of a model
        return {}
    from transformers import StaticCache

    return {"past_key_values": StaticCache(config=model.config, max_cache_len=length)}


@contextmanager
def _habits(model: Any, settings: Any) -> Iterator[None]:
    """Put settings in place of the model's own, with which `generate` would fill up those it is given."""
    own, model.generation_config = model.generation_config, settings
    try:
        yield
    finally:
        model.generation_config = own


def _generation(policy: Policy, sampling: Sampling) -> tuple[Any, set[int]]:
    """Return how to generate, with nothing of the model's own habits but where it stops, and those tokens."""
    from transformers import GenerationConfig

    own = policy.model.generation_config.eos_token_id
    ends = {policy.tokenizer.eos_token_id, *(own if isinstance(own, list) else [own])} - {None}
    drawn = {"do_sample": True, "temperature": sampling.temperature, "top_p": sampling.top_p, "top_k": 0}
    settings = GenerationConfig(
        max_new_tokens=sampling.max_new_tokens,
        eos_token_id=sorted(ends),
        pad_token_id=policy.tokenizer.pad_token_id,
        disable_compile=True,  # every batch has a shape of its own, and compiling takes longer than it saves
        **(drawn if sampling.temperature > 0 else {"do_sample": False}),
    )
    return settings, ends
