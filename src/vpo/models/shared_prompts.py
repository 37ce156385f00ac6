"""Completions of one prompt that share its keys and values: what is kept of them, and how they attend to it.

With every token the keys and values of a prompt are looked up once for all of its completions. On a GPU the computation
of a token is recorded, and then played again: small models wait for Python otherwise.

Shapes: P prompts of L tokens, each of which begins n of the N = P × n completions, which have room for T tokens. What
completions have themselves is laid out by prompt and head, P × heads × n × …, as what they share.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Self

ATTENTION = "vpo_shared_prompts"  # the name by which transformers knows `_attend`
ROOM = 256  # tokens that completions have room for at first, or all; it is doubled when it is full


class Writer:
    """Writes completions token by token; a cache, to transformers, of what it has written."""

    def __init__(self, model: Any, prompts: Any, keys: list[Any], values: list[Any], times: int, most: int) -> None:
        """Make room for completions.

        Args:
            model: which writes.
            prompts: P × L, 1 for a token and 0 for padding.
            keys: of the prompts, P × heads × L × width of each layer.
            values: likewise.
            times: n.
            most: tokens of a completion.
        """
        import torch
        from transformers import AttentionInterface

        AttentionInterface.register(ATTENTION, _attend)
        self.model, self.times, self.most = model, times, most
        # Under mixed precision keys are wider than values, and both are narrowed to be multiplied.
        self.values, self.keys = values, [each.to(value.dtype) for each, value in zip(keys, values, strict=True)]
        self.own_keys, self.own_values = (
            [each.new_zeros(*each.shape[:2], times, 0, each.shape[3]) for each in kind]
            for kind in (self.keys, self.values)
        )
        hidden = torch.zeros(prompts.shape, device=prompts.device).masked_fill(prompts == 0, -math.inf)
        self.hidden = hidden[:, None, None, None]  # P × 1 × 1 × 1 × (L + T)
        self.token = torch.zeros(len(prompts) * times, 1, dtype=torch.long, device=prompts.device)
        self.mask = torch.ones_like(self.token)  # is not used, and missed by some
        self.position = prompts.sum(1).repeat_interleave(times)[:, None]
        self.place = torch.zeros(1, dtype=torch.long, device=prompts.device)
        self.length: int = prompts.shape[1]
        self.room = self.used = 0  # T, and how much of it is attended to
        self.recorded: tuple[Any, Any] | None = None
        self._grow()

    @classmethod
    def reading(cls, model: Any, prompts: Any, mask: Any, times: int, most: int, **kept: Any) -> tuple[Self, Any]:
        """Return a writer that has read prompts, and the scores of the first tokens."""
        from transformers import DynamicCache

        cache = DynamicCache(config=model.config)
        places = (mask.long().cumsum(-1) - 1).clamp(min=0)
        output = model(prompts, attention_mask=mask, position_ids=places, past_key_values=cache, use_cache=True, **kept)
        keys, values = [layer.keys for layer in cache.layers], [layer.values for layer in cache.layers]
        return cls(model, mask.long(), keys, values, times, most), output.logits[:, -1].repeat_interleave(times, 0)

    def next(self, tokens: Any, step: int) -> Any:
        """Take the tokens that were chosen last, and return the scores of those that follow."""
        if step == self.room:
            self._grow()
        self.token.copy_(tokens[:, None])
        self.place.fill_(step)
        self.hidden[..., self.length + step] = 0
        if not (tokens.is_cuda and self.model._can_compile_fullgraph):  # what can be compiled can be recorded
            self.used = step + 1
            return self.compute()
        if self.recorded is None:
            self.recorded = _record(self.compute, tokens.device)
        graph, scores = self.recorded
        graph.replay()
        return scores

    def compute(self) -> Any:
        """Return the scores of the tokens that follow those that are laid down."""
        with _attention(self.model):
            output = self.model(
                self.token,
                attention_mask=self.mask,
                position_ids=self.position + self.place,
                past_key_values=self,
                use_cache=True,
                writer=self,
            )
        return output.logits[:, -1]

    def update(self, key: Any, value: Any, layer: int, *_: Any, **__: Any) -> tuple[Any, Any]:
        """Keep the key and value of a token, and return those of all that was written (transformers calls it)."""
        keys, values = self.own_keys[layer], self.own_values[layer]
        for kept, new in ((keys, key), (values, value)):
            by_prompt = new.to(kept.dtype).unflatten(0, (-1, self.times)).transpose(1, 2)
            kept.index_copy_(3, self.place, by_prompt)
        return keys[..., : self.used, :], values[..., : self.used, :]

    def attend(self, layer: int, query: Any, key: Any, value: Any, scaling: float, **_: Any) -> Any:
        """Attend to the prompt, whose queries of all completions go together, and to what a completion has itself."""
        import torch

        prompt_keys, prompt_values = self.keys[layer], self.values[layer]
        prompts, heads, length, width = prompt_keys.shape
        count, queries = query.shape[:2]
        each = queries // heads  # a head of keys serves so many of queries
        rows = (prompts, heads, self.times, each)
        asked = query.to(key.dtype).view(prompts, self.times, heads, each, width).transpose(1, 2)
        asked = asked.reshape(prompts, heads, self.times * each, width)
        to_prompt = (asked @ prompt_keys.transpose(2, 3)).view(*rows, length)
        to_own = asked.view(*rows, width) @ key.transpose(3, 4)
        scores = torch.cat([to_prompt, to_own], -1)
        scores = torch.add(self.hidden[..., : length + self.used], scores, alpha=scaling)
        weights = torch.softmax(scores, -1).to(value.dtype)
        from_prompt = weights[..., :length].view(prompts, heads, self.times * each, length) @ prompt_values
        found = from_prompt.view(*rows, -1) + weights[..., length:] @ value
        return found.transpose(1, 2).reshape(count, 1, queries, value.shape[-1])

    def get_seq_length(self, *_: Any) -> int:
        """Return how many tokens a completion has, its prompt included (transformers may ask)."""
        return self.length + self.used

    def _grow(self) -> None:
        """Double the room for what is written."""
        from torch.nn.functional import pad

        more = min(self.room or ROOM, self.most - self.room)
        self.recorded = None  # it is of the room that there was
        for kind in (self.own_keys, self.own_values):
            for layer, each in enumerate(kind):
                kind[layer] = pad(each, (0, 0, 0, more))
        self.hidden = pad(self.hidden, (0, more), value=-math.inf)
        self.room = self.used = self.room + more


def _attend(
    module: Any, query: Any, key: Any, value: Any, mask: Any, scaling: float, writer: Writer, **more: Any
) -> tuple[Any, None]:
    """Attend, as transformers asks it."""
    return writer.attend(module.layer_idx, query, key, value, scaling, **more), None


@cache
def _aside(device: Any) -> Any:
    """Return a stream to record on; one for all, since each keeps memory of its own."""
    import torch

    return torch.cuda.Stream(device)


def _record(compute: Callable[[], Any], device: Any) -> tuple[Any, Any]:
    """Return a computation on a GPU as a graph to be replayed, and where its result will lie."""
    import torch

    stream = _aside(device)
    with torch.cuda.device(device):
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            compute()  # what is only done the first time is not to be recorded
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
            result = compute()
    return graph, result


@contextmanager
def _attention(model: Any) -> Iterator[None]:
    """Have a model attend by `_attend`."""
    config = model.config.get_text_config()
    usual = config._attn_implementation
    config._attn_implementation = ATTENTION
    try:
        yield
    finally:
        config._attn_implementation = usual
