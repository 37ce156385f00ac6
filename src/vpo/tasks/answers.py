"""The answer-set protocol: how m answers are asked for in one completion, and how they are read back.

Several answers stand in numbered tags, ``<answer_1>…</answer_1>`` to ``<answer_m>…</answer_m>``; a single one in
``<answer>…</answer>``. What counts, exactly:

- Reasoning before the first answer is skipped, with any tags in it: all up to the first ``</think>``, where
  ``<think>`` opened it, or where the prompt did: then an answer must follow, and the tag not stand in one itself.
  Reasoning that was opened and never ends leaves no answer.
- An answer counts once its own closing tag follows, before any other answer opens. So an unclosed answer is
  missing, and with it nothing else: not the answers before it, not those after it.
- Answers are placed by their number, in whatever order they stand. Of a repeated number the first that is closed
  counts. Numbers above m are ignored.
- No text belongs to two answers: an answer that opens inside another ends it, unclosed.
- Without tags there is no answer.

White space around an answer is dropped. An answer may be empty; that is for the task to score.
"""

import re
from collections.abc import Callable, Hashable, Sequence
from itertools import zip_longest
from typing import NamedTuple

from vpo.util.errors import InputError

THINK, END_THINK = "<think>", "</think>"
_SINGLE = re.compile(r"<answer>")
_NUMBERED = re.compile(r"<answer_([1-9][0-9]{0,5})>")


def instruction(answers: int) -> str:
    """Return the text that asks for a number of answers: the rules, and the form with its tags."""
    _check(answers)
    if answers == 1:
        return "Give your answer between these tags, and nothing after them:\n<answer>your answer</answer>"
    shown = [1, 2] if answers > 4 else list(range(1, answers + 1))
    places = ("your first answer", "a different answer")
    form = [f"<answer_{number}>{places[number > 1]}</answer_{number}>" for number in shown]
    if answers > 4:
        form += ["…", f"<answer_{answers}>{places[1]}</answer_{answers}>"]
    return (
        f"Give {answers} different answers, numbered 1 to {answers}. Each should be as good as you can make it, and "
        "good in another way than the others: together they are judged by the best of them under priorities that "
        "you do not know. If you reason, do so once, before the first answer. Write each between its own tags, and "
        "nothing after the last:\n" + "\n".join(form)
    )


def write(texts: Sequence[str]) -> str:
    """Return answers in their tags, as `parse` reads them."""
    _check(len(texts))
    if len(texts) == 1:
        return f"<answer>{texts[0]}</answer>"
    return "\n".join(f"<answer_{number}>{text}</answer_{number}>" for number, text in enumerate(texts, start=1))


def parse(completion: str, answers: int) -> list[str | None]:
    """Return the answers of a completion by their number, None for a missing one. Takes linear time."""
    _check(answers)
    found: list[str | None] = [None] * answers
    for each in _opened(completion, answers):
        if each.place < answers and found[each.place] is None and each.stop is not None:
            found[each.place] = completion[each.start : each.stop].strip()
    return found


def parts(completion: str, answers: int) -> list[tuple[int, int]]:
    """Return where the part of each answer ends, in the order they stand, and the place of that answer, from 0.

    A part begins where the one before it ends, so reasoning belongs to the answer that follows it. An answer that is
    opened and not closed has its part too, up to what opens next. Where answer 1 is skipped, what comes before the
    first answer, its opening tag included, is the part of answer 1. What comes after the last answer belongs to the
    last place.
    """
    _check(answers)
    opened = _opened(completion, answers)
    found: list[tuple[int, int]] = []
    closed: set[int] = set()
    for each in opened:
        if each.place < answers and each.place not in closed:
            found.append((each.end, each.place))
            if each.stop is not None:
                closed.add(each.place)
    if all(place != 0 for _, place in found):
        found.insert(0, (opened[0].start if opened else len(completion), 0))
    return [*found, (len(completion), answers - 1)]


class _Opened(NamedTuple):
    """An answer that is opened: its place, where its text starts and stops, and where its part of the completion ends.

    It stops at its closing tag, after which its part ends. One that is not closed does not stop, and its part ends
    where the next one opens.
    """

    place: int
    start: int
    stop: int | None
    end: int


def _opened(completion: str, answers: int) -> list[_Opened]:
    """Return the answers that are opened after the reasoning, in the order they stand."""
    opening = _SINGLE if answers == 1 else _NUMBERED
    tags = list(opening.finditer(completion, reasoning_end(completion, answers)))
    found = []
    for tag, following in zip_longest(tags, tags[1:]):
        until = following.start() if following else len(completion)
        closing = "</" + tag.group()[1:]
        at = completion.find(closing, tag.end(), until)
        place = 0 if answers == 1 else int(tag.group(1)) - 1
        found.append(_Opened(place, tag.end(), *((at, at + len(closing)) if at >= 0 else (None, until))))
    return found


def reasoning_end(completion: str, answers: int) -> int:
    """Return where the reasoning before the first answer ends: 0 without any, the end if it never does."""
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
    """Return the reasoning, in its tags, and what follows it, of a completion whose answer has no tags of ours.

    The prompt may have opened the reasoning. Without an end, all is reasoning; without any, nothing.
    """
    before, closed, after = completion.partition(END_THINK)
    if THINK not in before:
        return (f"{THINK}{before}{END_THINK}", after) if closed else ("", completion)
    if before.strip().startswith(THINK):
        return (before.strip() + END_THINK, after) if closed else (completion, "")
    return "", completion  # not before the answer


def _within_an_answer(text: str, place: int, following: int, opening: re.Pattern[str]) -> bool:
    """Return whether a place lies in an answer that closes after it, before the next one opens."""
    around = opening.match(text, max(0, text.rfind("<answer", 0, place)))
    if not around:
        return False
    closing = "</" + around.group()[1:]
    return closing not in text[around.end() : place] and closing in text[place:following]


def duplicates(answers: Sequence[str | None], normal_form: Callable[[str], Hashable]) -> list[bool]:
    """Return which answers repeat an earlier one, compared in a normal form.

    A missing answer, and one whose normal form is None since it cannot be read, repeats nothing.
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
