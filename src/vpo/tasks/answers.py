"""Answers in tags: how they are written in one completion, and how they are parsed.

Several answers are written in numbered tags, ``<answer_1>…</answer_1>`` to ``<answer_m>…</answer_m>``; a single one in
``<answer>…</answer>``. The exact rules:

- Thoughts, ``<think>…</think>``, are skipped with any tags in them, wherever they are outside a closed answer. One that
  is never closed lasts to the end. The prompt may have opened the first: then all up to ``</think>`` is skipped, if an
  answer follows, and the tag is not inside one.
- An answer counts once its own closing tag follows, before any other answer opens. So an unclosed answer is
  missing, and with it nothing else: not the answers before it, not those after it. Only the last may lack its closing
  tag: it ends with the completion.
- A numbered answer that its own tag does not close, and a plain ``</answer>`` does, counts too, though not as written
  in the form, and only where no answer of its number has its own tag. No other tag of an answer or a thought may stand
  between.
- Answers are indexed by their number, in whatever order they appear. Of a repeated number the first that is closed
  counts. Numbers above m are ignored.
- No text belongs to two answers: an answer that opens inside another ends it, unclosed.
- Without tags there is no answer here: `Task.read` reads a task's own form then, `read_plain` the whole completion.

White space around an answer is stripped. An answer may be empty; the task scores it.
"""

import re
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from itertools import islice

from vpo.tasks.reading import Reading, Section, read_sections, read_whole
from vpo.tasks.thoughts import prompted_end, section_pattern, split_thoughts
from vpo.util.errors import InputError

MOST = 10_000  # answers that a completion may open; what it opens after them is not read
_TAGS = {True: "answer", False: "answer_[1-9][0-9]{0,5}"}  # of a single answer, and of numbered ones
_OPENING = {single: re.compile(f"<{tag}>") for single, tag in _TAGS.items()}
_ANSWERS = {single: section_pattern(tag, until=tag) for single, tag in _TAGS.items()}
# Those, and answers that are not closed.
_OPENED = {single: re.compile(f"{_ANSWERS[single].pattern[:-1]}|(?P<opened>{tag})>)") for single, tag in _TAGS.items()}
# The rest of a numbered answer that </answer> closes.
_PLAINLY_CLOSED = re.compile(rf"(?P<text>(?:[^<]++|<(?!/?answer>|/?{_TAGS[False]}>|/?think>))*+)</answer>")


def write(texts: Sequence[str]) -> str:
    """Answers in their tags: the inverse of `parse`."""
    _check(len(texts))
    if len(texts) == 1:
        return f"<answer>{texts[0]}</answer>"
    return "\n".join(
        f"<answer_{number}>{laid_out(text)}</answer_{number}>" for number, text in enumerate(texts, start=1)
    )


def laid_out(text: str) -> str:
    """A text as it stands between tags: several lines on lines of their own."""
    return f"\n{text}\n" if "\n" in text else text


def read(completion: str, answers: int) -> Reading:
    """The answers of a completion in tags, and where they are. Takes linear time."""
    _check(answers)
    return read_sections(sections(completion, answers), len(completion), answers)


def parse(completion: str, answers: int) -> list[str | None]:
    """The answers of a completion by their number, None for a missing one."""
    return read(completion, answers).answers


def parts(completion: str, answers: int) -> list[tuple[int, int]]:
    """Where the part of each answer ends, and its index: see `vpo.tasks.reading`."""
    return read(completion, answers).parts


def read_plain(completion: str, answers: int) -> Reading:
    """The answers of a completion where no task reads them: a single one needs no tags.

    Without an ``<answer>`` outside thoughts it is the whole completion without its thoughts; None where that is empty.
    Both count as the form that was asked for.
    """
    if answers > 1 or sections(completion, answers):
        return read(completion, answers)
    return read_whole(split_thoughts(completion, _ANSWERS[True])[1] or None, len(completion), strict=True)


def thoughts(completion: str, answers: int) -> str:
    """The thoughts before the first answer, without their tags; empty without any."""
    return split_thoughts(completion, _ANSWERS[answers == 1])[0]


def sections(completion: str, answers: int) -> list[Section]:
    """The answers that are opened outside thoughts, closed or not, in the order of the completion; the first `MOST`."""
    found: list[Section] = []
    unclosed: tuple[str, int] | None = None  # name and position of the text of the answer that was opened last
    matches = _OPENED[answers == 1].finditer(completion, _begin(completion, answers))
    for match in islice((match for match in matches if match.lastgroup), MOST):
        if unclosed:
            found.append(Section(_index(unclosed[0]), unclosed[1], match.start(), None))
        opened, name = match.group("opened", "name")
        plain = _PLAINLY_CLOSED.match(completion, match.end()) if opened and answers > 1 else None
        unclosed = (opened, match.end()) if opened and not plain else None
        if plain:
            found.append(Section(_index(opened), match.end(), plain.end(), plain["text"].strip()))
        if name:
            text = match["text"].strip()
            found.append(Section(_index(name), match.start("text"), match.end(), text, strict=True))
    if unclosed:
        name, start = unclosed
        cut = next(matches, None)  # where there are too many
        end = cut.start() if cut else len(completion)
        rest = None if cut else _without_cut_tag(completion[start:], f"</{name}>").strip() or None
        found.append(Section(_index(name), start, end, rest, closed=False))
    own = {each.answer for each in found if each.strict}
    return [
        each._replace(text=None) if each.answer in own and each.closed and not each.strict else each for each in found
    ]


def numbered_single(completion: str) -> list[Section]:
    """The sections of a single answer that is written as the first of a set; none where other numbers are there."""
    found = sections(completion, 2)
    return [each._replace(strict=False) for each in found] if all(each.answer == 0 for each in found) else []


def before_tags(completion: str, tagged: Sequence[Section]) -> int:
    """Position where the tag or heading of the first section begins."""
    start = tagged[0].start
    return max(0, completion.rfind("<" if completion[start - 1] == ">" else "\n", 0, start))


def _without_cut_tag(text: str, closing: str) -> str:
    """A text without the beginning of its closing tag, where it was cut in that tag."""
    text = text.rstrip()
    cut = next((size for size in range(len(closing) - 1, 0, -1) if text.endswith(closing[:size])), 0)
    return text[: len(text) - cut]


def _begin(completion: str, answers: int) -> int:
    """Position after the thought that the prompt opened, 0 without one: where no answer follows there is none."""
    end = prompted_end(completion, _ANSWERS[answers == 1])
    return end if end and _OPENING[answers == 1].search(completion, end) else 0


@lru_cache(1_000)
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
