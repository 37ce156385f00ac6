"""Which tokens of a completion belong to which answer; for any trainer."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

from vpo.tasks.answers import parts


def answer_of_tokens(
    tokenizer: Any,
    ids: Sequence[int],
    answers: int,
    lengths: dict[int, int],
    find_parts: Callable[[str, int], list[tuple[int, int]]] = parts,
) -> list[int]:
    """The index of the answer that each token of a completion belongs to.

    Args:
        tokenizer: decodes the tokens.
        ids: the tokens.
        answers: of the completion.
        lengths: a cache, token → characters; the same for every call with one tokenizer.
        find_parts: where the part of each answer ends in the text, and its index.
    """
    text = tokenizer.decode(ids, skip_special_tokens=True)
    for token in set(ids) - lengths.keys():
        lengths[token] = len(tokenizer.decode([token], skip_special_tokens=True))
    ends = [0, *accumulate(lengths[token] for token in ids)]  # characters after so many tokens

    def characters(tokens: int) -> int:
        if ends[-1] == len(text):
            return ends[tokens]
        # Some tokens are parts of characters, or decode to another text on their own.
        return len(tokenizer.decode(ids[:tokens], skip_special_tokens=True))

    owners: list[int] = []
    for end, index in find_parts(text, answers):
        tokens = min(bisect_left(range(len(ids) + 1), end, key=characters), len(ids))
        owners += [index] * (tokens - len(owners))
    return owners + [answers - 1] * (len(ids) - len(owners))
