"""Completions of one prompt that share its keys and values.

With every token the keys and values of a prompt are read once for all of its completions. On a GPU the computation of a
token is recorded as a CUDA graph and replayed: with small models the GPU would wait for Python otherwise.

Shapes: P prompts of L tokens, each of which has n of the N = P × n completions; the cache has capacity for T tokens of
each completion. Keys and values of completions are laid out by prompt and head, P × heads × n × T × width, as those of
the prompts, P × heads × L × width.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

from vpo.models import transformers_private
from vpo.models.fused_step import FusedStep, product_dtype

ATTENTION = "vpo_shared_prompts"  # the name of `_attend` in transformers' AttentionInterface
CAPACITY = 256  # T at first, or all that is needed if less; it is doubled when it is full


class SharedPromptCache:
    """Keys and values of prompts and of their completions; to transformers, a cache of the completions."""

    def __init__(self, prompts: Any, keys: list[Any], values: list[Any], times: int, max_tokens: int) -> None:
        """Allocate memory for completions.

        Args:
            prompts: the attention mask, P × L, 1 for a token and 0 for padding.
            keys: of the prompts, P × heads × L × width of each layer.
            values: likewise.
            times: n.
            max_tokens: the most that T can become.
        """
        import torch

        self.times, self.max_tokens = times, max_tokens
        dtype = product_dtype(values[0])  # under mixed precision keys and values may be wider
        self.keys, self.values = ([each.to(dtype) for each in kind] for kind in (keys, values))
        self.own_keys, self.own_values = (
            [each.new_zeros(*each.shape[:2], times, 0, each.shape[3]) for each in kind]
            for kind in (self.keys, self.values)
        )
        hidden = torch.zeros(prompts.shape, device=prompts.device).masked_fill(prompts == 0, -math.inf)
        self.hidden = hidden[:, None, None, None]  # added to attention scores, P × 1 × 1 × 1 × (L + T)
        self.step = torch.zeros(1, dtype=torch.long, device=prompts.device)  # index of the token that is computed
        self.length: int = prompts.shape[1]
        self.capacity = self.used = 0  # T, and how much of it is attended to
        self.grow()

    def grow(self) -> None:
        """Double the capacity, up to `max_tokens`."""
        from torch.nn.functional import pad

        more = min(self.capacity or CAPACITY, self.max_tokens - self.capacity)
        for kind in (self.own_keys, self.own_values):
            for layer, each in enumerate(kind):
                kind[layer] = pad(each, (0, 0, 0, more))
        self.hidden = pad(self.hidden, (0, more), value=-math.inf)
        self.capacity = self.used = self.capacity + more

    def keep(self, prompts: Any, completions: Any) -> None:
        """Keep some prompts alone, by index, and of each of them some completions, a row of indices for each prompt."""
        self.times = completions.shape[1]
        for layer in range(len(self.keys)):  # one by one, since what is copied is in memory twice
            for kind in (self.keys, self.values):
                kind[layer] = kind[layer][prompts]
            for kind in (self.own_keys, self.own_values):
                kind[layer] = kind[layer][prompts[:, None], :, completions].transpose(1, 2).contiguous()
        self.hidden = self.hidden[prompts]

    def begin(self, step: int) -> None:
        """Let tokens of a step be stored and attended to."""
        self.step.fill_(step)
        self.hidden[..., self.length + step] = 0

    def update(self, key: Any, value: Any, layer: int, *_: Any, **__: Any) -> tuple[Any, Any]:
        """Store the key and value of a token, N × heads × 1 × width; the result is those of all tokens of completions.

        A layer of transformers calls it, and passes the result on to `attend`.
        """
        keys, values = self.own_keys[layer], self.own_values[layer]
        for stored, new in ((keys, key), (values, value)):
            by_prompt = new.to(stored.dtype).unflatten(0, (-1, self.times)).transpose(1, 2)
            stored.index_copy_(3, self.step, by_prompt)
        return keys[..., : self.used, :], values[..., : self.used, :]

    def attend(self, layer: int, query: Any, key: Any, value: Any, scaling: float, **_: Any) -> Any:
        """Attend to the prompt, with one product for the queries of all of its completions, and to each completion."""
        import torch

        # All of one precision: what adds in place is not narrowed by autocast.
        dtype = product_dtype(key)
        prompt_keys, prompt_values = self.keys[layer].to(dtype), self.values[layer].to(dtype)
        query, key, value = query.to(dtype), key.to(dtype), value.to(dtype)
        prompts, heads, length, width = prompt_keys.shape
        count, query_heads = query.shape[:2]
        shared = query_heads // heads  # heads of queries that share a head of keys
        rows = (prompts, heads, self.times, shared)
        queries = query.view(prompts, self.times, heads, shared, width).transpose(1, 2)
        queries = queries.reshape(prompts, heads, self.times * shared, width)
        to_prompt = (queries @ prompt_keys.transpose(2, 3)).view(*rows, length)
        to_own = queries.view(*rows, width) @ key.transpose(3, 4)
        scores = torch.cat([to_prompt, to_own], -1)
        scores = torch.add(self.hidden[..., : length + self.used], scores, alpha=scaling)
        weights = torch.softmax(scores, -1).to(dtype)
        output = weights[..., :length].view(prompts, heads, self.times * shared, length) @ prompt_values
        from_own = (each.flatten(0, 2) for each in (weights[..., length:], value))
        output = output.view(-1, shared, value.shape[-1]).baddbmm_(*from_own)
        return output.view(*rows, -1).transpose(1, 2).reshape(count, 1, query_heads, value.shape[-1])

    def get_seq_length(self, *_: Any) -> int:
        """Tokens of a completion, its prompt included (some models of transformers call it)."""
        return self.length + self.used


class SharedPromptDecoder:
    """Computes the logits of completions, one token at a time, after their prompts."""

    def __init__(self, model: Any, prompts: Any, cache: SharedPromptCache) -> None:
        """Take a model, the attention mask of the prompts (P × L), and a cache that holds the prompts."""
        import torch
        from transformers import AttentionInterface

        AttentionInterface.register(ATTENTION, _attend)
        self.model, self.cache = model, cache
        self.token = torch.zeros(len(prompts) * cache.times, 1, dtype=torch.long, device=prompts.device)
        self.mask = torch.ones_like(self.token)  # unused, but some models need one
        self.position = prompts.sum(1).repeat_interleave(cache.times)[:, None]
        self.fused: FusedStep | None = None  # instead of the model, where it is set
        self.recorded: tuple[Any, Any] | None = None  # a CUDA graph, and where it leaves the logits

    def next(self, tokens: Any, step: int) -> Any:
        """The logits that follow the tokens, (N,), of a step."""
        if step == self.cache.capacity:
            self.recorded = None  # a recorded graph reads the memory that `grow` replaces
            self.cache.grow()
        self.token.copy_(tokens[:, None])
        self.cache.begin(step)
        if not (tokens.is_cuda and transformers_private.can_be_recorded(self.model)):
            self.cache.used = step + 1
            return self.compute()
        if self.recorded is None:
            self.recorded = _record(self.compute, tokens.device)
        graph, logits = self.recorded
        graph.replay()
        return logits

    def drop(self, ended: Any) -> Any:
        """Compute completions that have ended, (N,), no longer; the indices of those that are still computed.

        None where more than half of all would be left, since each prompt keeps as many as the one that has most.
        """
        ended_Pn = ended.unflatten(0, (-1, self.cache.times))
        left_P = (~ended_Pn).sum(1)
        prompts, times = left_P.nonzero()[:, 0], int(left_P.max())
        if 2 * len(prompts) * times > len(ended):
            return None
        completions = ended_Pn[prompts].byte().argsort(dim=1, stable=True)[:, :times]  # first those that have not ended
        rows = (prompts[:, None] * self.cache.times + completions).flatten()
        self.cache.keep(prompts, completions)
        self.token, self.mask, self.position = self.token[rows], self.mask[rows], self.position[rows]
        self.recorded = None
        return rows

    def compute(self) -> Any:
        """The logits that follow `token`."""
        if self.fused is not None:
            return self.fused.logits(self.token, self.position + self.cache.step, self.cache)
        with transformers_private.attention(self.model, ATTENTION):
            output = self.model(
                self.token,
                attention_mask=self.mask,
                position_ids=self.position + self.cache.step,
                past_key_values=self.cache,
                use_cache=True,
                shared_prompts=self.cache,
            )
        return output.logits[:, -1]


def read_prompts(
    model: Any,
    prompts: Any,
    mask: Any,
    times: int,
    max_tokens: int,
    cache_type: type[SharedPromptCache] = SharedPromptCache,
    **further: Any,
) -> tuple[SharedPromptDecoder, Any]:
    """Read each prompt once; the result is a decoder for n completions of each, and the logits of their first tokens.

    Args:
        model: that reads.
        prompts: tokens, P × L, padded on the left.
        mask: 1 for a token and 0 for padding.
        times: n.
        max_tokens: of a completion.
        cache_type: of the cache.
        further: arguments for the model.
    """
    from transformers import DynamicCache

    past = DynamicCache(config=model.config)
    output = model(
        prompts, attention_mask=mask, position_ids=positions(mask), past_key_values=past, use_cache=True, **further
    )
    kept = cache_type(mask.long(), *transformers_private.keys_and_values(past), times, max_tokens)
    return SharedPromptDecoder(model, mask.long(), kept), output.logits[:, -1].repeat_interleave(times, 0)


def positions(mask: Any) -> Any:
    """The position of each token, which padding does not count."""
    return (mask.long().cumsum(-1) - 1).clamp(min=0)


def _attend(
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    mask: Any,
    scaling: float,
    shared_prompts: SharedPromptCache,
    **further: Any,
) -> tuple[Any, None]:
    """The attention function that layers of transformers call."""
    return shared_prompts.attend(module.layer_idx, query, key, value, scaling, **further), None


@cache
def _recording_stream(device: Any) -> Any:
    """A CUDA stream to record on; one for all recordings, since each stream keeps memory of its own."""
    import torch

    return torch.cuda.Stream(device)


def _record(compute: Callable[[], Any], device: Any) -> tuple[Any, Any]:
    """Record a computation as a CUDA graph; the result is the graph, and the tensor into which a replay writes."""
    import torch

    stream = _recording_stream(device)
    with torch.cuda.device(device):
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            compute()  # what happens in the first call alone must not be recorded
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
            result = compute()
    return graph, result
