"""Answers of any text: against the rules in words, which are applied character by character, and in linear time."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpo.tasks.answers import parse, parts, write

TAGS = ["<think>", "</think>", "<answer>", "</answer>", "<answer_1>", "</answer_1>", "<answer_2>", "</answer_2>", "<a"]
noise = st.lists(st.one_of(st.sampled_from([*TAGS, "<answer_3>", "</answer_3>", "a", " ", "\n"]), st.text(max_size=5)))


def opened_at(text, position, answers):
    """The opening tag at a position, by the rules in words; None where there is none."""
    tags = ["<answer>"] if answers == 1 else [f"<answer_{number}>" for number in range(1, 10)]
    return next((tag for tag in tags if text.startswith(tag, position)), None)


def closing_end(text, position, answers):
    """Where the text of an answer that opens at a position ends, None for one that is not closed in time."""
    tag = opened_at(text, position, answers)
    for here in range(position + len(tag), len(text)):
        if opened_at(text, here, answers):
            return None
        if text.startswith(f"</{tag[1:]}", here):
            return here
    return None


def plain_end(text, position):
    """Where a plain closing tag is that comes before any other tag of an answer or a thought."""
    others = [
        "<answer>",
        "<think>",
        "</think>",
        *(f"<{end}answer_{number}>" for number in range(1, 10) for end in ("", "/")),
    ]
    for here in range(position, len(text)):
        if text.startswith("</answer>", here):
            return here
        if any(text.startswith(each, here) for each in others):
            return None
    return None


def thought_of_the_prompt(text, answers):
    """Where a thought that the prompt opened ends: at the first end, outside all answers, with an answer after it."""
    first = text.find("</think>")
    after = first + len("</think>")
    if first < 0 or "<think>" in text[:first]:
        return 0
    for position in range(first):
        end = closing_end(text, position, answers) if opened_at(text, position, answers) else None
        if end is not None and first < end:
            return 0
    return after if any(opened_at(text, later, answers) for later in range(after, len(text))) else 0


def parse_slowly(text, answers):
    """The rules, character by character."""
    texts, plainly_closed = [None] * answers, [None] * answers
    unclosed = None  # index and rest of the last answer that is opened, where it is not closed
    position = thought_of_the_prompt(text, answers)
    while position < len(text):
        tag = opened_at(text, position, answers)
        end = closing_end(text, position, answers) if tag else None
        if text.startswith("<think>", position):
            after = text.find("</think>", position)
            position = after + len("</think>") if after >= 0 else len(text)
        elif end is not None:
            index = 0 if answers == 1 else int(tag[8:-1]) - 1
            if index < answers and texts[index] is None:
                texts[index] = text[position + len(tag) : end].strip()
            position = end + len(tag) + 1
        elif tag and answers > 1 and (plain := plain_end(text, position + len(tag))) is not None:
            index = int(tag[8:-1]) - 1
            if index < answers and plainly_closed[index] is None:
                plainly_closed[index] = text[position + len(tag) : plain].strip()
            position, unclosed = plain + len("</answer>"), None
        else:
            if tag:
                index = 0 if answers == 1 else int(tag[8:-1]) - 1
                unclosed = index, text[position + len(tag) :]
            position += 1
        if end is not None:
            unclosed = None
    texts = [other if own is None else own for own, other in zip(texts, plainly_closed, strict=True)]
    if unclosed and unclosed[0] < answers and texts[unclosed[0]] is None:
        index, rest = unclosed
        closing = "</answer>" if answers == 1 else f"</answer_{index + 1}>"
        rest = rest.rstrip()
        cut = max((size for size in range(len(closing)) if rest.endswith(closing[:size])), default=0)
        texts[index] = rest[: len(rest) - cut].strip() or None
    return texts


@pytest.mark.parametrize("answers", [1, 2, 3])
def test_the_parser_agrees_with_the_rules_in_words(answers):
    pieces = ["<think>", "</think>", "<answer>", "</answer>", "<answer", "x", "\n", "<", "</"]
    pieces += [f"<{end}answer_{number}>" for number in (1, 2, 3, 4) for end in ("", "/")]
    random = Random(answers)
    for _ in range(3000):
        text = "".join(random.choices(pieces, k=random.randint(1, 14)))
        assert parse(text, answers) == parse_slowly(text, answers), text


@given(noise, st.integers(1, 4))
def test_any_text_is_parsed_and_no_text_twice(parts, answers):
    completion = "".join(parts)
    parsed = parse(completion, answers)
    assert len(parsed) == answers
    texts = [text for text in parsed if text is not None]
    assert sum(map(len, texts)) <= len(completion)
    assert all(text in completion for text in texts)


pieces = st.lists(st.sampled_from(["a", "b", " ", "</think>", "<think>", "<", "</", "\n"]), max_size=6).map("".join)


@given(st.lists(pieces, min_size=2, max_size=4), st.integers(0, 80))
def test_a_truncated_answer_spoils_no_earlier_one(texts, cut):
    whole = write(texts)
    shortened = whole[: max(0, len(whole) - cut)]
    cut_answers = [index for index, text in enumerate(parse(shortened, len(texts))) if text is not None]
    for index, (before, after) in enumerate(zip(parse(whole, len(texts)), parse(shortened, len(texts)), strict=True)):
        if index == max(cut_answers, default=0):
            assert after is None or before.startswith(after)
        else:
            assert after in (before, None)


@pytest.mark.parametrize(
    "unit", ["<answer_1>", "<answer_", "</answer_1>", "<think>", "<answer_1><", "<answer_123456", "<answer_1></"]
)
def test_hostile_text_is_parsed_in_linear_time(unit):
    """A megabyte of each; quadratic time would be hours. `benchmarks/tasks.py` has the milliseconds."""
    hostile = unit * (1_000_000 // len(unit))
    assert parse(hostile, 3)[1:] == [None, None]
    assert parse(f"<answer_2>b</answer_2>{hostile}", 3)[1:] == ["b", None]


def test_so_many_answers_are_read_and_no_more():
    assert parse(write(["a"] * 10_001), 10_001)[-2:] == ["a", None]
    assert parse("<answer_1>a" * 10_001 + "</answer_1>", 2) == [None, None]


@given(pieces=noise, answers=st.integers(1, 4))
def test_parts_cover_any_text_and_name_the_answers_that_count(pieces, answers):
    text = "".join(pieces)
    indices = {index for _, index in parts(text, answers)}
    assert {index for index, each in enumerate(parse(text, answers)) if each is not None} | {0} <= indices
    ends = [end for end, _ in parts(text, answers)]
    assert ends == sorted(ends)
    assert ends[-1] == len(text)
