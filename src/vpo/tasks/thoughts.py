"""Thoughts, ``<think>…</think>``, and the sections that an answer is written in, told apart in linear time.

- A section counts where its closing tag follows before it is opened again. All between its tags is its text: a
  ``<think>`` in it opens no thought.
- A thought begins with a ``<think>`` outside such sections, and ends with the next ``</think>`` or with the text. Tags
  in it open no section.
- Where the first of these tags is a ``</think>`` outside such sections, the prompt opened the thought, and it begins
  with the text.
"""

import re

THINK, END_THINK = "<think>", "</think>"


def section_pattern(names: str, *, until: str = "(?P=name)") -> re.Pattern[str]:
    """A pattern that matches the thoughts and sections of a text from left to right.

    The group `name` is the name of a section's tag, None for a thought; the group `text` is what a section holds.

    Args:
        names: a regular expression for the names of the sections' tags.
        until: one for the names of the tags that end a section which is still open; by default, its own.
    """
    # Possessive quantifiers, so that no text takes more than linear time.
    thought = r"think>(?:[^<]++|<(?!/think>))*+(?:</think>|\Z)"
    section = rf"(?P<name>{names})>(?P<text>(?:[^<]++|<(?!/(?P=name)>|{until}>))*+)</(?P=name)>"
    return re.compile(f"<(?:{thought}|{section})")


def prompted_end(text: str, sections: re.Pattern[str]) -> int:
    """Position after the thought that the prompt opened, 0 where there is none."""
    closed = text.find(END_THINK)
    if closed < 0 or text.find(THINK, 0, closed) >= 0:
        return 0
    around = next((match for match in sections.finditer(text) if match.end() > closed), None)
    return 0 if around and around.start() < closed else closed + len(END_THINK)


def split_thoughts(text: str, sections: re.Pattern[str], *, prompted: bool = True) -> tuple[str, str]:
    """The thoughts before the first section, without their tags, and the text without any thoughts.

    Args:
        text: any text.
        sections: a `section_pattern`.
        prompted: whether the prompt may have opened the first thought.
    """
    begin = prompted_end(text, sections) if prompted else 0
    thoughts, rest = [text[: max(0, begin - len(END_THINK))]], []
    before = True  # before the first section
    for match in sections.finditer(text, begin):
        if match["name"] is not None:
            before = False
            continue
        rest.append(text[begin : match.start()])
        begin = match.end()
        if before:
            thoughts.append(match.group().removeprefix(THINK).removesuffix(END_THINK))
    rest.append(text[begin:])
    # A space in place of a thought, so that no tag is made of the text on both sides.
    return "\n".join(filter(None, map(str.strip, thoughts))), " ".join(rest).strip()


def blank_thoughts(text: str, sections: re.Pattern[str]) -> str:
    """The text with spaces in place of its thoughts, so that positions in it stay.

    `sections` may match more than a `section_pattern` does; only what begins with ``<think>`` is a thought.
    """
    begin = prompted_end(text, sections)
    pieces = [" " * begin]
    for match in sections.finditer(text, begin):
        if match.group().startswith(THINK):
            pieces += [text[begin : match.start()], " " * (match.end() - match.start())]
            begin = match.end()
    return "".join([*pieces, text[begin:]])
