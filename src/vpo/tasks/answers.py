"""The answer format: how m answers are requested in one completion, and how they are parsed.

Several answers are written in numbered tags, ``<answer_1>…</answer_1>`` to ``<answer_m>…</answer_m>``; a single one in
``<answer>…</answer>``. The exact rules:

- Reasoning before the first answer is skipped, with any tags in it: all up to the first ``</think>``, where
  ``<think>`` opened it, or where the prompt did: then an answer must follow, and the tag must not be inside one.
  Reasoning that was opened and never ends leaves no answer.
- An answer counts once its own closing tag follows, before any other answer opens. So an unclosed answer is
  missing, and with it nothing else: not the answers before it, not those after it.
- Answers are indexed by their number, in whatever order they appear. Of a repeated number the first that is closed
  counts. Numbers above m are ignored.
- No text belongs to two answers: an answer that opens inside another ends it, unclosed.
- Without tags there is no answer.

White space around an answer is stripped. An answer may be empty; the task scores it.
"""

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from vpo.util.errors import InputError

THINK, END_THINK = "<think>", "</think>"
_SINGLE = re.compile(r"<answer>")
_NUMBERED = re.compile(r"<answer_([1-9][0-9]{0,5})>")


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
    for opened in _opened_answers(completion, answers):
        if opened.index < answers and texts[opened.index] is None and opened.stop is not None:
            texts[opened.index] = completion[opened.start : opened.stop].strip()
    return texts


def parts(completion: str, answers: int) -> list[tuple[int, int]]:
    """Split a completion into parts: pairs of the position where a part ends and the index of its answer, from 0.

    A part begins where the one before it ends, so reasoning belongs to the answer that follows it. An answer that is
    opened and not closed has a part too, up to the next opening tag. Where answer 1 is skipped, everything before the
    first answer, its opening tag included, is the part of answer 1. Everything after the last answer belongs to answer
    m.
    """
    _check(answers)
    opened = _opened_answers(completion, answers)
    ends: list[tuple[int, int]] = []
    closed: set[int] = set()
    for each in opened:
        if each.index < answers and each.index not in closed:
            ends.append((each.end, each.index))
            if each.stop is not None:
                closed.add(each.index)
    if all(index != 0 for _, index in ends):
        ends.insert(0, (opened[0].start if opened else len(completion), 0))
    return [*ends, (len(completion), answers - 1)]


@dataclass(slots=True)
class _OpenedAnswer:
    """An answer whose opening tag is in the completion.

    Attributes:
        index: its number less 1.
        start: position of its text, after the opening tag.
        stop: position of its closing tag; None for one that is not closed.
        end: where its part of the completion ends: after its closing tag, or at the next opening tag.
    """

    index: int
    start: int
    stop: int | None
    end: int


def _opened_answers(completion: str, answers: int) -> list[_OpenedAnswer]:
    """The answers that are opened after the reasoning, in the order of the completion."""
    opening = _SINGLE if answers == 1 else _NUMBERED
    tags = list(opening.finditer(completion, reasoning_end(completion, answers)))
    opened = []
    for tag, following in zip_longest(tags, tags[1:]):
        until = following.start() if following else len(completion)
        closing = "</" + tag.group()[1:]
        stop = completion.find(closing, tag.end(), until)
        index = 0 if answers == 1 else int(tag.group(1)) - 1
        opened.append(_OpenedAnswer(index, tag.end(), *((stop, stop + len(closing)) if stop >= 0 else (None, until))))
    return opened


def reasoning_end(completion: str, answers: int) -> int:
    """Position where the reasoning before the first answer ends: 0 without any, the length if it never ends."""
    opening = _SINGLE if answers == 1 else _NUMBERED
    opened, closed = completion.find(THINK), completion.find(END_THINK)
    if opened >= 0 and (closed < 0 or opened < closed):
        first = opening.search(completion)
        if first and first.start() < opened:
            return 0  # not before the first answer
        return closed + len(END_THINK) if closed >= 0 else len(completion)
    if closed < 0:
        return 0
    following = opening.search(completion, closed)
    if not following or _within_an_answer(completion, closed, following.start(), opening):
        return 0
    return closed + len(END_THINK)


def split_reasoning(completion: str) -> tuple[str, str]:
    """The reasoning, in its tags, and the rest, of a completion whose answer is not in <answer> tags.

    The prompt may have opened the reasoning. Where it does not end, all is reasoning; without any, none is.
    """
    before, closed, after = completion.partition(END_THINK)
    if THINK not in before:
        return (f"{THINK}{before}{END_THINK}", after) if closed else ("", completion)
    if before.strip().startswith(THINK):
        return (before.strip() + END_THINK, after) if closed else (completion, "")
    return "", completion  # not before the answer


def _within_an_answer(text: str, position: int, following: int, opening: re.Pattern[str]) -> bool:
    """Whether a position lies in an answer that closes after it, before the next one opens."""
    around = opening.match(text, max(0, text.rfind("<answer", 0, position)))
    if not around:
        return False
    closing = "</" + around.group()[1:]
    return closing not in text[around.end() : position] and closing in text[position:following]


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
