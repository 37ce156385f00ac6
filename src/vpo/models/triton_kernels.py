"""Triton kernels for a token of completions that share prompts, which `FusedStep` uses on a GPU.

Between the products of a layer there are four kernels instead of some twenty: `rotate_and_store` of queries, keys and
values; the two of `attend`; and `silu_gate`. A fifth samples in one pass over the logits. `TRITON_INTERPRET=1` runs
them on a CPU, slowly, which is how `make test-triton` tests them.

Shapes: P prompts of L tokens; N = P × n completions; H heads of queries, E of which share each of K heads of keys and
values, W wide; T tokens of a completion have memory. Queries are laid out as P × K × n × E × W, so that those which
read the same keys of a prompt are next to each other.
"""

# Triton is untyped, and compiles the functions below.
# mypy: disable-error-code="import-not-found, no-untyped-def, untyped-decorator"

import os
from typing import Any

import torch
import triton
import triton.language as tl

from vpo.models.triton_attention import attend as attend  # re-exported: a kernel, too

CAPABILITY = (8, 0)  # of the GPU: from Ampere on
GATE_BLOCK = 1024
RACE_BLOCK = 4096


def run_on(device: Any) -> bool:
    """Whether the kernels run on a device: a GPU, or a CPU where Triton interprets."""
    if device.type == "cuda":
        return bool(torch.cuda.get_device_capability(device) >= CAPABILITY)
    return os.environ.get("TRITON_INTERPRET") == "1"


def rotate_and_store(
    projected: Any, cos: Any, sin: Any, cache: Any, layer: int, norm: tuple[Any, float] | None = None
) -> Any:
    """Rotate the queries and keys of a token, and store its key and value; the queries are P × K × n × E × W.

    Args:
        projected: queries, keys and values side by side, N × (H + K + K) × W.
        cos: N × 1 × W.
        sin: N × 1 × W, its first half negated.
        cache: a `SharedPromptCache`.
        layer: of the cache.
        norm: how queries and keys are normalised first: a scale, (H + K) × W, and epsilon.
    """
    count, heads, width = projected.shape
    keys, values = cache.own_keys[layer], cache.own_values[layer]
    prompts, key_heads, times, capacity, _ = keys.shape
    query_heads = heads - 2 * key_heads
    query = projected.new_empty(prompts, key_heads, times, query_heads // key_heads, width)
    scale, epsilon = norm or (cos, 0.0)
    _rotate_and_store[(count, heads)](
        projected,
        cos,
        sin,
        scale,
        query,
        keys,
        values,
        cache.step,
        epsilon,
        times,
        capacity,
        NORMALISES=norm is not None,
        QUERY_HEADS=query_heads,
        KEY_HEADS=key_heads,
        WIDTH=width,
        PADDED=triton.next_power_of_2(width),
        num_warps=1,
    )
    return query


def silu_gate(gate_up: Any) -> Any:
    """The SiLU of the first half of each row, times the second half."""
    count, width = gate_up.shape[0], gate_up.shape[1] // 2
    gated = gate_up.new_empty(count, width)
    _silu_gate[(count, triton.cdiv(width, GATE_BLOCK))](gate_up, gated, width, BLOCK=GATE_BLOCK)
    return gated


def race(logits: Any, delays: Any) -> tuple[Any, Any]:
    """The token of each row that has the highest logit − log delay, and that number, which is NaN without a winner.

    Args:
        logits: N × tokens of the vocabulary.
        delays: exponential variables of that shape, in float32.
    """
    logits, delays = logits.contiguous(), delays.contiguous()
    won, chosen = delays.new_empty(len(logits)), delays.new_empty(len(logits), dtype=torch.long)
    _race[(len(logits),)](logits, delays, won, chosen, TOKENS=logits.shape[1], BLOCK=RACE_BLOCK, num_warps=8)
    return won, chosen


@triton.jit
def _rotate_and_store(
    projected,
    cos,
    sin,
    scale,
    query,
    keys,
    values,
    step,
    epsilon,
    times,
    capacity,
    NORMALISES: tl.constexpr,
    QUERY_HEADS: tl.constexpr,
    KEY_HEADS: tl.constexpr,
    WIDTH: tl.constexpr,
    PADDED: tl.constexpr,
):
    """One head of one completion."""
    completion = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    each: tl.constexpr = QUERY_HEADS // KEY_HEADS
    index = tl.arange(0, PADDED)
    inside = index < WIDTH
    opposite = (index + WIDTH // 2) % WIDTH  # what an element is rotated with
    row = projected + (completion * (QUERY_HEADS + 2 * KEY_HEADS) + head) * WIDTH
    state = tl.load(row + index, mask=inside, other=0.0).to(tl.float32)
    is_query, is_value = head < QUERY_HEADS, head >= QUERY_HEADS + KEY_HEADS
    if not is_value:
        partner = tl.load(row + opposite, mask=inside, other=0.0).to(tl.float32)
        if NORMALISES:
            root = tl.rsqrt(tl.sum(state * state) / WIDTH + epsilon)
            state *= root * tl.load(scale + head * WIDTH + index, mask=inside, other=0.0).to(tl.float32)
            partner *= root * tl.load(scale + head * WIDTH + opposite, mask=inside, other=0.0).to(tl.float32)
        angle = completion * WIDTH + index
        state *= tl.load(cos + angle, mask=inside, other=0.0).to(tl.float32)
        state += partner * tl.load(sin + angle, mask=inside, other=0.0).to(tl.float32)
    prompt, time = completion // times, completion % times
    if is_query:
        slot = ((prompt * KEY_HEADS + head // each) * times + time) * each + head % each
        tl.store(query + slot * WIDTH + index, state.to(query.dtype.element_ty), mask=inside)
    else:
        slot = (prompt * KEY_HEADS + (head - QUERY_HEADS) % KEY_HEADS) * times + time
        place = (slot * capacity + tl.load(step)) * WIDTH + index
        if is_value:
            tl.store(values + place, state.to(values.dtype.element_ty), mask=inside)
        else:
            tl.store(keys + place, state.to(keys.dtype.element_ty), mask=inside)


@triton.jit
def _silu_gate(gate_up, gated, width, BLOCK: tl.constexpr):
    """A block of a row."""
    row = tl.program_id(0).to(tl.int64)
    index = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = index < width
    gate = tl.load(gate_up + row * 2 * width + index, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(gate_up + row * 2 * width + width + index, mask=inside, other=0.0).to(tl.float32)
    tl.store(gated + row * width + index, (gate * tl.sigmoid(gate) * up).to(gated.dtype.element_ty), mask=inside)


@triton.jit
def _race(logits, delays, won, chosen, TOKENS: tl.constexpr, BLOCK: tl.constexpr):
    """A row: each lane keeps the best of its tokens, and whether a logit has no probability: NaN or infinite."""
    row = tl.program_id(0).to(tl.int64)
    index = tl.arange(0, BLOCK)
    best = tl.full([BLOCK], float("-inf"), tl.float32)
    best_token = tl.zeros([BLOCK], tl.int32)
    impossible = tl.zeros([BLOCK], tl.int32)
    for start in range(0, TOKENS, BLOCK):
        token = start + index
        inside = token < TOKENS
        logit = tl.load(logits + row * TOKENS + token, mask=inside, other=float("-inf")).to(tl.float32)
        score = logit - tl.log(tl.load(delays + row * TOKENS + token, mask=inside, other=1.0))
        impossible += ((logit != logit) | (logit == float("inf"))).to(tl.int32)
        better = score > best
        best = tl.where(better, score, best)
        best_token = tl.where(better, token, best_token)
    highest = tl.max(best, 0)
    failed = (tl.max(impossible, 0) > 0) | (highest == float("-inf"))
    tl.store(won + row, tl.where(failed, float("nan"), highest))
    tl.store(chosen + row, tl.min(tl.where(best == highest, best_token, TOKENS - 1), 0).to(tl.int64))
