"""A decoding loop for transformers: completions of one prompt share its keys and values.

    model.generate(asked, attention_mask=mask, custom_generate=decode)

A set drawn ten times, or a group of rollouts, is many completions of one prompt. `generate` reads and keeps that prompt
once for each of them; here it is read once, and with every token its keys and values are looked up once for all. On a
GPU the computation of a token is recorded, and then played again: small models wait for Python otherwise. A call writes
what `generate` writes from the same seed, up to rounding, where there is no dropout. `benchmarks/generate.py` compares
them.

Shapes: P prompts of L tokens, each of which begins n of the N = P × n completions, which have room for T tokens.
"""

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import Any
from weakref import WeakKeyDictionary

from vpo.errors import InputError

ATTENTION = "vpo_shared_prompts"  # the name by which transformers knows `_attend`
WAITING = 16  # tokens after which a GPU is asked whether all are done: asking makes it wait
ROOM = 256  # tokens that completions have room for at first, or all; it is doubled when it is full

_one_at_a_time = threading.RLock()  # a model attends in one way at a time
_known: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()


def shares_prompts(model: Any) -> bool:
    """Return whether a model can use the loop: all of its layers must see all tokens, in the usual way."""
    if model not in _known:
        _known[model] = _sees_all(model) and _attends_as_usual(model)
    return _known[model]


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
    """Draw completions, as `generate` asks its loops to: return prompts with their completions, padded on the right.

    What is not plain sampling of tokens (beams, embeddings in place of tokens, details asked for) is left to the loops
    of transformers.
    """
    usual = _usual_loop(model, generation_config, inputs)
    if usual is not None:
        return usual(model, input_ids, logits_processor, stopping_criteria, generation_config, **inputs)
    with _one_at_a_time:
        return _decode(model, input_ids, logits_processor, stopping_criteria, generation_config, inputs)


def _decode(
    model: Any, input_ids: Any, processor: Callable[..., Any], stops: Callable[..., Any], config: Any, inputs: Any
) -> Any:
    import torch

    device, length, room = input_ids.device, input_ids.shape[1], config.max_length - input_ids.shape[1]
    mask = inputs.get("attention_mask")
    mask = torch.ones_like(input_ids) if mask is None else mask
    order, times = grouped([bytes(row) for row in input_ids.masked_fill(mask == 0, -1).cpu().numpy()])
    # Where completions of a prompt are not next to each other they are brought together to be computed, and put back.
    places = torch.tensor(order, device=device)
    back = None if order == sorted(order) else torch.argsort(places)
    first = places[::times]
    kept = {name: inputs[name] for name in ("logits_to_keep",) if name in inputs}  # of the prompts, where it is known
    writer, scores = _Writer.reading(model, input_ids[first], mask[first], times, room, **kept)
    padding = config._pad_token_tensor
    tokens = input_ids.new_full((len(input_ids), length + room), 0 if padding is None else int(padding))
    tokens[:, :length] = input_ids
    going = torch.ones(len(input_ids), dtype=torch.bool, device=device)
    written = torch.zeros((), dtype=torch.long, device=device)
    with model._optimize_model_for_decode():  # as other loops do, once the prompts are read
        for step in range(room):
            end = length + step
            if back is not None:
                scores = scores[back]
            scores = processor(tokens[:, :end], scores.to(torch.float32, copy=True))
            drawn = torch.multinomial(torch.softmax(scores, -1), 1)[:, 0] if config.do_sample else scores.argmax(-1)
            tokens[:, end] = torch.where(going, drawn, tokens[:, end])
            written += going.any()
            going &= ~stops(tokens[:, : end + 1], None)
            asks = (step + 1) % (WAITING if input_ids.is_cuda else 1) == 0
            if step + 1 == room or (asks and not going.any()):
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


def _sees_all(model: Any) -> bool:
    """Return whether, by what its settings say, every layer of a model sees all tokens, in one place."""
    config = model.config.get_text_config()
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    narrow = getattr(config, "sliding_window", None) or getattr(config, "attn_logit_softcapping", None)
    # Positions that are scaled by the longest text of a batch: which it is can change, and cannot be recorded.
    scaled = (getattr(config, "rope_parameters", None) or {}).get("rope_type") in ("dynamic", "longrope")
    devices = set((getattr(model, "hf_device_map", None) or {}).values())
    usual = bool(model._supports_attention_backend) and kinds == {"full_attention"}
    return usual and not (narrow or scaled) and len(devices) <= 1


def _attends_as_usual(model: Any) -> bool:
    """Return whether each layer of a model attends once, to what was kept of its tokens, by writing one token."""
    import torch

    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            prompt = torch.zeros(1, 2, dtype=torch.long, device=model.device)
            writer, _ = _Writer.reading(model, prompt, torch.ones_like(prompt), 1, 1)
            writer.attended = []
            writer.compute()
    except Exception:  # whatever another architecture does with what it is not made for
        return False
    finally:
        model.train(training)
    return writer.attended == list(range(len(writer.keys)))


def _usual_loop(model: Any, config: Any, inputs: dict[str, Any]) -> Callable[..., Any] | None:
    """Return the loop of transformers for what is more than drawing tokens one by one."""
    from transformers.generation.configuration_utils import GenerationMode
    from transformers.generation.utils import GENERATION_MODES_MAPPING

    mode = config.get_generation_mode()
    cached = inputs.get("past_key_values")
    if (
        mode in (GenerationMode.SAMPLE, GenerationMode.GREEDY_SEARCH)
        and not config.return_dict_in_generate
        and inputs.get("inputs_embeds") is None
        and inputs.get("streamer") is None
        and not (cached is not None and cached.get_seq_length())  # something was read before, as by prefix tuning
        and not (model.training and model.is_gradient_checkpointing)  # which keeps nothing
    ):
        return None
    found: Callable[..., Any] | None = getattr(type(model), GENERATION_MODES_MAPPING[mode], None)
    if found is None:
        raise InputError(f"transformers itself does not do {mode.value} any more")
    return found


class _Writer:
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

        self.model, self.times, self.most = model, times, most
        # Under mixed precision keys are wider than values, and both are narrowed to be multiplied.
        self.values, self.keys = values, [each.to(value.dtype) for each, value in zip(keys, values, strict=True)]
        count = len(prompts) * times
        self.own_keys, self.own_values = (
            [each.new_zeros(count, each.shape[1], 0, each.shape[3]) for each in kind]
            for kind in (self.keys, self.values)
        )
        hidden = torch.zeros(prompts.shape, device=prompts.device).masked_fill(prompts == 0, -math.inf)
        self.hidden = hidden.repeat_interleave(times, 0)[:, None, None]  # N × 1 × 1 × L
        self.own_hidden = hidden.new_zeros(0)
        self.token = torch.zeros(count, 1, dtype=torch.long, device=prompts.device)
        self.position = prompts.sum(1).repeat_interleave(times)[:, None]
        self.place = torch.zeros(1, dtype=torch.long, device=prompts.device)
        self.used = 0
        self.recorded: tuple[Any, Any] | None = None
        self.attended: list[int] | None = None  # layers, where they are watched
        self._grow()

    @classmethod
    def reading(cls, model: Any, prompts: Any, mask: Any, times: int, most: int, **kept: Any) -> tuple["_Writer", Any]:
        """Return a writer that has read prompts, and the scores of the first tokens."""
        from transformers import DynamicCache

        cache = DynamicCache(config=model.config)
        places = (mask.long().cumsum(-1) - 1).clamp(min=0)
        output = model(prompts, attention_mask=mask, position_ids=places, past_key_values=cache, use_cache=True, **kept)
        keys, values = [layer.keys for layer in cache.layers], [layer.values for layer in cache.layers]
        return cls(model, mask.long(), keys, values, times, most), output.logits[:, -1].repeat_interleave(times, 0)

    def next(self, tokens: Any, step: int) -> Any:
        """Take the tokens that were chosen last, and return the scores of those that follow."""
        if step == len(self.own_hidden):
            self._grow()
        self.token.copy_(tokens[:, None])
        self.place.fill_(step)
        self.own_hidden[step] = 0
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
        import torch

        with _attention(self.model):
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
        self.given = keys[:, :, : self.used], values[:, :, : self.used]
        return self.given

    def get_seq_length(self, *_: Any) -> int:
        """Return how many tokens a completion has, its prompt included (transformers may ask)."""
        return int(self.hidden.shape[-1]) + self.used

    def _grow(self) -> None:
        """Double the room for what is written."""
        from torch.nn.functional import pad

        there = len(self.own_hidden)
        more = min(there or ROOM, self.most - there)
        self.recorded = None  # it is of the room that there was
        for kind in (self.own_keys, self.own_values):
            for layer, each in enumerate(kind):
                kind[layer] = pad(each, (0, 0, 0, more))
        self.own_hidden = pad(self.own_hidden, (0, more), value=-math.inf)
        self.used = len(self.own_hidden)


def _attend(
    module: Any, query: Any, key: Any, value: Any, mask: Any, scaling: float, shared: _Writer, **more: Any
) -> tuple[Any, None]:
    """Attend to the prompt, whose queries of all completions go together, and to what a completion has itself."""
    import torch

    if shared.attended is not None:
        shared.attended.append(module.layer_idx)
        unusual = [
            name for name in ("sliding_window", "softcap", "s_aux", "position_bias") if more.get(name) is not None
        ]
        if unusual or key is not shared.given[0] or value is not shared.given[1]:
            raise ValueError("this model does not attend in the usual way")
    prompt_keys, prompt_values = shared.keys[module.layer_idx], shared.values[module.layer_idx]
    prompts, heads, length, width = prompt_keys.shape
    count, queries = query.shape[:2]
    times, each = shared.times, queries // heads  # each head of keys serves so many of queries

    def together(rows: Any) -> Any:  # N × heads × each × … as P × heads × (n × each) × …
        found = rows.view(prompts, times, heads, each, rows.shape[-1]).transpose(1, 2)
        return found.reshape(prompts, heads, times * each, rows.shape[-1])

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
    from transformers import AttentionInterface

    AttentionInterface.register(ATTENTION, _attend)
    config = model.config.get_text_config()
    usual = config._attn_implementation
    config._attn_implementation = ATTENTION
    try:
        yield
    finally:
        config._attn_implementation = usual
