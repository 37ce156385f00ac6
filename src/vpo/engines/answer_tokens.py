"""Which tokens of a completion belong to which answer; for any trainer."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import accumulate, takewhile
from typing import Any

from vpo.tasks.answers import parts

UNFINISHED = "\ufffd"  # what a tokenizer writes for a part of a character
MOST_UNFINISHED = 32  # tokens in a row that end within a character


class TokenOwners:
    """Tells which answer each token of a completion belongs to. It remembers the text of each token."""

    def __init__(self, tokenizer: Any, find_parts: Callable[[str, int], list[tuple[int, int]]] = parts) -> None:
        """Take a tokenizer, and what finds where the part of each answer ends in a text, and the answer's index."""
        self.tokenizer, self.find_parts = tokenizer, find_parts
        self._texts: dict[int, str] = {}

    def of(self, ids: Sequence[int], answers: int) -> list[int]:
        """For each token of a completion of so many answers, the index of the answer that it belongs to.

        A token belongs to the answer in which it begins, and all tokens of one character to the same answer. Takes
        linear time.
        """
        text = self._decode(ids)
        texts = [self._text(token) for token in ids]
        ends = [0, *accumulate(map(len, texts))]  # characters after so many tokens
        if "".join(texts) != text:  # some tokens are parts of characters, or decode to another text on their own
            ends = self._ends_in_context(ids)
        owners: list[int] = []
        for end, index in self.find_parts(text, answers):
            tokens = min(bisect_left(ends, end), len(ids))
            owners += [index] * (tokens - len(owners))
        return owners + [answers - 1] * (len(ids) - len(owners))

    def _ends_in_context(self, ids: Sequence[int]) -> list[int]:
        """Whole characters after so many tokens, each of which is decoded after the ones before it."""
        ends = [0]
        begin = finished = length = 0  # tokens before the context, tokens and characters before a character
        unfinished: list[str] = []  # what is written for the tokens since then
        for count in range(1, len(ids) + 1):
            context, whole = self._decode(ids[begin:finished]), self._decode(ids[begin:count])
            unfinished.append(whole[len(context) :])
            if not whole.endswith(UNFINISHED) or count - finished >= MOST_UNFINISHED or count == len(ids):
                # What stays is finished: a part of a character becomes the character, a wrong byte stays as it is.
                kept = [common_start(each, unfinished[-1]) for each in unfinished]
                ends += [max(ends[-1], length + each) for each in kept]
                begin, finished, length = finished, count, length + len(whole) - len(context)
                unfinished = []
        return ends

    def _text(self, token: int) -> str:
        if token not in self._texts:
            self._texts[token] = self._decode([token])
        return self._texts[token]

    def _decode(self, ids: Sequence[int]) -> str:
        text: str = self.tokenizer.decode(ids, skip_special_tokens=True)
        return text


def common_start(text: str, other: str) -> int:
    """How many characters two texts have in common from their start."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(text, other, strict=False)))
