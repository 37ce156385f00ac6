"""Advantages by answer, and which tokens of a completion belong to which answer; for any trainer."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from vpo.core.types import Floats
from vpo.methods.group import z_score
from vpo.tasks.answers import parts


def answer_advantages(earned_BM: Floats, group: int) -> Floats:
    """Return the z-score of what each answer earned among those of its group, 0 where that is not known (NaN)."""
    advantages_BM = np.zeros_like(earned_BM)
    for start in range(0, len(earned_BM), group):
        known_G = start + np.flatnonzero(~np.isnan(earned_BM[start : start + group, 0]))
        if len(known_G) > 1:
            advantages_BM[known_G] = z_score(earned_BM[known_G])
    return advantages_BM


def answer_of_tokens(
    tokenizer: Any,
    ids: Sequence[int],
    answers: int,
    lengths: dict[int, int],
    find_parts: Callable[[str, int], list[tuple[int, int]]] = parts,
) -> list[int]:
    """Return the place of the answer that each token of a completion belongs to.

    Args:
        tokenizer: that decodes them.
        ids: the tokens.
        answers: of the completion.
        lengths: of tokens that were decoded before, which it fills up.
        find_parts: where the part of each answer ends in the text.
    """
    text = tokenizer.decode(ids, skip_special_tokens=True)
    for token in set(ids) - lengths.keys():
        lengths[token] = len(tokenizer.decode([token], skip_special_tokens=True))
    written = [0, *accumulate(lengths[token] for token in ids)]  # characters after so many tokens

    def characters(tokens: int) -> int:
        if written[-1] == len(text):
            return written[tokens]
        # Some tokens are no whole characters, or read otherwise by themselves.
        return len(tokenizer.decode(ids[:tokens], skip_special_tokens=True))

    owners: list[int] = []
    for end, place in find_parts(text, answers):
        tokens = min(bisect_left(range(len(ids) + 1), end, key=characters), len(ids))
        owners += [place] * (tokens - len(owners))
    return owners + [answers - 1] * (len(ids) - len(owners))
