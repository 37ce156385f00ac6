"""Any text is read, in linear time, and what is read does not depend on what it should not depend on."""

import re
import time
from random import Random

import pytest

from tests.tasks.test_forms import TASKS, in_form
from tests.tasks.test_task import PROBLEMS
from vpo.tasks.forms import FORMS

WORD = "@"  # becomes a word that is nowhere else in the text
THOUGHTS = ("<think>", "</think>", f"<think>{WORD}</think>", "</think>\n")
PIECES = [
    *("<answer>", "</answer>", "<support>", "</support>", "<tool_call>", "</tool_call>", "<response>", "</response>"),
    *(f"<{end}answer_{number}>" for number in (1, 2, 3) for end in ("", "/")),
    *(f"<answer_{number}>{WORD}</answer_{number}>" for number in (1, 2, 3)),
    *(f"\n### Answer {number}\n" for number in (1, 2, 3)),
    *(f"\n### Answer {number}\n{WORD}\n" for number in (1, 2, 3)),
    *(f"\nAnswer {number}: {WORD}\n" for number in (1, 2, 3)),
    *(
        "**Solution 2**\n",
        '["',
        '", "',
        '"]',
        "[",
        "]",
        '"',
        "\\",
        ",",
        f'["{WORD}", "{WORD}", "{WORD}"]',
        f'{{"answer": "{WORD}"}}',
    ),
    *(f'"{WORD}"', "\\u00", "\\d", "\n```python\n", "\n```\n", "\n```json\n", "````", " ```python\n", "- ```\n", "```"),
    *(
        "def f():",
        f"\n```python\ndef f(): return '{WORD}'\n```\n",
        "\n5 * 10 + 3",
        f"\n#### 14 {WORD}\n",
        rf"\boxed{{{WORD}}}",
    ),
    *(
        "\\boxed{",
        "{",
        "}",
        f"The answer is {WORD}.",
        "#### ",
        "UURR\n",
        f"\nA: {WORD}",
        f"\nB: {WORD}",
        '{"name": "f"}',
    ),
    *(" ", "\n", "x", "é", "\r", "\u0661", "\ud800", "\0", WORD, f" {WORD} "),
]


def random_text(random, pieces, most=14):
    """Pieces in a row, each word of them another one."""
    text = "".join(random.choices(pieces, k=random.randint(1, most)))
    numbers = iter(range(10**6))
    return re.sub(WORD, lambda _: f"w{next(numbers)}w", text)


def words(text):
    return re.findall(r"w[0-9]+w", text)


def own_text(task, answer):
    """An answer of a set without the thoughts before the first, which every answer of toolrl begins with."""
    return (answer or "").rpartition("</think>")[2] if task.name == "toolrl" else answer or ""


def check_reading(task, text, answers):
    """Parts cover the text in order; each word of an answer is in no other one, and in a part of that answer."""
    reading = task.read(text, answers)
    assert len(reading.answers) == len(reading.strict) == answers
    ends = [end for end, _ in reading.parts]
    assert ends == sorted(ends)
    assert ends[-1] == len(text)
    assert all(answer is not None for answer, strict in zip(reading.answers, reading.strict, strict=True) if strict)
    owners, begin = [], 0
    for end, index in reading.parts:
        owners += [index] * (end - begin)
        begin = max(begin, end)
    seen = set()
    for index, answer in enumerate(reading.answers):
        own = words(own_text(task, answer))
        assert len(own) == len(set(own)), (text, answer)
        assert not seen & set(own), (text, answer)
        seen |= set(own)
        for word in own:
            at = text.index(word)
            assert set(owners[at : at + len(word)]) == {index}, (text, reading, word)


def fuzz(form, count):
    random = Random(f"forms {form}")
    tasks = [in_form(task, form) for task in TASKS.values()]
    for _ in range(count):
        text = random_text(random, [*PIECES, *THOUGHTS])
        check_reading(random.choice(tasks), text, random.randint(1, 3))


@pytest.mark.parametrize("form", FORMS)
def test_any_text_is_read_and_answers_agree_with_parts(form):
    fuzz(form, 1000)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_very_many_texts_are_read(form):
    fuzz(form, 60_000)


def test_any_text_has_steps_and_partial_scores():
    random = Random("steps")
    for task, problem in PROBLEMS.values():
        for _ in range(300):
            text = random_text(random, PIECES).strip()
            ends = task.steps(problem, text)
            assert ends == sorted(set(ends))
            assert all(0 < end <= len(text) for end in ends)
            for end in [0, *ends]:
                most = task.score_partial(problem, text[:end])
                assert most is None or len(most) == len(task.names_of(problem))


DRAFTS = "<answer>x</answer><answer_1>x</answer_1>"
THOUGHT = """
### Answer 1
["y"]
```python
def f(): 1
```
#### 7
UURR
3 + 5
A: b
"""


@pytest.mark.parametrize("form", FORMS)
def test_a_thought_before_everything_changes_nothing(form):
    random = Random(f"thoughts {form}")
    for _ in range(1000):
        task, answers = in_form(random.choice(list(TASKS.values())), form), random.randint(1, 3)
        text = random_text(random, PIECES)
        expected = task.read(text, answers)
        own = [own_text(task, each) for each in expected.answers]
        for before in (f"<think>{THOUGHT}{DRAFTS}</think>\n", f"{THOUGHT}{DRAFTS}</think>\n"):
            reading = task.read(f"{before}{text}", answers)
            if not any(own) and before.startswith("\n"):
                continue  # without an answer after it, the thought may be none
            assert [own_text(task, each).strip() for each in reading.answers] == [each.strip() for each in own], text
            if task.name != "toolrl":  # which asks for thoughts
                assert reading.strict == expected.strict, text


@pytest.mark.parametrize("form", FORMS)
def test_line_ends_of_windows_change_nothing(form):
    random = Random(f"line ends {form}")
    for _ in range(1000):
        task, answers = in_form(random.choice(list(TASKS.values())), form), random.randint(1, 3)
        text = random_text(random, [each for each in PIECES if "\r" not in each])
        expected, reading = task.read(text, answers), task.read(text.replace("\n", "\r\n"), answers)
        same = [None if each is None else each.replace("\r\n", "\n").strip() for each in reading.answers]
        assert same == [None if each is None else each.strip() for each in expected.answers], text
        assert reading.strict == expected.strict, text


def texts_for(random, form):
    """Texts that may be answers in a form: without its own marks."""
    marks = {"tags": r"<", "headings": r"###|\*\*|`|think>", "json": "(?!)"}[form.partition("-")[0]]
    pieces = [each for each in [*PIECES, *THOUGHTS] if not re.search(marks, each)]
    return [random_text(random, pieces).strip() or "x" for _ in range(3)]


@pytest.mark.parametrize("form", FORMS)
def test_whatever_is_written_in_a_form_is_read_from_it_also_where_it_is_cut_off(form):
    random = Random(f"written {form}")
    task = in_form(TASKS["eureqa"], form)
    for _ in range(500):
        texts = texts_for(random, form)
        written = FORMS[form].write(texts)
        reading = task.read(f"Well.\n{written}\nThat is all.", 3)
        last = "\nThat is all." if form == "headings" else ""
        assert reading.answers == [*texts[:2], texts[2] + last], texts
        assert reading.strict == [True] * 3
        if "think>" in written:
            continue  # what is cut off may seem to be a thought
        cut = random.randrange(len(written))
        answers = task.read(written[:cut], 3).answers
        missing = [index for index, each in enumerate(answers) if each is None]
        assert missing == list(range(3))[3 - len(missing) :], (written[:cut], answers)  # the last ones
        for index, (whole, part) in enumerate(zip(texts, answers, strict=True)):
            complete = index + 1 < 3 and answers[index + 1] is not None
            assert part is None or (part == whole if complete else whole.startswith(part)), (texts, part)


@pytest.mark.parametrize("name", TASKS)
def test_reading_takes_linear_time(name):
    """Forty thousand characters of each piece take milliseconds; quadratic time would be many seconds."""
    for piece in [*PIECES, *THOUGHTS]:
        hostile = piece * (40_000 // len(piece))
        for form in ("tags", "headings", "json"):
            begin = time.process_time()
            in_form(TASKS[name], form).read(hostile, 3)
            in_form(TASKS[name], form).read(hostile, 1)
            assert time.process_time() - begin < 3, (piece, form)
