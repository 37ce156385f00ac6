"""What is read from a completion: its answers, which of them are in the form that was asked for, and their tokens.

Everything is made from one list of sections, so the answers that are scored and the parts that tokens belong to agree.
"""

from collections.abc import Sequence
from typing import NamedTuple


class Section(NamedTuple):
    """A stretch of a completion that holds an answer, or opens one.

    Attributes:
        answer: its index, from 0.
        start: position where its text begins, after its opening tag or heading.
        end: position where it ends, with its closing tag.
        text: the answer; None for one that is opened and does not count.
        strict: whether it is complete and in the form that was asked for.
        closed: whether its end is written, where the form has one; else it ends with the completion.
    """

    answer: int
    start: int
    end: int
    text: str | None
    strict: bool = False
    closed: bool = True


class Native(NamedTuple):
    """An answer in the form that a task knows, without tags.

    Attributes:
        start: position where it begins.
        end: position where it ends; the next begins there or later.
        text: the answer.
        strict: whether it is complete and in the form that prompts for a single answer ask for.
    """

    start: int
    end: int
    text: str
    strict: bool = True


class Reading(NamedTuple):
    """The m answers of a completion.

    Attributes:
        answers: by index; None for a missing one.
        strict: whether each is there, complete and in the form that was asked for. The others were read leniently.
        parts: pairs of the position where a part of the completion ends and the index of its answer, from 0. A part
            begins where the one before it ends.
        unclosed: the index of an answer whose closing tag the end of the completion cut off; None for none.
    """

    answers: list[str | None]
    strict: list[bool]
    parts: list[tuple[int, int]]
    unclosed: int | None = None

    def without_unclosed(self) -> "Reading":
        """The reading of a completion that its token budget cut off: an answer without its end does not count.

        Training would teach not to end answers otherwise.
        """
        if self.unclosed is None:
            return self
        answers = [None if index == self.unclosed else text for index, text in enumerate(self.answers)]
        return self._replace(answers=answers, unclosed=None)


def read_natives(natives: Sequence[Native], length: int, answers: int) -> Reading:
    """Read a completion by its native answers: the last of them where it should have one, else the first m."""
    if answers == 1:
        last = natives[-1] if natives else None
        return read_whole(last and last.text, length, strict=last is not None and last.strict)
    found = [Section(index, each.start, each.end, each.text) for index, each in enumerate(natives[:answers])]
    return read_sections(found, length, answers)


def read_sections(sections: Sequence[Section], length: int, answers: int) -> Reading:
    """Read a completion of so many characters by its sections, in order: of each index the first with a text counts.

    Reasoning belongs to the answer that follows it. A section without a text has a part too. Where answer 1 is skipped,
    everything before the text of the first section is the part of answer 1. Everything after the last section belongs
    to answer m.
    """
    texts: list[str | None] = [None] * answers
    strict = [False] * answers
    unclosed: int | None = None
    parts: list[tuple[int, int]] = []
    for section in sections:
        index = section.answer
        if index < answers and texts[index] is None:
            parts.append((section.end, index))
            texts[index], strict[index] = section.text, section.strict and section.text is not None
            unclosed = unclosed if section.closed or section.text is None else index
    if all(index != 0 for _, index in parts):
        parts.insert(0, (sections[0].start if sections else length, 0))
    return Reading(texts, strict, [*parts, (length, answers - 1)], unclosed)


def read_whole(text: str | None, length: int, *, strict: bool = False) -> Reading:
    """The reading of a single answer: all of the completion belongs to it."""
    return Reading([text], [strict and text is not None], [(length, 0)])
