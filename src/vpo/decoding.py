"""A decoding loop for transformers: completions of one prompt share its keys and values.

    model.generate(asked, attention_mask=mask, custom_generate=decode)

A set drawn ten times, or a group of rollouts, is many completions of one prompt. `generate` reads and keeps that prompt
once for each of them; here it is read once, and with every token its keys and values are looked up once for all. On a
GPU the computation of a token is recorded, and then played again: small models wait for Python otherwise. From the
same seed the loop writes what `generate` writes, up to rounding. `benchmarks/generate.py` compares them.

Shapes: P prompts of L tokens, each of which begins n of the N = P × n completions, which have room for T tokens.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

ATTENTION = "vpo_shared_prompts"  # the name by which transformers knows `_attend`
WAITING = 16  # tokens after which a GPU is asked whether all are done: asking makes it wait


def shares_prompts(model: Any) -> bool:
    """Return whether a model can use the loop: all of its layers must see all tokens, in the usual way."""
    config = model.config.get_text_config()
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    other = getattr(config, "sliding_window", None) or getattr(config, "attn_logit_softcapping", None)
    # Positions that are scaled by how long the text is cannot be recorded.
    moving = (getattr(config, "rope_parameters", None) or {}).get("rope_type") in ("dynamic", "longrope")
    return bool(model._supports_attention_backend) and kinds == {"full_attention"} and not (other or moving)


def share_prompts(model: Any) -> None:
    """Make a model's own `generate` use the loop, where it can."""
    if shares_prompts(model):
        model.generate = partial(type(model).generate, model, custom_generate=decode)


def decode(
    model: Any,
    input_ids: Any,
    logits_processor: Callable[[Any, Any], Any],
    stopping_criteria: Callable[[Any, Any], Any],
    generation_config: Any,
    **inputs: Any,
) -> Any:
    """Draw completions, as `generate` asks its loops to: return prompts with their completions, padded on the right."""
    import torch

    length, room = input_ids.shape[1], generation_config.max_length - input_ids.shape[1]
    own = {name: inputs[name] for name in ("logits_to_keep",) if name in inputs}
    mask = inputs.get("attention_mask")
    mask = torch.ones_like(input_ids) if mask is None else mask
    order, times = grouped(_rows(input_ids, mask))
    # Where completions of a prompt are not next to each other they are brought together to be computed, and put back.
    places = torch.tensor(order, device=input_ids.device)
    back = None if order == sorted(order) else torch.argsort(places)
    first = places[::times]
    writer, scores = _Writer.reading(model, input_ids[first], mask[first], times, room, own)
    tokens = input_ids.new_full((len(input_ids), length + room), generation_config.pad_token_id or 0)
    tokens[:, :length] = input_ids
    going = torch.ones(len(input_ids), dtype=torch.bool, device=input_ids.device)
    written = torch.zeros((), dtype=torch.long, device=input_ids.device)
    waiting = WAITING if input_ids.is_cuda else 1
    with _attention(model):
        for step in range(room):
            end = length + step
            if back is not None:
                scores = scores[back]
            scores = logits_processor(tokens[:, :end], scores.to(torch.float32, copy=True))
            drawn = _draw(scores) if generation_config.do_sample else scores.argmax(-1)
            tokens[:, end] = torch.where(going, drawn, tokens[:, end])
            written += going.any()
            going &= ~stopping_criteria(tokens[:, : end + 1], None)
            if step + 1 == room or ((step + 1) % waiting == 0 and not going.any()):
                break
            scores = writer.next(tokens[:, end] if back is None else tokens[places, end], step)
    return tokens[:, : length + int(written)]


def grouped(rows: Sequence[object], most: int | None = None) -> tuple[list[int], int]:
    """Return places of rows such that equal ones stand together, and in how many equal ones at a time they come.

    Args:
        rows: anything that can be told apart.
        most: at a time.
    """
    places: dict[object, list[int]] = {}
    for place, row in enumerate(rows):
        places.setdefault(row, []).append(place)
    times = math.gcd(*map(len, places.values())) or 1
    while most is not None and times > most:
        times = next(times // part for part in range(2, times + 1) if times % part == 0)
    return [place for group in places.values() for place in group], times


def _rows(tokens: Any, mask: Any) -> list[object]:
    return [bytes(row) for row in tokens.masked_fill(mask == 0, -1).cpu().numpy()]


def _draw(scores: Any) -> Any:
    import torch

    return torch.multinomial(torch.softmax(scores, -1), 1).squeeze(1)


class _Writer:
    """Writes completions token by token; a cache, to transformers, of what it has written."""

    def __init__(self, model: Any, prompts: Any, keys: list[Any], values: list[Any], times: int, room: int) -> None:
        """Make room for all completions.

        Args:
            model: which writes.
            prompts: P × L, 1 for a token and 0 for padding.
            keys: of the prompts, P × heads × L × width of each layer.
            values: likewise.
            times: n.
            room: T.
        """
        import torch

        count = len(prompts) * times
        self.model, self.times = model, times
        # Under mixed precision keys are wider than values, and both are narrowed to be multiplied.
        self.values, self.keys = values, [each.to(value.dtype) for each, value in zip(keys, values, strict=True)]
        self.own_keys, self.own_values = (
            [each.new_zeros(count, each.shape[1], room, each.shape[3]) for each in kind]
            for kind in (self.keys, self.values)
        )
        hidden = torch.zeros(prompts.shape, device=prompts.device).masked_fill(prompts == 0, -math.inf)
        self.hidden = hidden.repeat_interleave(times, 0)[:, None, None]  # N × 1 × 1 × L
        self.own_hidden = torch.full((room,), -math.inf, device=prompts.device)
        self.token = torch.zeros(count, 1, dtype=torch.long, device=prompts.device)
        self.position = prompts.sum(1).repeat_interleave(times)[:, None]
        self.place = torch.zeros(1, dtype=torch.long, device=prompts.device)
        self.used = room
        self.recorded: tuple[Any, Any] | None = None

    @classmethod
    def reading(
        cls, model: Any, prompts: Any, mask: Any, times: int, room: int, own: dict[str, Any]
    ) -> tuple["_Writer", Any]:
        """Return a writer that has read prompts, and the scores of the first tokens."""
        from transformers import DynamicCache

        cache = DynamicCache(config=model.config)
        places = (mask.long().cumsum(-1) - 1).clamp(min=0)
        output = model(prompts, attention_mask=mask, position_ids=places, past_key_values=cache, use_cache=True, **own)
        keys, values = [layer.keys for layer in cache.layers], [layer.values for layer in cache.layers]
        writer = cls(model, mask.long(), keys, values, times, room)
        return writer, output.logits[:, -1].repeat_interleave(times, 0)

    def next(self, tokens: Any, step: int) -> Any:
        """Take the tokens that were chosen last, and return the scores of those that follow."""
        self.token.copy_(tokens[:, None])
        self.place.fill_(step)
        self.own_hidden[step] = 0
        if not tokens.is_cuda:
            self.used = step + 1
            return self._scores()
        if self.recorded is None:
            self.recorded = _record(self._scores)
        graph, scores = self.recorded
        graph.replay()
        return scores

    def _scores(self) -> Any:
        import torch

        output = self.model(
            self.token,
            attention_mask=torch.ones_like(self.token),  # is not used, and missed by some
            position_ids=self.position + self.place,
            past_key_values=self,
            use_cache=True,
            shared=self,
        )
        return output.logits[:, -1]

    def update(self, key: Any, value: Any, layer: int, *_: Any, **__: Any) -> tuple[Any, Any]:
        """Keep the key and value of a token, and return those of all that was written (transformers calls it)."""
        keys, values = self.own_keys[layer], self.own_values[layer]
        keys.index_copy_(2, self.place, key.to(keys.dtype))
        values.index_copy_(2, self.place, value.to(values.dtype))
        return keys[:, :, : self.used], values[:, :, : self.used]

    def get_seq_length(self, *_: Any) -> int:
        """Return how many tokens a completion has, its prompt included (transformers may ask)."""
        return int(self.hidden.shape[-1]) + self.used


def _attend(
    module: Any, query: Any, key: Any, value: Any, mask: Any, scaling: float, shared: _Writer, **_: Any
) -> tuple[Any, None]:
    """Attend to the prompt, whose queries of all completions go together, and to what a completion has itself."""
    import torch

    prompt_keys, prompt_values = shared.keys[module.layer_idx], shared.values[module.layer_idx]
    prompts, heads, length, width = prompt_keys.shape
    count, queries = query.shape[:2]
    times, each = shared.times, queries // heads  # each head of keys serves so many of queries

    def together(rows: Any) -> Any:  # N × heads × each × … as P × heads × (n × each) × …
        apart = rows.view(prompts, times, heads, each, rows.shape[-1])
        return apart.transpose(1, 2).reshape(prompts, heads, times * each, rows.shape[-1])

    def apart(rows: Any) -> Any:
        found = rows.view(prompts, heads, times, each, rows.shape[-1]).transpose(1, 2)
        return found.reshape(count, heads, each, rows.shape[-1])

    asked = query.to(key.dtype).view(count, heads, each, width)
    to_prompt = apart(together(asked) @ prompt_keys.transpose(2, 3))
    to_own = asked @ key.transpose(2, 3)
    scores = torch.cat(
        [
            torch.add(shared.hidden, to_prompt, alpha=scaling),
            torch.add(shared.own_hidden[: shared.used], to_own, alpha=scaling),
        ],
        -1,
    )
    weights = torch.softmax(scores, -1).to(value.dtype)
    found = weights[..., length:] @ value + apart(together(weights[..., :length]) @ prompt_values)
    return found.view(count, 1, queries, value.shape[-1]), None


def _record(compute: Callable[[], Any]) -> tuple[Any, Any]:
    """Return a computation on a GPU as a graph to be replayed, and where its result will lie."""
    import torch

    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        compute()  # what is only done the first time is not to be recorded
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        result = compute()
    return graph, result


@contextmanager
def _attention(model: Any) -> Iterator[None]:
    """Have a model attend by `_attend`."""
    from transformers import AttentionInterface

    AttentionInterface.register(ATTENTION, _attend)
    config = model.config.get_text_config()
    usual = config._attn_implementation
    config._attn_implementation = ATTENTION
    try:
        yield
    finally:
        config._attn_implementation = usual
