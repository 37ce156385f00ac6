"""Triton's kernels, interpreted on a CPU (`make test-triton`), against the operations of torch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.models.random_models import DRAWS, random_model, some_prompts, written
from tests.models.test_fused_step import FUSED, log_probabilities, varied_model
from vpo.models import decoding
from vpo.models.decoding import decode
from vpo.models.fused_step import FusedStep, fused_steps
from vpo.models.shared_prompts import SharedPromptCache

pytest.importorskip("triton")
interpreted = pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") != "1", reason="needs TRITON_INTERPRET=1")
TOLERANCE = {torch.float32: 1e-5, torch.float16: 1e-2}
# Prompts, completions of each, heads of keys, heads of queries for each, width, tokens of prompts and of completions.
SHAPES = {
    "as a real model": (2, 2, 2, 7, 64, 150, 70),
    "least": (1, 1, 1, 1, 16, 1, 1),
    "not powers of two": (3, 2, 1, 3, 24, 5, 4),
    "several blocks of queries": (1, 20, 1, 4, 16, 70, 2),
    "splits at most": (1, 2, 1, 2, 16, 1500, 3),
}


def caches(shape, dtype):
    """The same prompts twice: the first begins with padding, the last has a whole split of it where it is long."""
    prompts, times, heads, _, width, length, tokens = shape
    mask = torch.ones(prompts, length, dtype=torch.long)
    mask[0, : length // 2] = 0
    mask[-1, : max(0, length - 10)] = 0
    generator = torch.Generator().manual_seed(1)
    # As transformers lays them out: heads are not next to their tokens.
    keys, values = (
        [torch.randn(prompts, length, heads, width, generator=generator).to(dtype).transpose(1, 2) for _ in range(2)]
        for _ in range(2)
    )
    return [SharedPromptCache(mask, keys, values, times, tokens) for _ in range(2)]


def rotated(projected, cos, sin, heads, norm):
    """The rotation as transformers writes it, in float32; values are as they were."""
    states = projected[:, :heads].float()
    if norm is not None:
        states = states * (states.square().mean(-1, keepdim=True) + norm[1]).rsqrt() * norm[0]
    first, second = states.chunk(2, -1)
    states = states * cos + torch.cat([-second, first], -1) * sin
    return torch.cat([states.to(projected.dtype), projected[:, heads:]], 1)


@interpreted
@pytest.mark.parametrize("normalises", [False, True])
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_attention_is_that_of_torch(shape, dtype, normalises):
    from vpo.models import triton_kernels

    prompts, times, key_heads, each, width, _, tokens = shape
    query_heads = key_heads * each
    expected_cache, cache = caches(shape, dtype)
    generator = torch.Generator().manual_seed(0)
    norm = (torch.rand(query_heads + key_heads, width, generator=generator), 1e-6) if normalises else None
    for step in range(tokens):
        projected = torch.randn(prompts * times, query_heads + 2 * key_heads, width, generator=generator).to(dtype)
        angle = torch.randn(prompts * times, 1, width // 2, generator=generator).repeat(1, 1, 2)
        cos, sin = angle.cos(), angle.sin()
        expected_cache.begin(step)
        states = rotated(projected, cos, sin, query_heads + key_heads, norm)[:, :, None]
        query, key, value = states.split([query_heads, key_heads, key_heads], 1)
        expected = expected_cache.attend(1, query, *expected_cache.update(key, value, 1), 0.3).flatten(1)
        cache.begin(step)
        if step not in (0, 1, tokens - 1):  # interpreted, each takes a second
            cache.update(key, value, 1)
            continue
        negated = torch.cat([-sin[..., : width // 2], sin[..., width // 2 :]], -1)
        queries = triton_kernels.rotate_and_store(projected, cos, negated, cache, 1, norm)
        attended = triton_kernels.attend(queries, cache, 1, 0.3)
        torch.testing.assert_close(attended, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])
    for stored, exact in ((cache.own_keys, expected_cache.own_keys), (cache.own_values, expected_cache.own_values)):
        torch.testing.assert_close(stored[1], exact[1], rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])
        assert not stored[0].any()  # of the other layer


@interpreted
@pytest.mark.parametrize("width", [1, 1000, 1024, 1500])
def test_the_gate_is_that_of_torch(width):
    from vpo.models import triton_kernels

    gate_up = torch.randn(3, 2 * width, generator=torch.Generator().manual_seed(0))
    gate, up = gate_up.chunk(2, -1)
    torch.testing.assert_close(triton_kernels.silu_gate(gate_up), torch.nn.functional.silu(gate) * up)


@interpreted
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("size", [1, 300, 10_000])
def test_the_race_is_that_of_torch(size, dtype):
    from vpo.models import triton_kernels

    logits = (3 * torch.randn(8, size, generator=torch.Generator().manual_seed(0))).to(dtype)
    logits[:, 1::3] = -torch.inf
    for seed in range(5):
        torch.manual_seed(seed)
        _, expected = decoding._race(logits)
        torch.manual_seed(seed)
        won, chosen = decoding._race(logits, triton_kernels)
        assert torch.equal(chosen, expected)
        assert won.isfinite().all()


@interpreted
@pytest.mark.parametrize("number", [torch.nan, torch.inf, -torch.inf])
def test_the_race_has_no_winner_without_probabilities(number):
    from vpo.models import triton_kernels

    logits = torch.randn(2, 5000)
    logits[1, slice(None) if number < 0 else 4999] = number
    for kernels in (None, triton_kernels):
        won, _ = decoding._race(logits, kernels)
        assert won.isnan().tolist() == [False, True]


@interpreted
@pytest.mark.parametrize("kind", FUSED)
def test_its_log_probabilities_are_those_of_transformers(kind):
    model = varied_model(kind)
    own = log_probabilities(model, fused=False)
    with_kernels = log_probabilities(model, fused=fused_steps(model.device)[0])
    assert not torch.equal(with_kernels, log_probabilities(model, fused=FusedStep))
    torch.testing.assert_close(with_kernels, own, rtol=0, atol=1e-4)


@interpreted
@pytest.mark.parametrize("kind", FUSED)
def test_in_half_precision_it_is_as_near_to_float32_as_transformers(kind):
    model = varied_model(kind)
    exact = log_probabilities(model, fused=False)
    model.half()
    ways = (False, fused_steps(model.device)[0])
    errors = [(log_probabilities(model, fused=way) - exact).abs().mean() for way in ways]
    assert 0 < errors[1] < 1.2 * errors[0]


@interpreted
@pytest.mark.parametrize("kind", FUSED)
def test_decoding_uses_them(kind):
    model = random_model(kind)
    tokens, mask = some_prompts()
    draw = {**DRAWS["nucleus"], "max_new_tokens": 3}
    plain = written(model, tokens, mask, **draw)
    assert torch.equal(written(model, tokens, mask, custom_generate=decode, **draw), plain)
    assert decoding._fused[model].keywords


@interpreted
@pytest.mark.parametrize(
    ("kernel", "wrong"),
    [
        ("attend", lambda *_: 1 / 0),
        ("attend", lambda query, *_: query.transpose(1, 2).flatten(0, 1).flatten(1)),
        ("race", lambda logits, _: logits.min(-1)),
    ],
)
def test_what_they_compute_wrongly_torch_computes(kernel, wrong, monkeypatch, capsys):
    from vpo.models import triton_kernels

    monkeypatch.setattr(triton_kernels, kernel, wrong)
    model = varied_model("Qwen3")
    assert decoding._fused_step(model) is FusedStep
    assert capsys.readouterr().err.count("without Triton's kernels") == 1


def test_they_compile_for_the_gpus_that_they_run_on():
    """In a process of its own: what is interpreted is not compiled."""
    command = [sys.executable, "-m", "tests.models.compile_kernels"]
    environment = {**os.environ, "TRITON_INTERPRET": "0"}
    subprocess.run(command, check=True, env=environment, cwd=Path(__file__).parents[2])
