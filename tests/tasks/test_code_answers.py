"""Programs in answers of the task code."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpo.tasks.code import CodeTask
from vpo.tasks.code.answers import extract_program, fenced, program_form


@pytest.mark.parametrize(
    ("answer", "program"),
    [
        ("```python\nx = 1\n```", "x = 1"),
        ("First.\n```python\nx = 1\n```\nBetter:\n```py\nx = 2\n```\nDone.", "x = 2"),
        ("```\nx = 1\n```", "x = 1"),
        ("```Python3\nx = 1\n```", "x = 1"),
        ("```python\nx = 1\n```\n```text\n3\n```", "x = 1"),
        ("```python\nx = 1\n```\nIt prints\n```\n3\n```", "x = 1"),
        ("```python\nx = '\x0c\u2028'\n```", "x = '\x0c\u2028'"),
        ("```python\nx = 1\n```\n```python\nx = ", "x = 1"),
        ("  ```python\n  x = 1\n  ```", "x = 1"),
        ("x = 1", "x = 1"),
        ("```python\nx = 1", "x = 1"),
        ("```python\n\n```", None),
        ("```text\nx\n```", None),
        ("", None),
        (" \n", None),
        ("x" * 200_000, None),
        ("```python\ndef f(): 1\n```\nUse it:\n```python\nprint(f())\n```", "def f(): 1"),
        ("```python\nn = input()\n```\nUse it:\n```python\nprint(5)\n```", "n = input()"),
        ('```python\ndef f():\n    """\n    ```\n    f()\n    ```\n    """\n```', None),
        ("```python\nx = 1\n```python\nx = 2\n```", "x = 2"),
        ("```python\nx = 1\n``` This is it.", "x = 1"),
        ("```python\nx = 1\n```.\nThis is it.", "x = 1"),
        ("```python\nx = 1\n```output\n1\n```", "x = 1"),
        ("```python\nx = 1\n```json title=a.json\n1\n```", "x = 1"),
        ("```python title=a.py\nx = 1\n```", "x = 1"),
        ("```python:a.py\nx = 1\n```", "x = 1"),
        ("```python3.11\nx = 1\n```", "x = 1"),
        ("```{python}\nx = 1\n```", "x = 1"),
        ("```pycon\n>>> x\n```", None),
        ("````python\nx = 1\n```\n````", "x = 1\n```"),
        ("Here: ```python\nif x:\n        x = 1\n```", "if x:\n        x = 1"),
        ("- ```\n  x = 1\n  ```", "x = 1"),
        ("```python\nx = 1```", "x = 1"),
        ("```python\nx = 1\n```\n```python\nx = 2``` \n", "x = 2"),
        ("```python\r\nx = 1\r\ny = 2\r\n```\r\n", "x = 1\ny = 2"),
        ("Say ```x = 1``` or\n```x = 2```", None),
    ],
)
def test_the_program_of_an_answer_is_its_last_closed_fence(answer, program):
    inside = answer.removeprefix("```python\n").removesuffix("\n```")
    assert extract_program(answer) == (inside if program is None and '"""' in answer else program)


F, G, USE = "```python\ndef f(): 1\n```", "```python\ndef g(): 2\n```", "```python\nprint(f())\n```"
OTHER_F = "```python\ndef f(): 3\n```"


@pytest.mark.parametrize(
    ("answer", "entry", "program"),
    [
        (f"{F}\n{USE}", "f", "def f(): 1"),
        (f"{F}\n{G}", "f", "def f(): 1"),
        (f"{F}\n{G}", "g", "def g(): 2"),
        (f"{F}\nNo.\n{OTHER_F}\n{USE}", "f", "def f(): 3"),  # a draft is not the answer
        (f"{F}\n{G}", "h", "def g(): 2"),
        ("```python\nclass S:\n    def f(self): 1\n```\n" + USE, "S.f", "class S:\n    def f(self): 1"),
        (f"{F}\n```python\ndef f(): 9 +", "f", "def f(): 1"),
        ("```\ndef f(): 1\n```\n```python\nassert f() == 1\n```", "f", "def f(): 1"),  # models forget the language
        ("```\ndef f(): 1\n```\n```python\nassert f() == 1\n```", None, "def f(): 1"),
        (f"```\ndef f(): 3\n```\n{F}", "f", "def f(): 1"),
        (f"{F}\n```\ndef f(): 3\n```", "f", "def f(): 1"),
        (f"```\ndef f(): 1\n```\n{G}", "f", "def f(): 1"),
        (f"```python\nf = lambda: 1\n```\n{USE}", "f", "f = lambda: 1"),
        (f"{F}\n```python\nf == lambda: 3\nff = lambda: 3\n```", "f", "def f(): 1"),
        ("def f(): 1\n```", "f", "def f(): 1"),  # the fence was never opened
        ("import os\n\ndef f(): 1\n```\n\nIt returns 1.", "f", "import os\n\ndef f(): 1"),
        (f"def f(): 1\n```\nUse it:\n{USE}", "f", "def f(): 1"),
        (f"def f(): 1\n```\nNo:\n{OTHER_F}", "f", "def f(): 3"),
        (f"I import \ndef f(): 1\n{USE}", "f", "print(f())"),
        ("```python\ndef f(): 1\n```output\n1\n```", "f", "def f(): 1"),
        (f"```python\ndef f(): 1\n{USE}", "f", "def f(): 1"),
        (f"```python\ndef f(): 1\n{OTHER_F}", "f", "def f(): 3"),  # of two, the closed one
        (f"{F}\n```python\ndef f(): 9 +\n{USE}", "f", "def f(): 1"),
        (f"{G}\n```python\ndef f(): 1", "f", "def f(): 1"),
        ("# adds\ndef f(): 1\n```\nThis works.", "f", "# adds\ndef f(): 1"),
        ("N = 1\ndef f(): N\n```\nThis works.", "f", "N = 1\ndef f(): N"),
        ("n, m = 1, input()\n```\nThis works.", None, "n, m = 1, input()"),
        ('"""A text."""\ndef f(): 1\n```\nThis works.', "f", '"""A text."""\ndef f(): 1'),
        ("It is\ndef f(): 1\n```\nThis works.", "f", None),  # nor is the prose a program
        ("# Solution\n\nIt reads stdin.\n```\nprint(5)\n```", None, "print(5)"),
        ("# Solution\ndef f(): 1 is it:\n```\nprint(5)", "f", "print(5)"),
    ],
)
def test_the_program_is_the_last_fence_that_defines_the_entry_point(answer, entry, program):
    assert extract_program(answer, entry) == program


@pytest.mark.parametrize(
    ("completion", "answers", "expected"),
    [
        (f"Here it is.\n{F}\nSo.", 1, [f"Here it is.\n{F}\nSo."]),
        ("I cannot do that.", 1, [None]),
        ("def f(): 1", 1, ["def f(): 1"]),
        (f"<think>{F}</think>", 1, [None]),
        (f"{F}\n<answer> ", 1, [F]),
        (f"{F[:-4]}\n{OTHER_F}", 2, [F[:-4], OTHER_F]),
        (f"{F} It is 1.\n{OTHER_F}", 2, [f"{F} It is 1.", OTHER_F]),
        (f"<answer>{G}</answer>\n{F}", 1, [G]),
        (f"One:\n{F}\nTwo:\n{OTHER_F}\n{USE}", 2, [F, OTHER_F]),
        (f"{F}\n{OTHER_F}\n{F}", 2, [F, OTHER_F]),
        (f"{G}\n{F}\n{OTHER_F}", 3, [F, OTHER_F, None]),
        (f"<answer_1>{F}</answer_1>\n{OTHER_F}", 2, [F, None]),
        (F, 2, [F, None]),
        ("def f(): 1\n```\nIt works.", 1, ["def f(): 1\n```\nIt works."]),
        (f"<think>{F}</think>{OTHER_F}", 2, [OTHER_F, None]),
        ("```python\nprint(input())\n```\n```python\nprint(1)\n```", 2, ["```python\nprint(input())\n```", None]),
    ],
)
def test_programs_are_read_without_tags(completion, answers, expected):
    parsed = CodeTask().parse(completion, answers)
    assert [each and each.strip() for each in parsed] == expected


def test_programs_are_the_same_but_for_layout_comments_and_docstrings():
    task = CodeTask()
    one = fenced('def f(a):\n    """Adds."""\n    return (a + 1)  # one more\n')
    other = "def f(a):\n\n  return a+1"
    assert task.normal_form(one) == task.normal_form(other) is not None
    assert task.normal_form(one) != task.normal_form("def f(b):\n  return b+1")
    assert task.normal_form("def f(:") is None
    assert task.normal_form('"""A text."""') == task.normal_form("# nothing")


@given(st.lists(st.sampled_from(["```", "python", "\n", " ", "def f", "(", ")", ":", "'", "\x00", "#", "x"])))
def test_any_text_is_parsed(pieces):
    source = extract_program("".join(pieces))
    if source is not None:
        program_form(source)
