"""GPU memory."""

import gc


def free_gpu() -> None:
    """Release the GPU memory that this process has allocated and no longer uses, for other processes."""
    import torch

    if torch.cuda.is_available():
        gc.collect()  # a trainer and its model refer to each other
        torch.cuda.empty_cache()
