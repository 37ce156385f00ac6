"""A tiny random classifier with three heads, made on the spot, and answers to score."""

import string

import torch

from vpo.rewards import Sample

TEMPLATE = "{% for each in messages %}{{ each['role'] }}: {{ each['content'] }}\n{% endfor %}"
HEADS = ["helpful", "honest", "harmless"]


def sample(answer, /, prompt="Say something.", **row):
    return Sample("p", [{"role": "user", "content": prompt}], answer, {"prompt": prompt, **row})


def save_classifier(folder, kind="bert", labels=None, heads=3, seed=0):
    """Save an encoder that reads pairs, or a decoder ("qwen3") that reads chats."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors
    from transformers import (
        BertConfig,
        BertForSequenceClassification,
        PreTrainedTokenizerFast,
        Qwen3Config,
        Qwen3ForSequenceClassification,
    )

    characters = ["<pad>", "<cls>", "<sep>", "<unk>", *string.printable]
    tokenizer = Tokenizer(
        models.WordLevel({character: index for index, character in enumerate(characters)}, unk_token="<unk>")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    special = {"pad_token": "<pad>", "cls_token": "<cls>", "sep_token": "<sep>", "unk_token": "<unk>"}
    shape = {
        "vocab_size": len(characters),
        "hidden_size": 32,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "max_position_embeddings": 256,
        "pad_token_id": 0,
        "initializer_range": 0.5,  # so that texts differ in what they score
        **({"id2label": dict(enumerate(labels))} if labels else {"num_labels": heads}),
    }
    torch.manual_seed(seed)
    if kind == "bert":
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<cls> $A <sep>",
            pair="<cls> $A <sep> $B:1 <sep>:1",
            special_tokens=[("<cls>", 1), ("<sep>", 2)],
        )
        model = BertForSequenceClassification(BertConfig(**shape))
    else:
        model = Qwen3ForSequenceClassification(Qwen3Config(head_dim=16, num_key_value_heads=2, **shape))
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=256, **special)
    if kind != "bert":
        fast.chat_template = TEMPLATE
    model.float().save_pretrained(folder)
    fast.save_pretrained(folder)
    return str(folder)
