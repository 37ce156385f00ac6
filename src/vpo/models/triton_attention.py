"""Attention of one token in Triton: to prompts that completions share, and to each completion's own tokens.

No scores are in memory, and nothing is copied: the softmax runs over blocks of keys. The queries of a prompt read its
keys together, split by split; then those of a completion join the splits, and read its own tokens.

Shapes: P prompts of L tokens, n completions of each; K heads of keys, each with E heads of queries, W wide.
"""

# Triton is untyped, and compiles the functions below.
# mypy: disable-error-code="import-not-found, no-untyped-def, untyped-decorator"

from typing import Any

import torch
import triton
import triton.language as tl

KEY_BLOCK = 64  # keys that a program reads at once; half of it in float32, which needs twice the registers
QUERY_BLOCK = 64  # at most; a quarter of it in float32
LEAST_DOT = 16  # rows that a product of Triton must have
SPLIT = 128  # keys of a prompt that a program reads at least, if there are as many ...
MOST_SPLITS = 8  # ... and programs for a prompt's keys at most


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


@triton.jit
def _raised(maximum, other):
    """The maximum of two, what exponents are taken from it, and by how much sums from the first one shrink."""
    highest = tl.maximum(maximum, other)
    base = tl.where(highest == float("-inf"), 0.0, highest)  # where all are hidden so far
    return highest, base, tl.exp(maximum - base)


@triton.jit
def _read(scores, values, maximum, total, output, PRECISION: tl.constexpr):
    """Add a block of keys to a softmax over blocks: scores, and values that they weigh."""
    highest, base, kept = _raised(maximum, tl.max(scores, 1))
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
        highest, base, kept = _raised(maximum, part)
        added = tl.exp(part - base)
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
