"""Thoughts and sections, told apart."""

from random import Random

import pytest

from vpo.tasks.musique import SECTIONS as MUSIQUE
from vpo.tasks.musique import MusiqueTask, parse_answer
from vpo.tasks.thoughts import prompted_end, section_pattern, split_thoughts
from vpo.tasks.toolrl.calls import SECTIONS as TOOLRL

AB = section_pattern("a|b")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>t</think>x", ("t", "x")),
        (" <think>t</think> x", ("t", "x")),
        ("t</think>x", ("t", "x")),
        ("<think>t", ("t", "")),
        ("x", ("", "x")),
        ("x<think>t</think>", ("t", "x")),
        ("<think>t</think>x</think>y", ("t", "x</think>y")),
        ("<think>t</think>x<think> u </think>y", ("t\nu", "x y")),
        ("<think>t</think><a>x</a><think>u</think>y", ("t", "<a>x</a> y")),  # thoughts before the first section
        ("<think><a>draft</a></think><a>x</a>", ("<a>draft</a>", "<a>x</a>")),
        ("<a>draft</a></think><a>x</a>", ("<a>draft</a>", "<a>x</a>")),
        ("<a>the </think> tag</a>", ("", "<a>the </think> tag</a>")),
        ("<a>the <think> tag</a> x", ("", "<a>the <think> tag</a> x")),
        ("<a>open <think><a>draft</a></think><b>x</b>", ("<a>draft</a>", "<a>open  <b>x</b>")),
        ("<a<think>t</think>>", ("t", "<a >")),  # no tag is made of what is around a thought
        ("", ("", "")),
    ],
)
def test_thoughts_are_split_off(text, expected):
    assert split_thoughts(text, AB) == expected


def test_the_prompt_may_not_have_opened_a_thought():
    assert split_thoughts("<a>x</a></think><b>y</b>", AB, prompted=False) == ("", "<a>x</a></think><b>y</b>")
    assert prompted_end("<a>x</a></think><b>y</b>", AB) == len("<a>x</a></think>")


def section_end(text, position, names):
    """Where a section that opens at a position ends, None where none does: before its tag opens again."""
    for name in names:
        opening, closing = f"<{name}>", f"</{name}>"
        if text.startswith(opening, position):
            end, again = text.find(closing, position), text.find(opening, position + 1)
            return end + len(closing) if end >= 0 and not 0 <= again < end else None
    return None


def split_slowly(text, names, position=0):
    """The rules in words, character by character."""
    thoughts, rest, before = [text[: max(0, position - len("</think>"))]], "", True
    while position < len(text):
        end = section_end(text, position, names)
        if end is not None:
            rest += text[position:end]
            position, before = end, False
        elif text.startswith("<think>", position):
            end = text.find("</think>", position)
            content = text[position + len("<think>") : end if end >= 0 else len(text)]
            thoughts += [content] if before else []
            rest += " "
            position = end + len("</think>") if end >= 0 else len(text)
        else:
            rest += text[position]
            position += 1
    return "\n".join(each.strip() for each in thoughts if each.strip()), rest.strip()


def prompted_slowly(text, names):
    first = text.find("</think>")
    if first < 0 or "<think>" in text[:first]:
        return 0
    position = 0
    while position < first:
        position = section_end(text, position, names) or position + 1
    return first + len("</think>") if position == first else 0


@pytest.mark.parametrize(
    ("sections", "names"),
    [(AB, "ab"), (MUSIQUE, ("support", "answer")), (TOOLRL, ("tool_call", "response"))],
    ids=["own", "musique", "toolrl"],
)
def test_splitting_agrees_with_the_rules_in_words(sections, names):
    pieces = [
        "<think>",
        "</think>",
        "x",
        " ",
        "<",
        "</",
        "<thin",
        *(f"<{end}{name}>" for name in names for end in ("", "/")),
    ]
    random = Random(0)
    for _ in range(3000):
        text = "".join(random.choices(pieces, k=random.randint(0, 14)))
        assert prompted_end(text, sections) == prompted_slowly(text, names), text
        assert split_thoughts(text, sections) == split_slowly(text, names, prompted_slowly(text, names)), text
        assert split_thoughts(text, sections, prompted=False) == split_slowly(text, names), text


def test_an_answer_of_musique_is_the_same_before_and_after_it_is_parsed():
    """Thoughts are gone after `parse`, so scoring its result finds no others."""
    pieces = ["<think>", "</think>", "x", "<support>", "</support>", "<answer>", "</answer>", "1"]
    random, task = Random(0), MusiqueTask()
    for _ in range(3000):
        text = "<think>t</think>" + "".join(random.choices(pieces, k=random.randint(0, 12)))
        (parsed,) = task.parse(text, 1)
        if parsed is None:
            assert not parse_answer(text)[1], text
        else:
            assert parse_answer(parsed) == parse_answer(text), text


@pytest.mark.parametrize(
    "unit", ["<a>", "<a><b>", "<think>", "</think>", "<think></think>", "<a></a>", "<", "</", "<a", "<a><think>", "x"]
)
def test_hostile_text_is_split_in_linear_time(unit):
    """A megabyte of each; quadratic time would be hours."""
    split_thoughts(unit * (1_000_000 // len(unit)), AB)
