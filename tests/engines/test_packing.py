"""Rollouts that share a prompt in one row have the log-probabilities that they have in rows of their own."""

import numpy as np
import pytest
import torch

pytest.importorskip("trl")

from transformers import AutoModelForCausalLM, RobertaConfig
from trl.trainer.utils import add_fused_lm_head

from tests.engines.tiny import save_tiny_model
from vpo.engines.packing import Cost, PackedRows, Rollouts, cost_of


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return save_tiny_model(tmp_path_factory.mktemp("qwen3"))


def load(path, **settings):
    model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, **settings)
    add_fused_lm_head(model, temperature=0.7, outputs=("log_probs", "entropy"))
    return model


def batch(generator, counts, longest_prompt, longest_completion):
    """Tokens, mask and columns of completions, as TRL pads them; `counts` rollouts of each prompt."""
    prompts, completions = [], []
    for count in counts:
        prompt = generator.integers(1, 90, generator.integers(1, longest_prompt + 1)).tolist()
        prompts += [prompt] * count
        completions += [
            generator.integers(1, 90, generator.integers(0, longest_completion + 1)).tolist() for _ in range(count)
        ]
    before, after = max(map(len, prompts)), max(1, *map(len, completions))
    ids = [[0] * (before - len(p)) + p + c + [0] * (after - len(c)) for p, c in zip(prompts, completions, strict=True)]
    mask = [
        [0] * (before - len(p)) + [1] * (len(p) + len(c)) + [0] * (after - len(c))
        for p, c in zip(prompts, completions, strict=True)
    ]
    return torch.tensor(ids), torch.tensor(mask), after


def stock(model, ids, mask, columns):
    """What TRL computes."""
    labels = ids.masked_fill(mask == 0, -100)
    labels[:, :-columns] = -100
    outputs = model(input_ids=ids, attention_mask=mask, labels=labels, fused_lm_head=True)
    return outputs.log_probs[:, -columns:], outputs.entropy[:, -columns:]


def packed(model, ids, mask, columns, most):
    rows = PackedRows(ids, columns, Rollouts.of(ids, mask, columns), most)
    outputs = model(
        input_ids=rows.input_ids,
        attention_mask=rows.attention_mask,
        position_ids=rows.position_ids,
        labels=rows.labels,
        fused_lm_head=True,
    )
    return rows, rows.restore(outputs.log_probs), rows.restore(outputs.entropy)


@pytest.mark.parametrize("most", [1, 2, 3, 8])
@pytest.mark.parametrize("seed", range(4))
def test_packs_have_the_values_and_gradients_of_rows(seed, most, path):
    generator = np.random.default_rng(seed)
    ids, mask, columns = batch(generator, generator.integers(1, 7, 3), 20, 12)
    model = load(path)
    expected, expected_entropy = stock(model, ids, mask, columns)
    _, values, entropy = packed(model, ids, mask, columns, most)
    torch.testing.assert_close(values, expected, atol=2e-5, rtol=0)
    torch.testing.assert_close(entropy, expected_entropy, atol=2e-5, rtol=0)
    weights = torch.as_tensor(generator.standard_normal(expected.shape), dtype=torch.float32)
    gradients = []
    for each in (expected, values):
        model.zero_grad()
        (each * weights).sum().backward()
        gradients.append({name: parameter.grad.clone() for name, parameter in model.named_parameters()})
    largest = max(float(each.abs().max()) for each in gradients[0].values())
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradients[1][name], gradient, atol=2e-5 * largest, rtol=0, msg=name)


def test_a_prompt_is_computed_once_in_a_pack(path):
    ids, mask, columns = batch(np.random.default_rng(0), [4], 30, 5)
    rows, values, _ = packed(load(path), ids, mask, columns, 4)
    prompt = int(mask[0, :-columns].sum())
    assert rows.input_ids.shape == (1, prompt - 1 + 4 + int(mask[:, -columns:].sum()))
    assert (values == 0).equal(mask[:, -columns:] == 0)


def test_rollouts_are_told_apart_by_prompt():
    ids, mask, columns = batch(np.random.default_rng(1), [3, 1, 2], 9, 4)
    rollouts = Rollouts.of(ids, mask, columns)
    assert rollouts.runs == [3, 1, 2]
    assert rollouts.packs(2) == [range(0, 1), range(1, 3), range(3, 4), range(4, 6)]
    assert [len(pack) for pack in rollouts.packs(3)] == [3, 1, 2]
    assert rollouts.completions == mask[:, -columns:].sum(1).tolist()


def test_a_longer_prompt_with_the_same_end_is_another_one():
    ids = torch.tensor([[0, 5, 6, 7, 1], [0, 5, 6, 7, 1], [5, 5, 6, 7, 1]])
    mask = torch.tensor([[0, 1, 1, 1, 1], [0, 1, 1, 1, 1], [1, 1, 1, 1, 1]])
    assert Rollouts.of(ids, mask, 2).runs == [2, 1]
    padded = torch.tensor([[0, 1, 1, 1, 1], [1, 1, 1, 1, 1]])  # a token that equals the padding
    assert Rollouts.of(torch.tensor([[0, 5, 6, 7, 1]] * 2), padded, 2).runs == [1, 1]


@pytest.mark.parametrize("mask", [[0, 0, 0, 1, 1], [1, 0, 1, 1, 1], [1, 1, 1, 0, 1], [1, 1, 0, 1, 1]])
def test_unusual_masks_are_left_alone(mask):
    assert Rollouts.of(torch.ones(2, 5, dtype=torch.long), torch.tensor([[1] * 5, mask]), 2) is None


def test_the_cheapest_packs_follow_from_lengths():
    def cheapest(prompt, completion, count, cost):
        return Rollouts([prompt] * count, [completion] * count, prompt, [count]).cheapest(cost)[1]

    weights, attention = Cost(token=1, pair=0), Cost(token=0, pair=1)
    assert cheapest(100, 10, 24, weights) == 24
    assert cheapest(100, 10, 24, attention) > 1  # a prompt's pairs are computed once, too
    assert cheapest(10, 100, 24, attention) == 1
    assert cheapest(1, 10, 24, weights) == 1
    value, most = Rollouts([100] * 8, [10] * 8, 100, [8]).cheapest(weights)
    assert (value, most) == (99 + 8 * 11, 8)


def test_models_whose_packs_are_not_their_rows_are_not_packed():
    shape = {"vocab_size": 60, "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1}
    config = RobertaConfig(**shape, num_attention_heads=2, is_decoder=True, pad_token_id=1)  # counts positions from 2
    assert cost_of(AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")) is None


def test_models_that_take_no_mask_of_their_own_are_not_packed(path):
    assert cost_of(load(path)) is not None
    assert cost_of(load(path, attn_implementation="eager")) is None
