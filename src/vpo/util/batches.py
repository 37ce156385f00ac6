"""Batches of texts of like length."""

from collections.abc import Sequence


def batches_by_length(lengths: Sequence[int], size: int) -> list[list[int]]:
    """Return places in batches of like length, the longest first: less padding, and too little memory shows at once."""
    order = sorted(range(len(lengths)), key=lambda place: -lengths[place])
    return [sorted(order[start : start + size]) for start in range(0, len(order), size)]
