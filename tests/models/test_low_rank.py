"""LoRA adapters in the fused computation of a token."""

from dataclasses import replace

import pytest
import torch
from peft import LoraConfig, get_peft_model

from tests.engines.tiny import save_tiny_model
from tests.models.random_models import DRAWS, some_prompts, written
from tests.models.test_fused_step import counted, log_probabilities, varied_model
from tests.training.trained import SMALL
from vpo.models import decoding
from vpo.models.decoding import decode
from vpo.models.fused_step import FusedStep, can_fuse
from vpo.training import trl_trainer
from vpo.training.train import train

EVERYWHERE = {"r": 4, "lora_alpha": 8, "target_modules": "all-linear"}


def adapted(kind, **settings):
    """A random model and its wrapper with an adapter that changes much."""
    model = varied_model(kind)
    wrapper = get_peft_model(model, LoraConfig(**{**EVERYWHERE, **settings})).eval()
    torch.manual_seed(4)
    for name, each in model.named_parameters():
        if "lora_B" in name:
            each.data.normal_(std=0.1)
    return model, wrapper


@pytest.mark.parametrize("settings", [{}, {"target_modules": ["q_proj", "down_proj", "lm_head"]}, {"use_rslora": True}])
@pytest.mark.parametrize("kind", ["Llama", "Qwen2", "Qwen3"])
def test_its_log_probabilities_are_those_of_the_adapted_model(kind, settings):
    model, wrapper = adapted(kind, **settings)
    own, fused = log_probabilities(model, fused=False), log_probabilities(model, fused=True)
    torch.testing.assert_close(fused, own, rtol=0, atol=3e-4)
    with wrapper.disable_adapter():
        base, without = log_probabilities(model, fused=False), log_probabilities(model, fused=True)
    assert (base - own).abs().max() > 0.5
    torch.testing.assert_close(without, base, rtol=0, atol=3e-4)


def test_several_adapters_and_merged_ones():
    model, wrapper = adapted("Qwen2")
    wrapper.add_adapter("other", LoraConfig(**{**EVERYWHERE, "r": 2}, init_lora_weights=False))
    wrapper.base_model.set_adapter(["default", "other"])
    both = log_probabilities(model, fused=False)
    torch.testing.assert_close(log_probabilities(model, fused=True), both, rtol=0, atol=3e-4)
    wrapper.merge_adapter()
    torch.testing.assert_close(log_probabilities(model, fused=True), both, rtol=0, atol=3e-4)


def test_under_mixed_precision_what_adapters_add_is_not_narrowed_first():
    model, _ = adapted("Qwen2")
    exact = log_probabilities(model, fused=False)
    with torch.autocast("cpu", torch.float16):
        own, fused = log_probabilities(model, fused=False), log_probabilities(model, fused=True)
    errors = [(each - exact).abs().mean() for each in (own, fused)]
    assert 0 < errors[1] < 1.2 * errors[0]


@pytest.mark.parametrize("draw", DRAWS)
def test_decoding_computes_no_token_with_the_model_itself(draw, monkeypatch):
    model, wrapper = adapted("Llama")
    tokens, mask = some_prompts()
    plain = written(wrapper, tokens, mask, **DRAWS[draw])
    assert decoding._fused_step(model)  # tries tokens
    calls = []
    monkeypatch.setattr(FusedStep, "logits", counted(FusedStep.logits, calls))
    assert torch.equal(written(wrapper, tokens, mask, custom_generate=decode, **DRAWS[draw]), plain)
    assert len(calls) == plain.shape[1] - tokens.shape[1] - 1


def merged_and_disabled(wrapper):
    wrapper.merge_adapter()
    wrapper.base_model.disable_adapter_layers()


@pytest.mark.parametrize(
    ("settings", "change"),
    [
        ({"use_dora": True}, None),
        ({"lora_bias": True, "target_modules": ["q_proj"]}, None),
        ({"lora_dropout": 0.1}, lambda wrapper: wrapper.train()),
        ({"target_modules": ["embed_tokens"]}, None),
        ({"modules_to_save": ["norm"]}, None),
        ({"trainable_token_indices": [3]}, None),
        ({}, merged_and_disabled),
    ],
    ids=["dora", "bias", "dropout", "embeddings", "copies", "token", "merged and disabled"],
)
def test_other_adapters_compute_as_before(settings, change):
    model, wrapper = adapted("Qwen2", **settings)
    if change:
        change(wrapper)
    assert not can_fuse(model)


def test_dropout_that_is_off_is_no_reason():
    assert can_fuse(adapted("Llama", lora_dropout=0.1)[0])


@pytest.mark.filterwarnings("ignore")  # those of other packages
@pytest.mark.parametrize("checkpointed", [True, False])
def test_training_an_adapter_samples_with_fused_operations(tmp_path, monkeypatch, checkpointed):
    monkeypatch.setattr(trl_trainer, "CHECKPOINTED", 0 if checkpointed else 1e9)
    calls, sampled = [], []
    monkeypatch.setattr(FusedStep, "logits", counted(FusedStep.logits, calls))
    sample = decoding._sample
    monkeypatch.setattr(decoding, "_sample", lambda *inputs, **named: noted(sample(*inputs, **named), inputs, sampled))
    model = save_tiny_model(tmp_path / "model")
    train(replace(SMALL, model=str(model), steps=2, max_tokens=8, lora=2, kl=None, micro_batch=None), tmp_path / "run")
    assert len(sampled) == 2
    assert len(calls) == 2 + sum(tokens - 1 for tokens in sampled)  # two are the trial


def noted(tokens, inputs, sampled):
    sampled.append(tokens.shape[1] - inputs[1].shape[1])
    return tokens
