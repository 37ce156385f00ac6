"""The answer format: how m answers are requested in one completion, and how they are parsed.

Several answers are written in numbered tags, ``<answer_1>…</answer_1>`` to ``<answer_m>…</answer_m>``; a single one in
``<answer>…</answer>``. The exact rules:

- Thoughts, ``<think>…</think>``, are skipped with any tags in them, wherever they are outside a closed answer. One that
  is never closed lasts to the end. The prompt may have opened the first: then all up to ``</think>`` is skipped, if an
  answer follows, and the tag is not inside one.
- An answer counts once its own closing tag follows, before any other answer opens. So an unclosed answer is
  missing, and with it nothing else: not the answers before it, not those after it.
- Answers are indexed by their number, in whatever order they appear. Of a repeated number the first that is closed
  counts. Numbers above m are ignored.
- No text belongs to two answers: an answer that opens inside another ends it, unclosed.
- Without tags there is no answer, but where a user's score function reads single answers (`parse_untagged`).

White space around an answer is stripped. An answer may be empty; the task scores it.
"""

import re
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

from vpo.tasks.thoughts import prompted_end, section_pattern, split_thoughts
from vpo.util.errors import InputError

_TAGS = {True: "answer", False: "answer_[1-9][0-9]{0,5}"}  # of a single answer, and of numbered ones
_OPENING = {single: re.compile(f"<{tag}>") for single, tag in _TAGS.items()}
_ANSWERS = {single: section_pattern(tag, until=tag) for single, tag in _TAGS.items()}


def instruction(answers: int) -> str:
    """The text that requests a number of answers: the rules, and a template with the tags."""
    _check(answers)
    if answers == 1:
        return "Give your answer between these tags, and nothing after them:\n<answer>your answer</answer>"
    shown = [1, 2] if answers > 4 else list(range(1, answers + 1))
    texts = ("your first answer", "a different answer")
    template = [f"<answer_{number}>{texts[number > 1]}</answer_{number}>" for number in shown]
    if answers > 4:
        template += ["…", f"<answer_{answers}>{texts[1]}</answer_{answers}>"]
    return (
        f"Give {answers} different answers, numbered 1 to {answers}. Each should be as good as you can make it, and "
        "good in another way than the others: together they are judged by the best of them under priorities that "
        "you do not know. If you reason, do so once, before the first answer. Write each between its own tags, and "
        "nothing after the last:\n" + "\n".join(template)
    )


def write(texts: Sequence[str]) -> str:
    """Answers in their tags: the inverse of `parse`."""
    _check(len(texts))
    if len(texts) == 1:
        return f"<answer>{texts[0]}</answer>"
    return "\n".join(f"<answer_{number}>{text}</answer_{number}>" for number, text in enumerate(texts, start=1))


def parse(completion: str, answers: int) -> list[str | None]:
    """The answers of a completion by their number, None for a missing one. Takes linear time."""
    _check(answers)
    texts: list[str | None] = [None] * answers
    for match in _ANSWERS[answers == 1].finditer(completion, _begin(completion, answers)):
        if match["name"] and (index := _index(match["name"])) < answers and texts[index] is None:
            texts[index] = match["text"].strip()
    return texts


def parse_untagged(completion: str) -> str | None:
    """The answer of a completion that holds one, whether it was asked to write tags or not.

    Without an ``<answer>`` outside thoughts it is the whole completion without its thoughts. None where that is empty,
    and where the tag is not closed.
    """
    if _opened(completion, 1):
        return parse(completion, 1)[0]
    return split_thoughts(completion, _ANSWERS[True])[1] or None


def parts(completion: str, answers: int) -> list[tuple[int, int]]:
    """Split a completion into parts: pairs of the position where a part ends and the index of its answer, from 0.

    A part begins where the one before it ends, so reasoning belongs to the answer that follows it. An answer that is
    opened and not closed has a part too, up to the next opening tag. Where answer 1 is skipped, everything before the
    first answer, its opening tag included, is the part of answer 1. Everything after the last answer belongs to answer
    m.
    """
    _check(answers)
    opened = _opened(completion, answers)
    followings = [*(each.tag for each in opened[1:]), len(completion)]
    ends: list[tuple[int, int]] = []
    closed: set[int] = set()
    for each, following in zip(opened, followings, strict=False):
        if each.answer < answers and each.answer not in closed:
            ends.append((following if each.end is None else each.end, each.answer))
            if each.end is not None:
                closed.add(each.answer)
    if all(index != 0 for _, index in ends):
        ends.insert(0, (opened[0].start if opened else len(completion), 0))
    return [*ends, (len(completion), answers - 1)]


def thoughts(completion: str, answers: int) -> str:
    """The thoughts before the first answer, without their tags; empty without any."""
    return split_thoughts(completion, _ANSWERS[answers == 1])[0]


class _OpenedAnswer(NamedTuple):
    """An answer whose opening tag is in the completion, outside thoughts.

    Attributes:
        answer: its index, from 0.
        tag: position of its opening tag.
        start: position of its text, after that tag.
        end: position after its closing tag; None for one that is not closed.
    """

    answer: int
    tag: int
    start: int
    end: int | None


def _opened(completion: str, answers: int) -> list[_OpenedAnswer]:
    """The answers that are opened, closed or not, in the order of the completion."""
    opening = _OPENING[answers == 1]
    opened: list[_OpenedAnswer] = []
    begin = _begin(completion, answers)

    def unclosed(end: int) -> list[_OpenedAnswer]:
        tags = opening.finditer(completion, begin, end)
        return [_OpenedAnswer(_index(tag.group()[1:-1]), *tag.span(), None) for tag in tags]

    for match in _ANSWERS[answers == 1].finditer(completion, begin):
        opened += unclosed(match.start())
        if match["name"]:
            opened.append(_OpenedAnswer(_index(match["name"]), match.start(), match.start("text"), match.end()))
        begin = match.end()
    return opened + unclosed(len(completion))


def _begin(completion: str, answers: int) -> int:
    """Position after the thought that the prompt opened, 0 without one: where no answer follows there is none."""
    end = prompted_end(completion, _ANSWERS[answers == 1])
    return end if end and _OPENING[answers == 1].search(completion, end) else 0


def _index(name: str) -> int:
    """The index of the answer with this tag."""
    return int(name.partition("_")[2] or 1) - 1


def duplicates(answers: Sequence[str | None], normal_form: Callable[[str], Hashable]) -> list[bool]:
    """Which answers repeat an earlier one, compared in a normal form.

    A missing answer, and one whose normal form is None since it cannot be parsed, repeats nothing.
    """
    seen: set[Hashable] = set()
    repeated = []
    for answer in answers:
        form = None if answer is None else normal_form(answer)
        repeated.append(form is not None and form in seen)
        seen.add(form)
    return repeated


def _check(answers: int) -> None:
    if answers < 1:
        raise InputError(f"answers must be 1 or more, not {answers}")
