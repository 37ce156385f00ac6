"""A decoding loop for transformers: completions of one prompt share its keys and values.

    model.generate(tokens, attention_mask=mask, custom_generate=decode)

A set sampled ten times, or a group of rollouts, is many completions of one prompt. `generate` reads and stores that
prompt once for each of them; here it is read once, by `shared_prompts.read_prompts`. Completions that have ended are
dropped once at most half are left. The text is that of `generate` from the same seed, up to rounding, where there is no
dropout. `benchmarks/generate.py` compares their speed.
"""

import math
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from vpo.models import transformers_private
from vpo.models.fused_step import FusedStep, can_fuse, fused_steps
from vpo.models.shared_prompts import SharedPromptCache, positions, read_prompts
from vpo.models.trials import evaluating, same_up_to_rounding
from vpo.util.errors import InputError
from vpo.util.grouping import group_by
from vpo.util.progress import say

CHECK_EVERY = 16  # tokens between checks on a GPU which completions have ended: a check makes Python wait for it
# What `generate` passes to a loop for tokens alone; models of images, say, get more.
TOKEN_INPUTS = {"attention_mask", "position_ids", "past_key_values", "use_cache", "logits_to_keep"}
WORTH_LESS_ROWS = 16  # tokens that must be left for it to pay that the rest is copied, and on a GPU recorded again

_decoding = threading.RLock()  # a model's attention function is replaced meanwhile
_shareable: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()
_fused: WeakKeyDictionary[Any, Callable[[Any], FusedStep] | None] = WeakKeyDictionary()  # what makes it of a model


def shares_prompts(model: Any) -> bool:
    """Whether a model can use the loop: all of its layers must attend to all tokens, in the usual way."""
    if not transformers_private.is_tested():
        return False
    with _decoding:
        if model not in _shareable:
            _shareable[model] = _attends_to_all(model) and _attends_as_usual(model)
        return _shareable[model]


def share_prompts(model: Any, autocast: Callable[[], AbstractContextManager[Any]] = nullcontext) -> None:
    """Make a model's own `generate` use the loop, if the model can.

    Args:
        model: whose `generate` is replaced.
        autocast: that of its `forward`, if it has one; around the loop it narrows the weights once, not for each token.
    """
    if shares_prompts(model):
        model.generate = partial(_generate, model, autocast)


def _generate(model: Any, autocast: Callable[[], AbstractContextManager[Any]], *prompts: Any, **further: Any) -> Any:
    with autocast():
        return type(model).generate(model, *prompts, **{"custom_generate": decode, **further})


def decode(
    model: Any,
    input_ids: Any,
    logits_processor: Callable[[Any, Any], Any],
    stopping_criteria: Callable[[Any, Any], Any],
    generation_config: Any,
    **inputs: Any,
) -> Any:
    """Sample completions, as `generate` calls its loops; the result is prompts and completions, padded on the right.

    What is not plain sampling of tokens (beams, images beside the tokens, scores in the result) is left to the loops of
    transformers.
    """
    arguments = (model, input_ids, logits_processor, stopping_criteria, generation_config)
    if not (_is_plain_sampling(model, generation_config) and _has_tokens_alone(model, input_ids, inputs)):
        return _own_loop(model, generation_config)(*arguments, **inputs)
    with _decoding:
        return _sample(*arguments, **inputs)


def _sample(
    model: Any,
    input_ids: Any,
    processor: Any,
    stops: Callable[[Any, Any], Any],
    config: Any,
    **inputs: Any,
) -> Any:
    import torch

    device, (count, length) = input_ids.device, input_ids.shape
    max_tokens = config.max_length - length
    mask = inputs.get("attention_mask")
    mask = torch.ones_like(input_ids) if mask is None else mask
    order, times = group_equal([bytes(row) for row in input_ids.masked_fill(mask == 0, -1).cpu().numpy()])
    # Completions of a prompt that are not next to each other are computed next to each other, and sampled in order.
    computed = torch.tensor(order, device=device)  # the completion of each row that is computed
    restored = None if order == sorted(order) else torch.argsort(computed)  # the row of each completion
    first = computed[::times]
    further = {name: inputs[name] for name in ("logits_to_keep",) if name in inputs}  # where the model has it
    decoder, logits = read_prompts(model, input_ids[first], mask[first], times, max_tokens, **further)
    make = _fused_step(model)
    kernels = None
    if make is not None:
        decoder.fused = make(model)
        kernels = decoder.fused.kernels
    tokens = input_ids.new_full((count, length + max_tokens), transformers_private.padding_token(config))
    tokens[:, :length] = input_ids
    unfinished = torch.ones(count, dtype=torch.bool, device=device)
    longest = torch.zeros((), dtype=torch.long, device=device)
    numbers = torch.ones((), dtype=torch.bool, device=device)
    with transformers_private.decode_kernels(model):
        for step in range(max_tokens):
            end = length + step
            if restored is not None:
                logits = logits[restored]
            if len(processor):  # it may write into its logits
                logits = processor(tokens[:, :end], logits.to(torch.float32, copy=True))
            won, chosen = _race(logits, kernels) if config.do_sample else logits.max(-1)
            numbers &= ~won.isnan().any()
            tokens[:, end] = torch.where(unfinished, chosen, tokens[:, end])
            longest += unfinished.any()
            unfinished &= ~stops(tokens[:, : end + 1], None)
            checks = (step + 1) % (CHECK_EVERY if input_ids.is_cuda else 1) == 0
            if step + 1 == max_tokens or (checks and not unfinished.any()):
                break
            if checks and max_tokens - step > WORTH_LESS_ROWS:
                rows = decoder.drop(~unfinished[computed])
                if rows is not None:
                    computed = computed[rows]
                    restored = torch.zeros_like(tokens[:, 0])  # any row for a completion that has ended
                    restored[computed] = torch.arange(len(computed), device=device)
            logits = decoder.next(tokens[:, end] if restored is None else tokens[computed, end], step)
    if not numbers:
        raise RuntimeError("completions cannot be sampled: the logits of the model are not numbers (NaN)")
    return tokens[:, : length + int(longest)]


def _race(logits: Any, kernels: Any = None) -> Any:
    """A token for each row, sampled with its softmax, as a pair: a number that is NaN where a logit is, and the token.

    This is the race of exponential variables that `torch.multinomial` runs for one sample, from the same random numbers
    to the same tokens, without the three passes over all probabilities in which it checks them; with Triton's `kernels`
    in one pass.
    """
    import torch

    times = torch.empty_like(logits, dtype=torch.float32).exponential_()
    if kernels is not None:
        return kernels.race(logits, times)
    probabilities = torch.softmax(logits, -1, dtype=torch.float32)
    return torch.div(probabilities, times, out=times).max(-1)


def group_equal(rows: Sequence[object], most: int | None = None) -> tuple[list[int], int]:
    """An order of rows that consists of runs of equal rows, and the length that all of these runs have.

    Args:
        rows: hashable.
        most: the longest run; a longer one is divided.
    """
    groups = group_by(range(len(rows)), key=lambda index: rows[index])
    times = math.gcd(*map(len, groups.values())) or 1
    if most is not None and times > most:
        times = max(count for count in range(1, most + 1) if times % count == 0)
    return [index for group in groups.values() for index in group], times


def _fused_step(model: Any) -> Callable[[Any], FusedStep] | None:
    """What makes a `FusedStep` of a model whose operations are fused: two tokens are tried, on a GPU recorded, too."""
    if not can_fuse(model):
        return None
    if model not in _fused:
        steps = fused_steps(model.device)
        _fused[model] = next((make for make in steps if _is_own(model, make)), None)
        if _fused[model] is None:
            say("vpo: tokens are computed by the model's own operations, since fused ones fail or differ here")
        elif _fused[model] is not steps[0]:
            say("vpo: tokens are computed without Triton's kernels, since they fail or differ here")
    return _fused[model]


def _is_own(model: Any, make: Callable[[Any], FusedStep]) -> bool:
    """Whether a model and a `FusedStep` give the tokens after prompts the same logits, up to rounding."""
    import torch

    prompts = torch.arange(6, device=model.device).view(2, 3)
    mask = torch.ones_like(prompts)
    mask[0, 0] = 0
    tokens = prompts.flatten()[:4]
    logits = []
    try:
        with evaluating(model):
            for fused in (None, make(model)):
                decoder, _ = read_prompts(model, prompts, mask, 2, 2)
                decoder.fused = fused
                logits.append(torch.stack([decoder.next(tokens, step).clone() for step in range(2)]))
            races = fused is None or fused.kernels is None or _finds_the_highest(fused.kernels, logits[1][0])
    except Exception:  # of a kernel that this device lacks, of memory
        return False
    return races and same_up_to_rounding(logits[1], logits[0])


def _finds_the_highest(kernels: Any, logits: Any) -> bool:
    """Whether Triton's race, where all take the same time, is won by the highest logit."""
    import torch

    highest, _ = logits.float().max(-1)
    won, chosen = kernels.race(logits, torch.ones_like(logits, dtype=torch.float32))
    found = logits.float().gather(1, chosen[:, None])[:, 0]
    return bool(torch.equal(won, highest) and torch.equal(found, highest))


def _attends_to_all(model: Any) -> bool:
    """Whether, by its config, every layer of a model attends to all tokens, on one device."""
    config = model.config.get_text_config()
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    narrow = getattr(config, "sliding_window", None) or getattr(config, "attn_logit_softcapping", None)
    # Positions that are scaled by the longest text of a batch: that can change, and cannot be recorded.
    scaled = (getattr(config, "rope_parameters", None) or {}).get("rope_type") in ("dynamic", "longrope")
    devices = set((getattr(model, "hf_device_map", None) or {}).values())
    usual = transformers_private.looks_up_attention(model) and kinds == {"full_attention"}
    return usual and not (narrow or scaled) and len(devices) <= 1


def _attends_as_usual(model: Any) -> bool:
    """Whether each layer attends once, to what the cache returned: tried with one token."""
    import torch

    try:
        with evaluating(model):
            prompt = torch.zeros(1, 2, dtype=torch.long, device=model.device)
            decoder, _ = read_prompts(model, prompt, torch.ones_like(prompt), 1, 1, _CheckedCache)
            decoder.compute()
    except Exception:  # whatever another architecture raises
        return False
    checked = decoder.cache
    return isinstance(checked, _CheckedCache) and checked.attended == list(range(len(checked.keys)))


class _CheckedCache(SharedPromptCache):
    """Refuses to attend to anything but what it returned, and notes which layers attended."""

    def __init__(self, *arguments: Any) -> None:
        """See `SharedPromptCache`."""
        super().__init__(*arguments)
        self.attended: list[int] = []

    def update(self, *arguments: Any, **further: Any) -> tuple[Any, Any]:
        """Store a token, and note what is returned."""
        self.returned = super().update(*arguments, **further)
        return self.returned

    def attend(self, layer: int, query: Any, key: Any, value: Any, scaling: float, **further: Any) -> Any:
        """Attend, if the layer does so in the usual way."""
        unusual = [further.get(name) for name in ("sliding_window", "softcap", "s_aux", "position_bias")]
        if any(each is not None for each in unusual) or key is not self.returned[0] or value is not self.returned[1]:
            raise ValueError("this model does not attend in the usual way")
        self.attended.append(layer)
        return super().attend(layer, query, key, value, scaling)


def _is_plain_sampling(model: Any, config: Any) -> bool:
    """Whether tokens are sampled one by one, and nothing but tokens is returned."""
    from transformers.generation.configuration_utils import GenerationMode

    return (
        config.get_generation_mode() in (GenerationMode.SAMPLE, GenerationMode.GREEDY_SEARCH)
        and not config.return_dict_in_generate
        and not (model.training and model.is_gradient_checkpointing)  # which stores no keys and values
    )


def _has_tokens_alone(model: Any, input_ids: Any, inputs: dict[str, Any]) -> bool:
    """Whether a model reads nothing but tokens, all of them now, at the positions that follow from the mask."""
    given = {name for name, value in inputs.items() if value is not None}
    if given - TOKEN_INPUTS or "prepare_inputs_for_generation" in vars(model):  # peft's, as for prompt tuning
        return False
    past, mask, own = (inputs.get(name) for name in ("past_key_values", "attention_mask", "position_ids"))
    if past is not None and past.get_seq_length():
        return False
    if own is None:
        return True
    mask = own.new_ones(input_ids.shape) if mask is None else mask
    return own.shape == mask.shape and bool((own == positions(mask))[mask != 0].all())


def _own_loop(model: Any, config: Any) -> Callable[..., Any]:
    mode = config.get_generation_mode()
    loop = transformers_private.own_loop(model, mode)
    if loop is None:
        raise InputError(f"the installed transformers has no decoding loop for {mode.value}")
    return loop
