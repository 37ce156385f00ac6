"""Non-finite gradients: a known source of them, and a callback that skips steps that have one.

One such gradient would make every weight NaN, and the run worthless.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from tqdm import tqdm
from transformers import TrainerCallback

from vpo.util.errors import InputError
from vpo.util.processes import OtherProcessError, gathered, is_main

PATIENCE = 10  # skipped steps in a row that end the training


class FiniteSteps(TrainerCallback):  # type: ignore[misc]  # transformers is untyped
    """Skips each step whose gradient is not finite, says so, and raises after `PATIENCE` such steps in a row."""

    def __init__(self) -> None:
        """Begin with no skipped step."""
        self.in_a_row = 0

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, model: Any, **_: Any) -> None:
        """Drop a non-finite gradient: an optimizer leaves weights without a gradient, and their moments, unchanged."""
        if not any(gathered(not _finite(model))):  # under FSDP a process has a part of the weights
            self.in_a_row = 0
            return
        model.zero_grad(set_to_none=True)
        self.in_a_row += 1
        step = state.global_step + 1
        if is_main():
            tqdm.write(f"vpo: skipped step {step}: non-finite gradient", file=sys.stderr)
        if self.in_a_row == PATIENCE:
            error = InputError if is_main() else OtherProcessError
            raise error(f"non-finite gradients in {PATIENCE} steps in a row, up to step {step}: lower learning_rate")


def _finite(model: Any) -> bool:
    gradients = [each.grad for each in model.parameters() if each.grad is not None]
    norm = torch.nn.utils.get_total_norm(gradients)
    return bool(getattr(norm, "full_tensor", lambda: norm)().isfinite())  # FSDP 2 spreads it over processes


@contextmanager
def without_cudnn_attention() -> Iterator[None]:
    """Keep torch from the attention kernels of cuDNN.

    torch 2.11 and later take them on an H100 or H200. They return NaN for some gradients where a batch is padded to 64
    tokens more than a multiple of 128 (pytorch/pytorch#196678).
    """
    enabled = torch.backends.cuda.cudnn_sdp_enabled()
    torch.backends.cuda.enable_cudnn_sdp(False)
    try:
        yield
    finally:
        torch.backends.cuda.enable_cudnn_sdp(enabled)
