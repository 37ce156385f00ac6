"""Markdown headings: ``### Answer 1`` with the task's own form under each."""

import re
from collections import deque
from typing import ClassVar

from vpo.tasks.fences import OPAQUE, fences
from vpo.tasks.forms.base import Form
from vpo.tasks.reading import Section
from vpo.tasks.thoughts import blank_thoughts

_HEADING = re.compile(
    r"^[ \t]{0,3}(?:(?P<exact>### Answer )|(?:#{1,6}[ \t]{0,3}(?:\*\*)?|\*\*)(?:answer|solution)[ \t])"
    r"(?P<number>[1-9][0-9]{0,5})(?P<rest>[ \t:.*]{0,9})\r?$",
    re.MULTILINE | re.IGNORECASE,
)
# Text may follow on the line of a label, so it needs a colon.
_LABEL = re.compile(
    r"^[ \t]{0,3}(?:(?:[-*•]|[0-9]{1,3}[.)])[ \t]{1,3})?(?:\*\*)?(?:answer|solution)[ \t](?P<number>[1-9][0-9]{0,5})"
    r"(?:\*\*)?:(?:\*\*)?",
    re.MULTILINE | re.IGNORECASE,
)


class Headings(Form):
    """A heading for each answer, which lasts to the next heading. Headings inside closed fences are code."""

    name: ClassVar[str] = "headings"
    summary: ClassVar[str] = "markdown headings, ### Answer 1"
    how: ClassVar[str] = "Write each answer under its own heading, and nothing after the last."
    separator: ClassVar[str] = "\n\n"

    def opening(self, index: int) -> str:
        """The line of the heading."""
        return f"### Answer {index + 1}\n"

    def closing(self, index: int) -> str:
        """Nothing: the next heading ends an answer."""
        return ""

    def sections(self, completion: str, answers: int) -> list[Section]:
        """Headings such as ``**Solution 2:**`` count too, though not as strict ones.

        They need a first one, or two different numbers: a lone ``**Answer 14**`` is a result.
        """
        text = blank_thoughts(completion, OPAQUE)
        found = _outside_code(_HEADING, text)
        numbers = {match["number"] for match in found}
        if len(numbers) == 1 and "1" not in numbers and not any(map(_is_strict, found)):
            return []
        last = text.rstrip().rpartition("\n")[2]
        cut = len(last) if last and self.opening(0).startswith(last) else 0  # a heading that was cut off
        return _between(found, text.rstrip()[:-cut] if cut else text, len(completion))


def labelled(completion: str) -> list[Section]:
    """The answers after labels such as ``Answer 1: 18``; none where all have one number."""
    text = blank_thoughts(completion, OPAQUE)
    found = _outside_code(_LABEL, text)
    return _between(found, text, len(text)) if len({match["number"] for match in found}) > 1 else []


def _between(found: list[re.Match[str]], text: str, length: int) -> list[Section]:
    """The sections that begin with these matches; the last ends with the completion of so many characters."""
    ends = [*(match.start() for match in found), length][1:]
    return [
        Section(
            int(match["number"]) - 1,
            match.end(),
            end,
            text[match.end() : end].strip() or None,
            strict=_is_strict(match),
        )
        for match, end in zip(found, ends, strict=True)
    ]


def _is_strict(match: re.Match[str]) -> bool:
    return match.re is _HEADING and match["exact"] == "### Answer " and not match["rest"].strip()


def _outside_code(pattern: re.Pattern[str], text: str) -> list[re.Match[str]]:
    """The matches of a pattern that are not inside closed fences."""
    code = deque((each.start, each.end) for each in fences(text) if each.closed)
    found = []
    for match in pattern.finditer(text):
        while code and code[0][1] <= match.start():
            code.popleft()
        if not code or match.start() < code[0][0]:
            found.append(match)
    return found
