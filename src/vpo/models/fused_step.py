"""The logits of one token in half of the operations, for models built as Llama is.

transformers computes a normalisation in six operations and a rotation in five, once for queries and once for keys, and
multiplies by each weight alone. On a GPU most of these are kernels of a few microseconds. Here queries and keys are
rotated together, in three operations; weights of the same input are multiplied in one product; a normalisation is one
operation on a GPU; and the product before a residual connection adds to it. Where Triton runs, its kernels rotate,
store and attend.

Shapes: N completions, F features, V tokens of the vocabulary; H heads of queries, K of keys and of values, W wide.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from vpo.models import transformers_private
from vpo.models.low_rank import merged_weight

CPU_COPY = 1 << 29  # bytes, beyond which a CPU spends its time in products, and fusing gains nothing


def can_fuse(model: Any) -> bool:
    """Whether a model is one that `FusedStep` can compute, and copies of its layers take little memory."""
    if not transformers_private.is_llama(model):
        return False
    copied = sum(each.numel() * product_dtype(each).itemsize for each in model.get_decoder().layers.parameters())
    return bool(copied <= _copy_limit(model.device))


def fused_steps(device: Any) -> list[Callable[[Any], "FusedStep"]]:
    """What makes a `FusedStep` of a model on a device, the fastest first: with Triton's kernels where they run."""
    kernels = _triton_kernels(device)
    return [FusedStep] if kernels is None else [partial(FusedStep, kernels=kernels), FusedStep]


def product_dtype(tensor: Any) -> Any:
    """The precision in which a tensor is multiplied: narrower than its own under mixed precision."""
    import torch

    device = tensor.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else tensor.dtype


class FusedStep:
    """Computes the logits of completions with copies of a model's weights, as they are when it is made."""

    def __init__(self, model: Any, kernels: Any = None) -> None:
        """Copy the weights of a model that `can_fuse`; `kernels` is `triton_kernels`, or None for torch's."""
        import torch

        decoder, head = model.get_decoder(), model.get_output_embeddings()
        self.device, self.kernels = model.device.type, kernels
        dtype = product_dtype(decoder.norm.weight)
        torch.clear_autocast_cache()  # its narrow copies of the weights: those made here replace them
        self.embed, self.rotary, self.norm = model.get_input_embeddings(), decoder.rotary_emb, decoder.norm
        self.layers = [_Layer(layer, dtype, kernels) for layer in decoder.layers]
        self.head = merged_weight(head).to(dtype)

    def logits(self, tokens: Any, positions: Any, cache: Any) -> Any:
        """The logits, N × V, after tokens, N × 1, at positions, N × 1; the cache attends to what came before."""
        import torch

        with torch.autocast(self.device, enabled=False):
            hidden = self.embed(tokens)
            cos, sin = self.rotary(hidden, positions)
            half = sin.shape[-1] // 2
            sin = torch.cat([-sin[..., :half], sin[..., half:]], -1)  # instead of a sign in each layer
            hidden = hidden[:, 0]
            for layer in self.layers:
                hidden = layer.attention(hidden, cos, sin, cache)
                hidden = layer.feed_forward(hidden)
            return _normalised(hidden, self.norm, self.head.dtype) @ self.head.T


class _Layer:
    """The weights of a layer, and its two parts, each of which returns the residual stream, N × F, after it."""

    def __init__(self, layer: Any, dtype: Any, kernels: Any) -> None:
        """Copy the weights of a layer of transformers; those of products in the precision of products."""
        import torch

        attention, network = layer.self_attn, layer.mlp
        projections = (attention.q_proj, attention.k_proj, attention.v_proj)
        biases = [each.bias.to(dtype) for each in projections if each.bias is not None]
        self.index, self.scaling = attention.layer_idx, attention.scaling
        self.activation, self.kernels = network.act_fn, kernels
        self.norms = layer.input_layernorm, layer.post_attention_layernorm
        self.queries, self.keys = (each.out_features // attention.head_dim for each in projections[:2])  # H and K
        self.qkv = torch.cat([merged_weight(each).to(dtype) for each in projections])
        self.qkv_bias = torch.cat(biases) if biases else None
        self.output = merged_weight(attention.o_proj).to(dtype)
        self.gate_up = torch.cat([merged_weight(each).to(dtype) for each in (network.gate_proj, network.up_proj)])
        self.down = merged_weight(network.down_proj).to(dtype)
        self.is_silu = network.config.hidden_act in ("silu", "swish")
        self.head_norm: tuple[Any, float] | None = None  # of queries and keys: a scale, (H + K) × W, and epsilon
        if hasattr(attention, "q_norm"):
            scales = (attention.q_norm.weight.expand(self.queries, -1), attention.k_norm.weight.expand(self.keys, -1))
            self.head_norm = torch.cat(scales), attention.q_norm.variance_epsilon

    def attention(self, hidden: Any, cos: Any, sin: Any, cache: Any) -> Any:
        """Attend, with rotation by angles whose cosine and sine are N × 1 × W, the first half of the sine negated."""
        import torch

        inputs = _normalised(hidden, self.norms[0], self.qkv.dtype)
        projected = torch.nn.functional.linear(inputs, self.qkv, self.qkv_bias)
        projected = projected.unflatten(-1, (self.queries + 2 * self.keys, -1))
        if self.kernels is None:
            attended = self._attend(projected, cos, sin, cache)
        else:
            query = self.kernels.rotate_and_store(projected, cos, sin, cache, self.index, self.head_norm)
            attended = self.kernels.attend(query, cache, self.index, self.scaling)
        return _plus_product(hidden, attended, self.output)

    def _attend(self, projected: Any, cos: Any, sin: Any, cache: Any) -> Any:
        """Rotate, store and attend by operations of torch; `projected` is N × (H + K + K) × W."""
        import torch

        states, rotated = projected, self.queries + self.keys
        if self.head_norm is not None:
            scale, epsilon = self.head_norm
            states = torch.nn.functional.rms_norm(projected, projected.shape[-1:], eps=epsilon)[:, :rotated] * scale
        swapped = states.roll(states.shape[-1] // 2, -1)  # of contiguous memory: roll would copy a part of it
        states = torch.addcmul(states[:, :rotated] * cos, swapped[:, :rotated], sin).to(projected.dtype)
        query, key = states[:, :, None].split([self.queries, self.keys], 1)
        keys, values = cache.update(key, projected[:, rotated:, None], self.index)
        return cache.attend(self.index, query, keys, values, self.scaling).flatten(1)

    def feed_forward(self, hidden: Any) -> Any:
        """The gated network."""
        gate_up = _normalised(hidden, self.norms[1], self.gate_up.dtype) @ self.gate_up.T
        if self.kernels is not None and self.is_silu:
            return _plus_product(hidden, self.kernels.silu_gate(gate_up), self.down)
        gate, up = gate_up.chunk(2, -1)
        return _plus_product(hidden, self.activation(gate) * up, self.down)


def _triton_kernels(device: Any) -> Any:
    """The module of kernels where they run on a device, else None: without Triton, or without a GPU."""
    try:
        from vpo.models import triton_kernels
    except ImportError:
        return None
    return triton_kernels if triton_kernels.run_on(device) else None


def _copy_limit(device: Any) -> int:
    """The most bytes that copies of weights may take: on a GPU, a quarter of those that are free."""
    import torch

    if device.type != "cuda":
        return CPU_COPY
    free, _ = torch.cuda.mem_get_info(device)
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(free + unused) // 4


def _normalised(hidden: Any, norm: Any, dtype: Any) -> Any:
    import torch

    normalised = torch.nn.functional.rms_norm(hidden, norm.weight.shape, norm.weight, norm.variance_epsilon)
    return normalised.to(dtype)


def _plus_product(hidden: Any, inputs: Any, weight: Any) -> Any:
    """Add a product to the residual stream, in place; under mixed precision the stream is wider than the product."""
    if hidden.dtype == weight.dtype:
        return hidden.addmm_(inputs, weight.T)
    return hidden.add_(inputs @ weight.T)
