"""Trials: whether another way to compute a model gives its logits."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

MOST_ROUNDING = 0.1  # of logits around their mean, as a ratio of norms; in bf16 it is a few hundredths


@contextmanager
def evaluating(model: Any) -> Iterator[None]:
    """Put a model in evaluation mode, without gradients; each of its modules has its own mode again afterwards."""
    import torch

    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes:
            module.training = mode


def same_up_to_rounding(logits: Any, expected: Any) -> bool:
    """Whether logits are the expected ones, but for a number that is added to all of a token's, and for rounding."""
    logits, expected = (each.float() - each.float().mean(-1, keepdim=True) for each in (logits, expected))
    return bool((logits - expected).norm() <= MOST_ROUNDING * expected.norm())
