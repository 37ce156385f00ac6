"""Batches of texts of like length."""

from collections.abc import Sequence


def batches_by_length(lengths: Sequence[int], size: int) -> list[list[int]]:
    """Indices in batches of like length, to pad less; the longest come first, so that too little memory shows early."""
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    return [sorted(order[start : start + size]) for start in range(0, len(order), size)]
