"""Which tokens of a completion belong to which answer; for any trainer."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

from vpo.tasks.answers import parts

UNFINISHED = "\ufffd"  # what a tokenizer writes for a part of a character
MOST_UNFINISHED = 8  # tokens of one character


class TokenOwners:
    """Tells which answer each token of a completion belongs to. It remembers how many characters each token has."""

    def __init__(self, tokenizer: Any, find_parts: Callable[[str, int], list[tuple[int, int]]] = parts) -> None:
        """Take a tokenizer, and what finds where the part of each answer ends in a text, and the answer's index."""
        self.tokenizer, self.find_parts = tokenizer, find_parts
        self._lengths: dict[int, int] = {}

    def of(self, ids: Sequence[int], answers: int) -> list[int]:
        """For each token of a completion of so many answers, the index of the answer that it belongs to.

        Takes linear time.
        """
        text = self._decode(ids)
        ends = [0, *accumulate(self._length(token) for token in ids)]  # characters after so many tokens
        if ends[-1] != len(text):  # some tokens are parts of characters, or decode to another text on their own
            ends = self._ends_in_context(ids)
        owners: list[int] = []
        for end, index in self.find_parts(text, answers):
            tokens = min(bisect_left(ends, end), len(ids))
            owners += [index] * (tokens - len(owners))
        return owners + [answers - 1] * (len(ids) - len(owners))

    def _ends_in_context(self, ids: Sequence[int]) -> list[int]:
        """Characters after so many tokens, each of which is decoded after the ones before it."""
        ends = [0]
        begin = finished = length = 0  # tokens before the context, tokens and characters before a character
        for count in range(1, len(ids) + 1):
            context, whole = self._decode(ids[begin:finished]), self._decode(ids[begin:count])
            now = length + len(whole) - len(context)
            ends.append(max(now, ends[-1]))
            if not whole.endswith(UNFINISHED) or count - finished >= MOST_UNFINISHED:
                begin, finished, length = finished, count, now
        return ends

    def _length(self, token: int) -> int:
        if token not in self._lengths:
            self._lengths[token] = len(self._decode([token]))
        return self._lengths[token]

    def _decode(self, ids: Sequence[int]) -> str:
        text: str = self.tokenizer.decode(ids, skip_special_tokens=True)
        return text
