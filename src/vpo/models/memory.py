"""The memory of the GPU."""

import gc


def free_gpu() -> None:
    """Give back the memory of the GPU that this process holds and no longer uses, to others that need it."""
    import torch

    if torch.cuda.is_available():
        gc.collect()  # a trainer and its model hold each other
        torch.cuda.empty_cache()
