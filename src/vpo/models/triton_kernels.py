"""Triton kernels for a token of completions that share prompts, which `FusedStep` uses on a GPU.

Between the products of a layer there are four kernels instead of some twenty: `rotate_and_store` of queries, keys and
values; attention to the prompts and then to each completion's own tokens, without copies and without scores in memory;
and the gate. A fifth samples in one pass over the logits. `TRITON_INTERPRET=1` runs them on a CPU, slowly, which is how
`make test-triton` tests them.

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

CAPABILITY = (8, 0)  # of the GPU: from Ampere on
KEY_BLOCK = 64  # keys that a program reads at once; half of it in float32, which needs twice the registers
QUERY_BLOCK = 64  # at most; a quarter of it in float32
LEAST_DOT = 16  # rows that a product of Triton must have
SPLIT = 128  # keys of a prompt that a program reads at least, if there are as many ...
MOST_SPLITS = 8  # ... and programs for a prompt's keys at most
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


def attend(query: Any, cache: Any, layer: int, scaling: float) -> Any:
    """Attend to the prompts and to the tokens of completions up to the present one; the result is N × (H × W).

    Args:
        query: P × K × n × E × W, as `rotate_and_store` returns it.
        cache: a `SharedPromptCache`.
        layer: of the cache.
        scaling: of the scores.
    """
    prompts, key_heads, times, each, width = query.shape
    keys, values = cache.keys[layer], cache.values[layer]
    rows = times * each
    exact = query.dtype == torch.float32
    key_block, query_block = (KEY_BLOCK // 2, QUERY_BLOCK // 4) if exact else (KEY_BLOCK, QUERY_BLOCK)
    query_block = min(query_block, max(LEAST_DOT, triton.next_power_of_2(rows)))
    split = max(SPLIT, triton.cdiv(triton.cdiv(cache.length, MOST_SPLITS), key_block) * key_block)
    splits = triton.cdiv(cache.length, split)
    output = torch.empty(splits, *query.shape, dtype=torch.float32, device=query.device)
    maxima, sums = (torch.empty(output.shape[:-1], dtype=torch.float32, device=query.device) for _ in range(2))
    shape = {
        "WIDTH": width,
        "PADDED": max(LEAST_DOT, triton.next_power_of_2(width)),
        "KEY_BLOCK": key_block,
        "PRECISION": "ieee" if exact else "tf32",  # what is not float32 has one precision
    }
    _attend_to_prompts[(prompts * key_heads, triton.cdiv(rows, query_block), splits)](
        query,
        keys,
        values,
        cache.hidden,
        output,
        maxima,
        sums,
        rows,
        cache.length,
        cache.hidden.stride(0),
        *keys.stride()[:3],
        *values.stride()[:3],
        scaling,
        KEY_HEADS=key_heads,
        QUERY_BLOCK=query_block,
        BLOCKS=split // key_block,
        **shape,
    )
    attended = query.new_empty(prompts * times, key_heads * each * width)
    _attend_to_own[(prompts * key_heads * times,)](
        query,
        cache.own_keys[layer],
        cache.own_values[layer],
        cache.step,
        output,
        maxima,
        sums,
        attended,
        times,
        cache.capacity,
        scaling,
        KEY_HEADS=key_heads,
        EACH=each,
        QUERY_BLOCK=max(LEAST_DOT, triton.next_power_of_2(each)),
        SPLITS=splits,
        **shape,
    )
    return attended


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
def _read(scores, values, maximum, total, output, PRECISION: tl.constexpr):
    """Add a block of keys to a softmax over blocks: scores, and values that they weigh."""
    highest = tl.maximum(maximum, tl.max(scores, 1))
    base = tl.where(highest == float("-inf"), 0.0, highest)  # where all are hidden so far
    kept = tl.exp(maximum - base)
    weights = tl.exp(scores - base[:, None])
    total = total * kept + tl.sum(weights, 1)
    output = output * kept[:, None] + tl.dot(weights.to(values.dtype), values, input_precision=PRECISION)
    return highest, total, output


@triton.jit
def _attend_to_prompts(
    query,
    keys,
    values,
    hidden,
    output,
    maxima,
    sums,
    rows,
    length,
    hidden_prompt,
    key_prompt,
    key_head,
    key_token,
    value_prompt,
    value_head,
    value_token,
    scaling,
    KEY_HEADS: tl.constexpr,
    QUERY_BLOCK: tl.constexpr,
    BLOCKS: tl.constexpr,
    WIDTH: tl.constexpr,
    PADDED: tl.constexpr,
    KEY_BLOCK: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """A block of the queries of a head of keys of a prompt, and a split of its tokens."""
    group, split = tl.program_id(0).to(tl.int64), tl.program_id(2)
    prompt, head = group // KEY_HEADS, group % KEY_HEADS
    row = tl.program_id(1) * QUERY_BLOCK + tl.arange(0, QUERY_BLOCK)
    index = tl.arange(0, PADDED)
    written = (row < rows)[:, None] & (index < WIDTH)[None]
    queries = tl.load(query + (group * rows + row)[:, None] * WIDTH + index, mask=written, other=0.0)
    maximum = tl.full([QUERY_BLOCK], float("-inf"), tl.float32)
    total = tl.zeros([QUERY_BLOCK], tl.float32)
    result = tl.zeros([QUERY_BLOCK, PADDED], tl.float32)
    for block in range(BLOCKS):
        token = (split * BLOCKS + block) * KEY_BLOCK + tl.arange(0, KEY_BLOCK)
        read = (token < length)[:, None] & (index < WIDTH)[None]
        start = prompt * key_prompt + head * key_head
        key = tl.load(keys + start + token[:, None] * key_token + index, mask=read, other=0.0)
        start = prompt * value_prompt + head * value_head
        value = tl.load(values + start + token[:, None] * value_token + index, mask=read, other=0.0)
        unseen = tl.load(hidden + prompt * hidden_prompt + token, mask=token < length, other=float("-inf"))
        scores = tl.dot(queries, tl.trans(key), input_precision=PRECISION) * scaling + unseen[None]
        maximum, total, result = _read(scores, value, maximum, total, result, PRECISION)
    place = (split * tl.num_programs(0) + group) * rows + row
    tl.store(output + place[:, None] * WIDTH + index, result, mask=written)
    tl.store(maxima + place, maximum, mask=row < rows)
    tl.store(sums + place, total, mask=row < rows)


@triton.jit
def _attend_to_own(
    query,
    keys,
    values,
    step,
    output,
    maxima,
    sums,
    attended,
    times,
    capacity,
    scaling,
    KEY_HEADS: tl.constexpr,
    EACH: tl.constexpr,
    QUERY_BLOCK: tl.constexpr,
    SPLITS: tl.constexpr,
    WIDTH: tl.constexpr,
    PADDED: tl.constexpr,
    KEY_BLOCK: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """The queries of a head of keys of one completion: what the splits of its prompt gave, and its own tokens."""
    slot = tl.program_id(0).to(tl.int64)  # of P × K × n
    each, index = tl.arange(0, QUERY_BLOCK), tl.arange(0, PADDED)
    row = slot * EACH + each
    written = (each < EACH)[:, None] & (index < WIDTH)[None]
    queries = tl.load(query + row[:, None] * WIDTH + index, mask=written, other=0.0)
    maximum = tl.full([QUERY_BLOCK], float("-inf"), tl.float32)
    total = tl.zeros([QUERY_BLOCK], tl.float32)
    result = tl.zeros([QUERY_BLOCK, PADDED], tl.float32)
    for split in tl.static_range(SPLITS):
        read = split * tl.num_programs(0) * EACH + row
        part = tl.load(maxima + read, mask=each < EACH, other=float("-inf"))
        highest = tl.maximum(maximum, part)
        base = tl.where(highest == float("-inf"), 0.0, highest)
        kept, added = tl.exp(maximum - base), tl.exp(part - base)
        total = total * kept + tl.load(sums + read, mask=each < EACH, other=0.0) * added
        part_of_result = tl.load(output + read[:, None] * WIDTH + index, mask=written, other=0.0)
        result = result * kept[:, None] + part_of_result * added[:, None]
        maximum = highest
    last = tl.load(step)
    first = last * 0
    while first <= last:
        token = first + tl.arange(0, KEY_BLOCK)
        stored = (token <= last)[:, None] & (index < WIDTH)[None]
        offset = (slot * capacity + token)[:, None] * WIDTH + index
        key = tl.load(keys + offset, mask=stored, other=0.0)
        value = tl.load(values + offset, mask=stored, other=0.0)
        scores = tl.dot(queries, tl.trans(key), input_precision=PRECISION) * scaling
        scores = tl.where((token <= last)[None], scores, float("-inf"))
        maximum, total, result = _read(scores, value, maximum, total, result, PRECISION)
        first += KEY_BLOCK
    result = (result / total[:, None]).to(attended.dtype.element_ty)
    prompt, head, time = slot // (KEY_HEADS * times), slot // times % KEY_HEADS, slot % times
    place = ((prompt * times + time) * KEY_HEADS + head) * EACH + each
    tl.store(attended + place[:, None] * WIDTH + index, result, mask=written)


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
