"""What the loop for shared prompts leaves to transformers and peft."""

import pytest
import torch

from tests.models.random_models import random_model, some_prompts, written
from vpo.models import shared_prompts
from vpo.models.decoding import decode, share_prompts, shares_prompts


@pytest.mark.parametrize("kind", ["Mistral", "Gemma2", "DiffLlama", "DeepseekV3", "Nemotron"])
def test_models_that_attend_in_other_ways_write_by_themselves(kind):
    # They see a window, squash their scores, attend twice, keep something else than keys, take no further arguments.
    model = random_model(kind)
    own = model.generate
    share_prompts(model)
    assert not shares_prompts(model)
    assert model.generate == own
    assert model.config._attn_implementation != shared_prompts.ATTENTION


def test_positions_that_depend_on_the_length_are_left_to_transformers():
    model = random_model("Llama")
    model.config.rope_parameters = {**model.config.rope_parameters, "rope_type": "dynamic"}
    assert not shares_prompts(model)


@pytest.mark.parametrize(
    "settings",
    [
        {"num_beams": 2},
        {"do_sample": True, "guidance_scale": 1.5},
        {"do_sample": True, "return_dict_in_generate": True, "output_scores": True},
        {"do_sample": True, "num_return_sequences": 3},
        {"do_sample": True, "pad_token_id": None},
        {"max_new_tokens": 1},
    ],
)
def test_what_else_generate_does_it_still_does(settings):
    model = random_model("Llama")
    if "pad_token_id" in settings:
        model.generation_config.pad_token_id = model.config.pad_token_id = None
    tokens, mask = some_prompts()
    plain = written(model, tokens, mask, **settings)
    shared = written(model, tokens, mask, custom_generate=decode, **settings)
    if "return_dict_in_generate" in settings:
        assert len(shared.scores) == len(plain.scores)
        plain, shared = plain.sequences, shared.sequences
    assert torch.equal(shared, plain)


@pytest.mark.parametrize("further", ["token_type_ids", "position_ids"])
def test_what_a_model_reads_beside_tokens_is_left_to_transformers(further):
    model = random_model("GPT2")
    tokens, mask = some_prompts()
    # Of the completions of a prompt, each has another.
    given = {further: (torch.arange(len(tokens))[:, None] + torch.arange(tokens.shape[1])).clamp(max=299)}
    plain = written(model, tokens, mask, **given)
    assert not torch.equal(plain, written(model, tokens, mask))
    assert torch.equal(written(model, tokens, mask, custom_generate=decode, **given), plain)


@pytest.mark.filterwarnings("ignore")  # those of peft
@pytest.mark.parametrize("config", ["PromptTuningConfig", "PrefixTuningConfig", "LoraConfig"])
def test_adapters_that_add_to_the_prompt_are_left_to_peft(config):
    peft = pytest.importorskip("peft")
    own = {"r": 4, "init_lora_weights": False} if config == "LoraConfig" else {"num_virtual_tokens": 4}
    model = random_model("Llama")
    adapted = peft.get_peft_model(model, getattr(peft, config)(task_type="CAUSAL_LM", **own)).eval()
    for name, each in adapted.named_parameters():
        if "prompt_encoder" in name:
            each.data.normal_(std=3, generator=torch.Generator().manual_seed(0))
    tokens, mask = some_prompts()
    sample = {"input_ids": tokens, "attention_mask": mask, "max_new_tokens": 5, "do_sample": False}
    plain = adapted.generate(**sample)
    with adapted.disable_adapter():
        assert not torch.equal(plain, adapted.generate(**sample))
    share_prompts(model)
    assert torch.equal(adapted.generate(**sample), plain)
