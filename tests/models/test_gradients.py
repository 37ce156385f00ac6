import json
import math
from dataclasses import replace

import pytest
import torch
from transformers import AutoModelForCausalLM

import vpo.training.train
from tests.training.trained import SMALL
from vpo.models.gradients import PATIENCE, without_cudnn_attention
from vpo.models.locate import embedded
from vpo.models.policy import load
from vpo.models.sft import Example, Schedule, fine_tune
from vpo.util.errors import InputError


@pytest.fixture
def spoil():
    """Make the gradient of one weight of a model NaN in some backward passes, counted from 1."""
    hooks = []

    def spoilt(model, passes):
        seen = 0

        def hook(gradient):
            nonlocal seen
            seen += 1
            return gradient * math.nan if seen in passes else gradient

        hooks.append(next(model.parameters()).register_hook(hook))

    yield spoilt
    for hook in hooks:
        hook.remove()


@pytest.fixture
def trained(spoil, monkeypatch, tmp_path):
    """Train with spoilt passes, two of which make a step, and return the metrics and the weights."""

    def trained(passes, **changes):
        prepare = vpo.training.train.prepare

        def prepared(config):
            parts = prepare(config)
            spoil(parts.policy.model, passes)
            return parts

        monkeypatch.setattr(vpo.training.train, "prepare", prepared)
        run = vpo.training.train.train(replace(SMALL, **changes), tmp_path / "run").run
        metrics = [json.loads(line) for line in run.metrics.read_text().splitlines()]
        return metrics, AutoModelForCausalLM.from_pretrained(run.model).state_dict()

    return trained


def test_a_step_whose_gradient_is_not_finite_is_skipped(trained, capsys):
    metrics, weights = trained({3}, steps=4)
    assert [row["grad_norm"] is None for row in metrics] == [False, True, False, False]
    assert all(value.isfinite().all() for value in weights.values())
    assert capsys.readouterr().err.count("skipped step 2: non-finite gradient") == 1


def test_a_skipped_step_moves_no_weight(trained):
    before = AutoModelForCausalLM.from_pretrained(embedded("maze", size=7)).state_dict()
    _, after = trained({1}, steps=1)
    assert all(torch.equal(before[name], value) for name, value in after.items())


def test_training_ends_where_no_step_is_left(trained):
    with pytest.raises(
        InputError, match=rf"non-finite gradients in {PATIENCE} steps in a row, up to step {PATIENCE + 1}: lower"
    ):
        trained(range(3, 99), steps=30)


def test_supervised_fine_tuning_skips_such_steps_too(spoil, tmp_path):
    policy = load(embedded("maze", size=7), precision="float32")
    spoil(policy.model, {2})
    rows = [Example([1, 2, 3, 4], 2)] * 8
    fine_tune(policy.model, policy.tokenizer, rows, tmp_path, Schedule(steps=4, batch=2, learning_rate=1e-3, seed=0))
    assert all(each.isfinite().all() for each in policy.model.parameters())


def test_training_switches_cudnn_attention_off_and_restores_it():
    assert torch.backends.cuda.cudnn_sdp_enabled()
    with without_cudnn_attention():
        assert not torch.backends.cuda.cudnn_sdp_enabled()
    assert torch.backends.cuda.cudnn_sdp_enabled()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_gradients_of_attention_are_finite_without_cudnn():
    """Where they are not with it, on an H100 or H200 (pytorch/pytorch#196678)."""
    torch.manual_seed(0)
    query, key, value = (torch.randn(1, 1, 704, 64, device="cuda", dtype=torch.bfloat16) * 0.1 for _ in range(3))
    query[..., 0], key[..., 0] = 1, -120 * 8
    mask = torch.ones(704, 704, dtype=torch.bool, device="cuda").tril()
    with without_cudnn_attention():
        output = torch.nn.functional.scaled_dot_product_attention(query.requires_grad_(), key, value, attn_mask=mask)
        output.sum().backward()
    assert query.grad.isfinite().all()
