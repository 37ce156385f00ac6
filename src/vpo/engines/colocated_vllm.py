"""TRL's colocated vLLM on a machine without a GPU, where without this module it would not follow the policy. TRL 1.16.

On a CPU vLLM packs the weights of linear layers into copies when it loads a model. TRL writes each update into the
weights, and the copies would stay those of the first step: an error for weights that were freed, and stale samples,
without a word, for the output layer, which keeps both. TRL also has no setting for the precision of vLLM, whose default
on a CPU is bf16.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from vpo.models.vllm_model import arguments, set_up


@contextmanager
def following_weights() -> Iterator[None]:
    """A trainer that is built within the block has a vLLM that samples from the weights that TRL gives it."""
    set_up()
    settings = arguments(seeds=False)
    if not settings:  # on a GPU vLLM computes with the weights themselves
        yield
        return
    from torch.nn.functional import linear
    from trl.generation import vllm_generation
    from vllm.model_executor.layers import utils

    def compute_with_weights(layer: Any, remove_weight: bool) -> None:
        layer.cpu_linear = linear

    engine, pack = vllm_generation.LLM, utils.dispatch_cpu_unquantized_gemm
    vllm_generation.LLM = partial(engine, **settings)
    utils.dispatch_cpu_unquantized_gemm = compute_with_weights
    try:
        yield
    finally:
        vllm_generation.LLM, utils.dispatch_cpu_unquantized_gemm = engine, pack
