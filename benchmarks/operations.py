"""How many operations of torch a model takes for one token: on a GPU, each is a kernel or a few."""

from collections.abc import Mapping, Sequence
from typing import Any
from unittest import mock

import torch
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from vpo.models.fused_step import FusedStep
from vpo.models.shared_prompts import read_prompts

NO_WORK = {"_unsafe_view", "detach", "empty", "empty_like", "device"}  # beside views


class Operations(TorchDispatchMode):
    """Counts operations that read or write tensors; outside `torch.inference_mode`, which reports them in the large."""

    def __init__(self) -> None:
        """Begin with none."""
        super().__init__()
        self.count = 0

    def __torch_dispatch__(
        self, function: Any, types: Sequence[Any], arguments: Sequence[Any] = (), named: Mapping[str, Any] | None = None
    ) -> Any:
        """Count an operation, and run it."""
        self.count += not function.is_view and function.overloadpacket.__name__ not in NO_WORK
        return function(*arguments, **(named or {}))


def operations_a_token(model: Any, *, fused: bool, prompts: int = 2, times: int = 3) -> int:
    """The operations that compute the logits of a token, from the embedding on, after short random prompts."""
    tokens = torch.randint(model.config.vocab_size, (prompts, 4), device=model.device)
    with torch.no_grad(), mock.patch.object(functional, "rms_norm", _as_on_a_gpu):
        decoder, _ = read_prompts(model, tokens, torch.ones_like(tokens), times, max_tokens=1)
        decoder.fused = FusedStep(model) if fused else None
        decoder.cache.begin(0)
        with Operations() as operations:
            decoder.compute()
    return operations.count


def _as_on_a_gpu(states: Any, shape: Sequence[int], weight: Any = None, eps: float = 0.0) -> Any:
    """Another normalisation, which is one operation on every device: on a CPU torch splits this one."""
    return functional.layer_norm(states, shape, weight, eps=eps)
