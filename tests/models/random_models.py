"""Random models of several architectures, prompts for them, and how they are sampled from."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

SHAPE = {
    "vocab_size": 300,
    "hidden_size": 96,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "initializer_range": 0.3,
    "pad_token_id": 0,
    "eos_token_id": 1,
    "bos_token_id": 2,
}
OWN = {
    "Qwen3Moe": {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32},
    "DeepseekV3": {"n_routed_experts": 4, "n_group": 1, "topk_group": 1, "num_experts_per_tok": 2},
}
DRAWS = {
    "greedy": {"do_sample": False},
    "nucleus": {"do_sample": True, "temperature": 0.8, "top_p": 0.9},
    "penalty": {"do_sample": True, "repetition_penalty": 1.3},
}


def random_model(kind):
    import transformers

    torch.manual_seed(0)
    if kind == "GPT2":
        ends = {name: SHAPE[name] for name in ("pad_token_id", "eos_token_id", "bos_token_id")}
        config = transformers.GPT2Config(
            vocab_size=300, n_embd=96, n_layer=2, n_head=4, initializer_range=0.3, n_positions=128, **ends
        )
        return transformers.GPT2LMHeadModel(config).eval()
    config = getattr(transformers, f"{kind}Config")(**SHAPE, **OWN.get(kind, {}))
    return getattr(transformers, f"{kind}ForCausalLM")(config).eval()


def some_prompts():
    """Four prompts, one of them padded, and five completions of each."""
    torch.manual_seed(1)
    tokens = torch.randint(3, 300, (4, 9))
    mask = torch.ones_like(tokens)
    tokens[1, :4], mask[1, :4] = 0, 0
    return tokens.repeat_interleave(5, 0), mask.repeat_interleave(5, 0)


def written(model, tokens, mask, **settings):
    torch.manual_seed(5)
    return model.generate(tokens, attention_mask=mask, **{"max_new_tokens": 40, **settings})


class Narrowed(TorchDispatchMode):
    """Counts how often weights are narrowed."""

    def __init__(self, model):
        super().__init__()
        self.weights, self.count = {each.data_ptr() for each in model.parameters()}, 0

    def __torch_dispatch__(self, function, types, arguments=(), more=None):
        if function is torch.ops.aten._to_copy.default:
            self.count += arguments[0].data_ptr() in self.weights
        return function(*arguments, **(more or {}))
