"""Gradients that are not finite: a known source of them, and what becomes of a step that has one.

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

PATIENCE = 10  # steps in a row that may be left out


class FiniteSteps(TrainerCallback):  # type: ignore[misc]  # transformers is not looked into
    """Leaves out each update whose gradient is not finite, says so, and gives up where there are only such."""

    def __init__(self) -> None:
        """Begin with none left out."""
        self.in_a_row = 0

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, model: Any, **_: Any) -> None:
        """Drop a gradient that is not finite: an optimizer leaves weights without one, and their moments, alone."""
        if not any(gathered(not _finite(model))):  # a process may hold a part of the weights
            self.in_a_row = 0
            return
        model.zero_grad(set_to_none=True)
        self.in_a_row += 1
        step = state.global_step + 1
        if is_main():
            tqdm.write(f"vpo: step {step} is left out: its gradient is not finite", file=sys.stderr)
        if self.in_a_row == PATIENCE:
            error = InputError if is_main() else OtherProcessError
            raise error(f"the gradients of {PATIENCE} steps, up to {step}, were not finite: lower learning_rate")


def _finite(model: Any) -> bool:
    gradients = [each.grad for each in model.parameters() if each.grad is not None]
    norm = torch.nn.utils.get_total_norm(gradients)
    return bool(getattr(norm, "full_tensor", lambda: norm)().isfinite())  # FSDP 2 spreads it over processes


@contextmanager
def without_cudnn_attention() -> Iterator[None]:
    """Have torch compute attention by its other kernels.

    From torch 2.11 on an H100 or H200 takes cuDNN's, which returns NaN for some gradients where a batch is padded to 64
    tokens more than a multiple of 128 (pytorch/pytorch#196678).
    """
    used = torch.backends.cuda.cudnn_sdp_enabled()
    torch.backends.cuda.enable_cudnn_sdp(False)
    try:
        yield
    finally:
        torch.backends.cuda.enable_cudnn_sdp(used)
