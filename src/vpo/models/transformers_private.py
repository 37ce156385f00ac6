"""Every private part of transformers that vpo uses, each behind a function that says what it is.

transformers may change them in any release. `TESTED` says with which releases tests/models passed;
with another one completions are sampled by plain `generate`, and nothing here but `can_be_recorded` is called.
"""

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from importlib.metadata import version
from typing import Any

from vpo.models.low_rank import is_mergeable

TESTED = ">=5.17,<5.23"  # as in pyproject.toml; 5.17 on a GPU, 5.22 on a CPU


@cache
def is_tested() -> bool:
    """Whether the installed transformers is one of `TESTED`. If not, one line on standard error says so, once."""
    from packaging.specifiers import SpecifierSet

    installed = version("transformers")
    if SpecifierSet(TESTED).contains(installed, prereleases=True):
        return True
    print(
        f"vpo: transformers {installed} is untested with vpo's decoding (tested: {TESTED}): sampling with plain "
        "generate, which reads a prompt once for each of its completions",
        file=sys.stderr,
    )
    return False


def looks_up_attention(model: Any) -> bool:
    """Whether the layers take their attention function, and further arguments for it, from `AttentionInterface`."""
    return bool(model._supports_attention_backend)


def attends_by_sdpa(model: Any) -> bool:
    """Whether the layers attend by `scaled_dot_product_attention`, which takes any mask."""
    return bool(model.config.get_text_config()._attn_implementation == "sdpa")


@contextmanager
def attention(model: Any, name: str) -> Iterator[None]:
    """Have the layers attend by the function that is registered under a name.

    The public `set_attn_implementation` checks and reloads too much to be called for each token.
    """
    config = model.config.get_text_config()
    usual = config._attn_implementation
    config._attn_implementation = name
    try:
        yield
    finally:
        config._attn_implementation = usual


def can_be_recorded(model: Any) -> bool:
    """Whether `forward` always runs the same kernels: a CUDA graph and a `StaticCache` need that."""
    return bool(getattr(model, "_can_compile_fullgraph", False))


def decode_kernels(model: Any) -> AbstractContextManager[None]:
    """The kernels that `generate` itself uses after the prompt: other ones for mixtures of experts on a GPU."""
    chosen: AbstractContextManager[None] = model._optimize_model_for_decode()
    return chosen


def padding_token(generation_config: Any) -> int:
    """The token with which `generate` fills completions that have ended; 0 where there is none."""
    token = generation_config._pad_token_tensor
    return 0 if token is None else int(token)


def keys_and_values(past: Any) -> tuple[list[Any], list[Any]]:
    """The keys and the values of a `DynamicCache`, layer by layer."""
    return [layer.keys for layer in past.layers], [layer.values for layer in past.layers]


def own_loop(model: Any, mode: Any) -> Callable[..., Any] | None:
    """The decoding loop of transformers for a `GenerationMode`; None where the installed release has none."""
    from transformers.generation.utils import GENERATION_MODES_MAPPING

    return getattr(type(model), GENERATION_MODES_MAPPING[mode], None)


def is_llama(model: Any) -> bool:
    """Whether a model computes as Llama, Qwen2 or Qwen3 do, and nothing wraps, watches or replaces a part of it.

    LoRA may, where it amounts to other weights, and `forward` of the model itself may be wrapped, as TRL and accelerate
    do. Quantisation brings layers or parameters of its own; others replace `forward` of a module.
    """
    import torch
    import transformers

    classes = (transformers.LlamaForCausalLM, transformers.Qwen2ForCausalLM, transformers.Qwen3ForCausalLM)
    plain = (type(model).__module__, "torch.nn.modules.", "transformers.activations")
    modules = list(model.modules())
    parameters = {
        name.replace(".base_layer", ""): each for name, each in model.named_parameters() if ".lora_" not in name
    }
    biased = {name.split(".")[-2] for name in parameters if name.endswith(".bias")}
    embeddings = model.get_input_embeddings()  # called as they are: gradient checkpointing with LoRA watches them
    watched = [each for each in modules if each is not embeddings and (each._forward_hooks or each._forward_pre_hooks)]
    return (
        type(model) in classes
        and all(type(each).__module__.startswith(plain) or is_mergeable(each) for each in modules)
        and not watched
        and inspect.unwrap(model.forward) is inspect.unwrap(type(model).forward)
        and not any("forward" in vars(each) for each in modules[1:])
        and {type(each) for each in parameters.values()} == {torch.nn.Parameter}
        and len({(each.dtype, each.device) for each in parameters.values()}) == 1
        and biased <= {"q_proj", "k_proj", "v_proj"}
    )
