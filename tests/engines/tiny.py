"""A tiny random model with a tokenizer of single characters, made on the spot."""

import string

import torch

TEMPLATE = "{% for each in messages %}{{ each['content'] }}{% endfor %}{% if add_generation_prompt %}|{% endif %}"


def save_tiny_model(folder, kind="qwen3"):
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

    characters = ["<pad>", "<eos>", "<unk>", *string.printable]
    tokenizer = Tokenizer(
        models.WordLevel({character: index for index, character in enumerate(characters)}, unk_token="<unk>")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>", padding_side="left"
    )
    fast.chat_template = TEMPLATE
    shape = {
        "vocab_size": len(characters),
        "hidden_size": 32,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "max_position_embeddings": 512,
        "pad_token_id": 0,
        "eos_token_id": 1,
        "bos_token_id": None,
    }
    torch.manual_seed(0)
    if kind == "qwen3":
        model = Qwen3ForCausalLM(Qwen3Config(head_dim=16, **shape))
    else:
        model = LlamaForCausalLM(LlamaConfig(**shape))
    model.float().save_pretrained(folder)
    fast.save_pretrained(folder)
    return str(folder)
