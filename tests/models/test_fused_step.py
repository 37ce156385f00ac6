"""The fused computation of a token, against that of transformers."""

from functools import partial

import pytest
import torch
import transformers
from benchmarks.operations import operations_a_token

from tests.models.random_models import DRAWS, SHAPE, Narrowed, random_model, some_prompts, written
from vpo.models import decoding, fused_step
from vpo.models.decoding import decode, share_prompts
from vpo.models.fused_step import FusedStep, can_fuse
from vpo.models.shared_prompts import read_prompts

FUSED = ["Llama", "Qwen2", "Qwen3"]
STEPS = 6


def varied_model(kind):
    """A random model whose biases are not zero, and whose normalisations scale."""
    model = random_model(kind)
    generator = torch.Generator().manual_seed(3)
    for each in model.parameters():
        if each.dim() == 1:
            each.data += 0.3 * torch.randn(each.shape, generator=generator)
    return model


def prompts_and_tokens():
    """Two prompts, one of them padded, and a token of each of three completions for every step."""
    generator = torch.Generator().manual_seed(2)
    prompts = torch.randint(3, 300, (2, 9), generator=generator)
    mask = torch.ones_like(prompts)
    prompts[0, :4], mask[0, :4] = 0, 0
    return prompts, mask, torch.randint(3, 300, (STEPS, 6), generator=generator)


@torch.no_grad()
def log_probabilities(model, *, fused):
    """Of all tokens after those of each step: STEPS × 6 × 300; `fused` may be what makes a `FusedStep`."""
    prompts, mask, tokens = (each.to(model.device) for each in prompts_and_tokens())
    decoder, _ = read_prompts(model, prompts, mask, 3, STEPS)
    make = FusedStep if fused is True else fused
    decoder.fused = make(model) if make else None
    logits = [decoder.next(each, step) for step, each in enumerate(tokens)]
    return torch.stack(logits).float().log_softmax(-1)


@pytest.mark.parametrize("kind", FUSED)
def test_its_log_probabilities_are_those_of_transformers(kind):
    model = varied_model(kind)
    own, fused = log_probabilities(model, fused=False), log_probabilities(model, fused=True)
    assert own.exp().amax() > 0.5  # far from uniform
    assert not torch.equal(fused, own)  # computed in another way
    torch.testing.assert_close(fused, own, rtol=0, atol=1e-4)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("kind", FUSED)
def test_what_is_recorded_on_a_gpu_computes_the_same(kind):
    model = varied_model(kind)
    exact = log_probabilities(model, fused=False)
    torch.testing.assert_close(log_probabilities(model.cuda(), fused=True).cpu(), exact, rtol=0, atol=1e-4)


@pytest.mark.parametrize("kind", FUSED)
def test_in_half_precision_it_is_as_near_to_float32_as_transformers(kind):
    model = varied_model(kind)
    exact = log_probabilities(model, fused=False)
    model.half()  # some CPUs crash on bfloat16
    errors = [(log_probabilities(model, fused=fused) - exact).abs().mean() for fused in (False, True)]
    assert 0 < errors[1] < 1.2 * errors[0]


@pytest.mark.parametrize("kind", FUSED)
def test_under_mixed_precision_too(kind):
    model = varied_model(kind)
    exact = log_probabilities(model, fused=False)
    with torch.autocast("cpu", torch.float16):
        own, fused = log_probabilities(model, fused=False), log_probabilities(model, fused=True)
    errors = [(each - exact).abs().mean() for each in (own, fused)]
    assert 0 < errors[1] < 1.2 * errors[0]


@pytest.mark.parametrize("kind", FUSED)
def test_it_takes_about_half_of_the_operations(kind):
    model = random_model(kind)
    assert operations_a_token(model, fused=True) < 0.55 * operations_a_token(model, fused=False)


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("kind", FUSED)
def test_decoding_computes_no_token_with_the_model_itself(kind, draw, monkeypatch):
    model = random_model(kind)
    tokens, mask = some_prompts()
    plain = written(model, tokens, mask, **DRAWS[draw])
    assert decoding._fused_step(model)  # tries tokens
    calls = []
    monkeypatch.setattr(FusedStep, "logits", counted(FusedStep.logits, calls))
    assert torch.equal(written(model, tokens, mask, custom_generate=decode, **DRAWS[draw]), plain)
    assert len(calls) == plain.shape[1] - tokens.shape[1] - 1  # the prompts' own logits are the first


def counted(function, calls):
    def watched(*arguments):
        calls.append(function)
        return function(*arguments)

    return watched


def test_each_call_computes_with_the_weights_of_its_time():
    model = random_model("Qwen2")
    tokens, mask = some_prompts()
    before = written(model, tokens, mask, custom_generate=decode, **DRAWS["greedy"])
    with torch.no_grad():
        for each in model.parameters():
            each.add_(0.1 * torch.randn_like(each))
    after = written(model, tokens, mask, custom_generate=decode, **DRAWS["greedy"])
    assert not torch.equal(after, before)
    assert torch.equal(after, written(model, tokens, mask, **DRAWS["greedy"]))


def with_hook(model):
    model.model.layers[1].mlp.register_forward_hook(lambda *_: None)
    return model


def with_replaced_forward(model):
    model.model.norm.forward = model.model.norm.forward
    return model


def with_other_precision(model):
    model.model.norm.double()
    return model


def with_parametrization(model):
    torch.nn.utils.parametrizations.weight_norm(model.model.layers[0].mlp.up_proj)
    return model


def with_bias(model):
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**SHAPE, mlp_bias=True))


def with_another_class(model):
    class Changed(transformers.LlamaForCausalLM):
        pass

    return Changed(model.config)


@pytest.mark.parametrize(
    "change",
    [
        with_hook,
        with_replaced_forward,
        with_other_precision,
        with_parametrization,
        with_bias,
        with_another_class,
    ],
)
def test_what_is_not_a_plain_model_computes_as_before(change):
    model = random_model("Llama")
    assert can_fuse(model)
    assert not can_fuse(change(model))


@pytest.mark.parametrize("kind", ["Qwen3Moe", "Granite", "Olmo", "GPT2", "Mistral"])
def test_other_architectures_compute_as_before(kind):
    assert not can_fuse(random_model(kind))


def test_copies_that_take_much_memory_are_not_made(monkeypatch):
    model = random_model("Llama")
    size = 4 * sum(each.numel() for each in model.model.layers.parameters())
    for limit in (size, size - 1):
        monkeypatch.setattr(fused_step, "CPU_COPY", limit)
        assert can_fuse(model) == (limit == size)


def test_accelerate_may_wrap_forward_for_mixed_precision(monkeypatch):
    model = random_model("Llama")
    autocast = partial(torch.autocast, "cpu", torch.float16)
    model.forward = autocast()(model.forward)
    share_prompts(model, autocast)
    with autocast():
        assert decoding._fused_step(model)  # tries tokens
    tokens, mask = some_prompts()
    calls = []
    monkeypatch.setattr(FusedStep, "logits", counted(FusedStep.logits, calls))
    with Narrowed(model) as narrowed:
        result = written(model, tokens, mask, **DRAWS["nucleus"])
    assert len(calls) == result.shape[1] - tokens.shape[1] - 1
    linear = sum(isinstance(each, torch.nn.Linear) for each in model.modules())
    assert narrowed.count == 2 * linear  # once by autocast, which reads the prompts, and once for all tokens


def test_under_mixed_precision_keys_and_values_are_stored_narrow(monkeypatch):
    caches = []
    monkeypatch.setattr(decoding, "can_fuse", lambda _: False)
    monkeypatch.setattr(
        decoding, "read_prompts", lambda *inputs, **named: noted(read_prompts(*inputs, **named), caches)
    )
    model = random_model("Llama")
    tokens, mask = some_prompts()
    with torch.autocast("cpu", torch.float16):
        written(model, tokens, mask, custom_generate=decode, max_new_tokens=3)
    (cache,) = caches
    stored = (*cache.keys, *cache.values, *cache.own_keys, *cache.own_values)
    assert {each.dtype for each in stored} == {torch.float16}


def noted(decoder_and_logits, caches):
    caches.append(decoder_and_logits[0].cache)
    return decoder_and_logits


def flat_model(kind):
    """A random model whose tokens are almost equally probable."""
    model = random_model(kind)
    model.get_output_embeddings().weight.data /= 1000
    return model


@pytest.mark.parametrize(
    "wrong", [lambda *_: 1 / 0, lambda self, tokens, *_: torch.randn(len(tokens), 300)], ids=["fails", "differs"]
)
@pytest.mark.parametrize("make", [varied_model, random_model, flat_model])
def test_a_model_whose_fused_tokens_are_not_its_own_computes_them_itself(make, wrong, monkeypatch, capsys):
    model = make("Qwen3")
    prompts, mask = some_prompts()
    sample = {"attention_mask": mask, "custom_generate": decode, "max_new_tokens": 5, "do_sample": False}
    expected = model.generate(prompts, **sample)
    decoding._fused.clear()
    monkeypatch.setattr(FusedStep, "logits", wrong)
    for _ in range(2):
        assert torch.equal(model.generate(prompts, **sample), expected)
    assert capsys.readouterr().err.count("computed by the model's own operations") == 1
