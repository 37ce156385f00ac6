"""A decoding loop for transformers: completions of one prompt share its keys and values.

    model.generate(asked, attention_mask=mask, custom_generate=decode)

A set drawn ten times, or a group of rollouts, is many completions of one prompt. `generate` reads and keeps that prompt
once for each of them; here it is read once, and a `shared_prompts.Writer` goes on from it. The text is that of
`generate` from the same seed, up to rounding, where there is no dropout. `benchmarks/generate.py` compares them.
"""

import math
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from vpo.models.shared_prompts import Writer
from vpo.util.errors import InputError

WAITING = 16  # tokens after which a GPU is asked whether all are done: asking makes it wait

_one_at_a_time = threading.RLock()  # a model attends in one way at a time
_known: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()


def shares_prompts(model: Any) -> bool:
    """Return whether a model can use the loop: all of its layers must see all tokens, in the usual way."""
    if model not in _known:
        _known[model] = _sees_all(model) and _attends_as_usual(model)
    return _known[model]


def share_prompts(model: Any, autocast: Callable[[], AbstractContextManager[Any]] = nullcontext) -> None:
    """Make a model's own `generate` use the loop, where it can.

    Args:
        model: which writes.
        autocast: that of its `forward`, if it has one; around the loop it narrows the weights once, not for each token.
    """
    if shares_prompts(model):
        model.generate = partial(_generate, model, autocast)


def _generate(model: Any, autocast: Callable[[], AbstractContextManager[Any]], *prompts: Any, **more: Any) -> Any:
    with autocast():
        return type(model).generate(model, *prompts, **{"custom_generate": decode, **more})


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
    writer, scores = Writer.reading(model, input_ids[first], mask[first], times, room, **kept)
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
    if most is not None and times > most:
        times = max(count for count in range(1, most + 1) if times % count == 0)
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
            writer, _ = _Watched.reading(model, prompt, torch.ones_like(prompt), 1, 1)
            writer.compute()
    except Exception:  # whatever another architecture does with what it is not made for
        return False
    finally:
        model.train(training)
    return writer.attended == list(range(len(writer.keys)))


class _Watched(Writer):
    """Refuses to attend to anything but what it gave, and notes which layers did."""

    def __init__(self, *arguments: Any) -> None:
        """Make room for completions."""
        super().__init__(*arguments)
        self.attended: list[int] = []

    def update(self, *arguments: Any, **more: Any) -> tuple[Any, Any]:
        """Keep a token, and what is returned for it."""
        self.given = super().update(*arguments, **more)
        return self.given

    def attend(self, layer: int, query: Any, key: Any, value: Any, scaling: float, **more: Any) -> Any:
        """Attend as one layer does."""
        unusual = [more.get(name) for name in ("sliding_window", "softcap", "s_aux", "position_bias")]
        if any(each is not None for each in unusual) or key is not self.given[0] or value is not self.given[1]:
            raise ValueError("this model does not attend in the usual way")
        self.attended.append(layer)
        return super().attend(layer, query, key, value, scaling)


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
