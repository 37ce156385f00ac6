"""verl loads this when it is imported, in each of its processes: an entry point of the group `verl.plugins`.

verl silently drops what a plugin raises, so the reason is kept for `vpo.engines.verl.check`.
"""

FAILURE: Exception | None = None

try:
    import torch

    import vpo.engines.verl.trainer  # noqa: F401  # which registers itself

    # Its kernels return NaN for some gradients on an H100 or H200: see `vpo.models.gradients`.
    torch.backends.cuda.enable_cudnn_sdp(False)
except Exception as error:
    # Whatever it is: a verl without the packages of its own trainer, one of another version, or a defect of ours.
    FAILURE = error
