"""Which tokens of a completion belong to which answer; for any trainer."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

from vpo.tasks.answers import parts


class TokenOwners:
    """Tells which answer each token of a completion belongs to. It remembers how many characters each token has."""

    def __init__(self, tokenizer: Any, find_parts: Callable[[str, int], list[tuple[int, int]]] = parts) -> None:
        """Take a tokenizer, and what finds where the part of each answer ends in a text, and the answer's index."""
        self.tokenizer, self.find_parts = tokenizer, find_parts
        self._lengths: dict[int, int] = {}

    def of(self, ids: Sequence[int], answers: int) -> list[int]:
        """For each token of a completion of so many answers, the index of the answer that it belongs to."""
        text = self._decode(ids)
        ends = [0, *accumulate(self._length(token) for token in ids)]  # characters after so many tokens

        def characters(tokens: int) -> int:
            if ends[-1] == len(text):
                return ends[tokens]
            # Some tokens are parts of characters, or decode to another text on their own.
            return len(self._decode(ids[:tokens]))

        owners: list[int] = []
        for end, index in self.find_parts(text, answers):
            tokens = min(bisect_left(range(len(ids) + 1), end, key=characters), len(ids))
            owners += [index] * (tokens - len(owners))
        return owners + [answers - 1] * (len(ids) - len(owners))

    def _length(self, token: int) -> int:
        if token not in self._lengths:
            self._lengths[token] = len(self._decode([token]))
        return self._lengths[token]

    def _decode(self, ids: Sequence[int]) -> str:
        text: str = self.tokenizer.decode(ids, skip_special_tokens=True)
        return text
