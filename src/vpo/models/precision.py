"""What a machine computes in: bf16 products are fast on GPUs and some CPUs, slow on other CPUs, and crash a few."""

import subprocess
import sys
from functools import cache

from vpo.util.errors import InputError
from vpo.util.progress import waiting

PRECISIONS = ("float32", "bfloat16")

# In a process of its own, since a CPU that lacks an instruction ends the process. The shapes take the paths of one row,
# of few and of many.
_PROBE = """
import torch

weights = torch.randn(3000, 900, requires_grad=True)
for rows in (1, 3, 64, 500):
    inputs = torch.randn(rows, 900)
    product = inputs.bfloat16() @ weights.bfloat16().T
    product.float().square().sum().backward()
    exact = inputs @ weights.T
    assert (product.float() - exact).abs().max() < 0.02 * exact.abs().max()
heads = torch.randn(2, 14, 40, 64).bfloat16()
assert torch.nn.functional.scaled_dot_product_attention(heads, heads, heads).isfinite().all()
"""


def check_precision(precision: str | None, generator: str) -> None:
    """Refuse a precision where transformers does not run the model."""
    if precision is not None and generator != "transformers":
        raise InputError(f"precision is of models that transformers runs; generator {generator} chooses its own")


def check_bf16() -> None:
    """Raise where this machine has no GPU, and its CPU fails at bf16 products."""
    import torch

    if not torch.cuda.is_available() and not cpu_computes_bf16():
        raise InputError("precision must be float32 on this CPU: bf16 products fail here")


@cache
def cpu_computes_bf16() -> bool:
    """Whether bf16 products come out right on this CPU: tried once, in another process."""
    with waiting("trying bf16 products on this CPU"):
        tried = subprocess.run([sys.executable, "-c", _PROBE], stdin=subprocess.DEVNULL, capture_output=True)
    return tried.returncode == 0
