"""Answers without tags, in the form that each task knows."""

import pytest

from tests.tasks.test_task import PROBLEMS
from vpo.tasks import Reading, Task

LIST = "A: Ada\nB: Bob"
CALL = '<tool_call>\n{"name": "f", "parameters": {}}\n</tool_call>'
OTHER = CALL.replace('"f"', '"g"')


@pytest.mark.parametrize(
    ("name", "completion", "expected"),
    [
        ("countdown", "5 * 10 is 50, so\n5 * 10 + 3 = 53", "5 * 10 + 3 = 53"),
        ("countdown", "The expression is: **(5 * 10) + 3**.", "(5 * 10) + 3"),
        ("countdown", r"So \[ \boxed{5 \times 10 + 3} \]", "5 * 10 + 3"),
        ("countdown", "1. 3 + 5\n2. 5 * 10 + 3\nEither is fine.", "5 * 10 + 3"),  # of two, the last
        ("countdown", "I found 53.", None),
        ("countdown", "* The answer is 5 * 10 + 3.", "5 * 10 + 3"),
        ("countdown", "So the expression that makes 53 is `5 * 10 + 3`.", "5 * 10 + 3"),
        ("countdown", "The number 53 is 5 * 10 + 3", None),
        *(
            ("countdown", f"<answer>{text}</answer>", "5 * 10 + 3")
            for text in (
                r"\(5 \times 10 + 3\)",
                r"$5 \cdot 10 + 3$",
                "`5 * 10 + 3`",
                "\n**5 * 10 + 3.**\n",
                r"\boxed{5 * 10 + 3}",
                "5 * 10 + 3\n\nThis uses 3, 5 and 10.",
                "So:\n5 * 10 + 3\n**5 * 10 + 3**",
            )
        ),
        *(
            ("countdown", f"<answer>{text}</answer>", text)
            for text in ("5 * 10\n5 * 10 + 3", "5 * 10 or 5 + 3", "3 +", "")
        ),
        ("countdown", "<answer>3 + 5</answer>\n5 * 10 + 3", "3 + 5"),  # tags win
        ("countdown", "<think>\n5 * 10 + 3\n</think>", None),
        ("countdown", "<answer>3 + 5</answer>?\n</think>\n5 * 10 + 3", "5 * 10 + 3"),  # the prompt opened the thought
        ("countdown", "<answer>3 + 5</answer>\n</think>\nThat is all.", "3 + 5"),
        ("countdown", "3 + 5 = 8\n<answer_1>5 * 10 + 3</answer_1>", "5 * 10 + 3"),  # a single one with a number
        ("countdown", "<answer_1>3 + 5</answer_1><answer_1>5 * 10 + 3</answer_1>", "3 + 5"),
        ("countdown", "<answer_1>3 + 5</answer_1><answer>5 * 10 + 3</answer>", "5 * 10 + 3"),
        ("countdown", "<answer_1>3 + 5</answer_1><answer_2>5 * 10 + 3</answer_2>", None),
        ("gsm8k", "3 + 4 = 7\n<answer_1>14</answer_1>", "14"),
        ("maze", "<think><answer_1>RR</answer_1></think><answer_1>UURR</answer_1>", "UURR"),
        ("countdown", "5 * 10 + 3 <answer>", "5 * 10 + 3"),
        ("countdown", "3 + 5 <answer>5 * 10 + 3 <answer>", "3 + 5"),  # what is in a section without end is not read
        ("countdown", "5 * 10 + 3 <answer></answer>", ""),
        ("maze", "Go right.\nRoute: `UURRDD`", "UURRDD"),
        ("maze", "U\nI do not know", None),
        ("eureqa", f"A: maybe Eve\nNo.\n{LIST}", LIST),
        ("eureqa", f"- A: Eve\n- B: Tim\nOn second thought:\n{LIST}\nDone.", LIST),
        ("eureqa", "Ada and Bob", None),
        ("musique", "<support>1</support>\n<answer>x", "<support>1</support>\n<answer>x"),
        ("musique", "It is x.", None),
        ("toolrl", f"<think>t</think>{CALL}", f"<think>t</think>{CALL}"),
    ],
)
def test_a_single_answer_in_the_form_of_the_task(name, completion, expected):
    assert PROBLEMS[name][0].parse(completion, 1) == [expected]


@pytest.mark.parametrize(
    ("name", "completion", "expected"),
    [
        ("countdown", "1. 5 * 10 + 3\n2. 3 + 10 * 5\nDone.", ["5 * 10 + 3", "3 + 10 * 5", None]),
        (
            "countdown",
            "### Answer 1\n5 * 10\n\nIt is 50.\n### Answer 2\n3 + 5 = 8\n8 * 10",
            ["5 * 10", "3 + 5 = 8\n8 * 10", None],
        ),
        ("maze", "Route 1: UURR\nRoute 2: RRUU\nRoute 3: URUR\nRoute 4: DDDD", ["UURR", "RRUU", "URUR"]),
        ("eureqa", f"First:\n{LIST}\nSecond:\nA: Eve\nB: Tim", [LIST, "A: Eve\nB: Tim", None]),
        (
            "musique",
            "<support>1</support><answer>x</answer> or <support>2</support>\n<answer>y</answer>",
            ["<support>1</support><answer>x</answer>", "or <support>2</support>\n<answer>y</answer>", None],
        ),
        (
            "toolrl",
            f"<think>t</think>{CALL}\n{OTHER}",
            [f"<think>t</think>\n{CALL}", f"<think>t</think>\n{OTHER}", None],
        ),
        ("maze", "<answer>UU</answer> <answer>RR</answer>", ["UU", "RR", None]),  # tags without numbers
        ("maze", "<answer_1>UU</answer>\n<answer_2>RR</answer>\n<answer_3>DD</answer>", ["UU", "RR", "DD"]),
        ("maze", "UU\nRR\n<answer_1>", ["UU", "RR", None]),
        ("maze", "UU\n<answer_1>RR\n<answer_2>", ["UU", None, None]),
        ("gsm8k", "7 * 2 = 14.\n**Answer 14**\n#### 14", ["7 * 2 = 14.\n**Answer 14**\n#### 14", None, None]),
        ("gsm8k", "**Answer 1**\n#### 14", ["#### 14", None, None]),
        ("gsm8k", "**Answer 2**\n#### 14\n**Answer 3**\n#### 15", [None, "#### 14", "#### 15"]),
        ("maze", "<answer_2>UU</answer_2>\nRRUU", [None, "UU", None]),  # where a tag is there, tags alone count
    ],
)
def test_a_set_in_the_form_of_the_task(name, completion, expected):
    assert PROBLEMS[name][0].parse(completion, 3) == expected


SUM = "3 + 4 = 7, 7 * 2 = 14"


@pytest.mark.parametrize(
    ("name", "completion", "right"),
    [
        ("gsm8k", rf"{SUM}. So \boxed{{14}}.", True),
        ("gsm8k", f"{SUM}\n#### 14", True),
        ("gsm8k", "The answer is 14.", True),
        *(
            ("gsm8k", text, True)
            for text in ("14", "$14", "14.00", "**14**", "#### **14**", "#### $14.00\r\n", "####14")
        ),
        *(
            ("gsm8k", rf"\boxed{{{text}}}", True)
            for text in ("{14}", r"\$14", r"\text{14}", r"14\text{ apples}", r"\boxed{14}")
        ),
        ("gsm8k", r"\boxed{\text{so } {14} and {15}}", False),
        *(
            ("gsm8k", text, True)
            for text in ("Total: 14", "= 14", "Tom has 14.", "#### = 14", "####: 14", r"The answer is \(14\).")
        ),
        ("gsm8k", "7 * 2 = <<7*2=14>>14 apples and\n7 * 2 = <<7*2=14>>14 pears.", True),
        ("gsm8k", "So he earns $14/day.", True),
        ("gsm8k", f"{SUM}.\n\n```python\nprint(7 * 2)  # 14\nx = 3\n```", True),
        ("gsm8k", f"{SUM}.\n\n```python\ndef f():\n    return 3", True),
        ("gsm8k", "```python\nprint(14)\n```", False),
        *(("gsm8k", text, False) for text in ("The answer is .14", "The answer is $.14.", "It is 3 or .14")),
        ("gsm8k", "The answer is 3 or\n\\(14\\) or \\(15\\)", False),
        ("gsm8k", f"{SUM}.\n\n**Answer:** 14 apples", True),
        ("gsm8k", "Twice 3 + 4 is twice 7.\nThat makes $14.00 in all.", True),
        ("gsm8k", f"#### Step 1\n{SUM}\n#### Answer\nThe answer is 14.", True),
        ("gsm8k", "The answer is 14. No, wait.\nThe answer is 15.", False),
        ("gsm8k", r"\boxed{14} or \boxed{15}", False),
        ("gsm8k", "The answer is 14 or 15.", False),
        ("gsm8k", "In the end there are 14 million of them.", False),
        ("gsm8k", "First I get 14.\nThen I get 7^14", False),
        ("gsm8k", "<think>The answer is 14.</think>", False),
        ("gsm8k", "<answer>15</answer> The answer is 14.", False),
        ("math", r"So the answer is $\frac{1}{2}$.", True),
        ("math", r"So the answer is \(\frac{1}{2}\).", True),
        ("math", r"The answer is \[ \frac12 \].", True),
        ("math", r"The answer is \(2\) or \(\frac12\).", False),
        ("math", r"The answer is $\frac12$ or $2$.", False),
        ("math", r"The answer is $2$, $\frac12$.", False),
        ("math", r"\boxed{2}, no: \boxed{\frac12}", True),
        ("math", r"\boxed{\frac12} or else \boxed{2}", False),
    ],
)
def test_a_final_answer_of_a_single_solution(name, completion, right):
    if name == "math":
        pytest.importorskip("math_verify")
    task, problem = PROBLEMS[name]
    (vector,) = task.score_all([problem], task.parse(completion, 1))
    assert task.solved(vector) == right


@pytest.mark.parametrize(
    "completion",
    [
        "I cannot solve it.",
        "She bakes",
        "3 + 4 = 7, and she earns 7 * 2",
        "```python\nprint(14)\n```",
        "3 + 4 = 7 or 7^2",
    ],
)
def test_a_text_without_a_final_number_is_no_answer_of_gsm8k(completion):
    assert PROBLEMS["gsm8k"][0].parse(completion, 1) == [None]


def test_solutions_of_a_set_end_with_their_final_answers():
    task, _ = PROBLEMS["gsm8k"]
    assert task.parse("a\n#### 1\nb\n#### 2\nc", 3) == ["a\n#### 1", "b\n#### 2", None]
    assert task.parse(r"a \boxed{1} b \boxed{2}", 3) == [r"a \boxed{1}", r"b \boxed{2}", None]
    assert task.parse("The answer is 1. Or: the answer is 2.", 3)[:2] == ["The answer is 1.", "Or: the answer is 2."]


@pytest.mark.parametrize(
    ("completion", "expected"),
    [
        ("Answer 1: a\nAnswer 2: b", ["a", "b"]),
        ("Two.\n1. **Answer 2:** b\n- Solution 1: a", ["a", "b"]),
        ("Answer 1:\na\nAnswer 2:\nb\nAnswer 3:\nc", ["a", "b"]),
        ("Answer 1: a\n```\nAnswer 2: x\n```", [None, None]),
        ("### Answer 1\nAnswer 1: a\nAnswer 2: b", ["Answer 1: a\nAnswer 2: b", None]),  # headings win
        ("Answer 1: a\nAnswer 2: b\n#### 14\n#### 15", ["Answer 1: a\nAnswer 2: b\n#### 14", "#### 15"]),  # so do marks
        ("Answer 1: x\nAnswer 1: a", [None, None]),  # one number is no list
        ("<think>Answer 1: x\nAnswer 2: y</think>\nAnswer 1: a\nAnswer 2: b", ["a", "b"]),
        ("Answer 1 is a\nAnswer 2 is b", [None, None]),
    ],
)
def test_labels_begin_the_answers_of_a_set_that_has_no_other_form(completion, expected):
    reading = PROBLEMS["gsm8k"][0].read(completion, 2)
    assert reading.answers == expected
    assert not any(reading.strict)


@pytest.mark.parametrize(
    ("name", "completion", "answers", "strict"),
    [
        ("maze", "<answer_1>UU</answer_1><answer_2>RR", 2, [True, False]),  # both are read, one without its end
        ("maze", "<answer>UU</answer>", 1, [True]),
        ("maze", "<answer_1>UU</answer_1>", 1, [False]),
        ("maze", "<answer_1>UU</answer><answer_2>RR</answer_2>", 2, [False, True]),
        ("maze", "UU", 1, [False]),
        ("maze", "UU\nRR", 2, [False, False]),
        ("eureqa", LIST, 1, [True]),
        ("musique", "<support>1</support><answer>x</answer>", 1, [True]),
        ("musique", "<support>1</support><answer>x", 1, [False]),
        ("toolrl", CALL, 1, [False]),
        ("toolrl", f"<think>t</think>{CALL}", 1, [True]),
        ("maze", "nothing", 1, [False]),
        ("eureqa", f"<answer>{LIST}</answer>", 1, [False]),  # tags are read, though nobody asked for them
        ("gsm8k", "#### 14", 1, [True]),
        ("gsm8k", r"\boxed{14}", 1, [False]),
        ("gsm8k", "#### Step 1\n14", 1, [False]),
        ("gsm8k", "<answer>#### 14</answer>", 1, [False]),
        ("math", r"\boxed{14}", 1, [True]),
        ("math", "#### 14", 1, [False]),
    ],
)
def test_strict_tells_what_is_in_the_form_that_was_asked_for(name, completion, answers, strict):
    if name == "math":
        pytest.importorskip("math_verify")
    assert PROBLEMS[name][0].read(completion, answers).strict == strict


def test_parts_and_answers_come_from_one_reading():
    task, _ = PROBLEMS["maze"]
    assert task.read("x\nUURR\nRRUU", 2) == Reading(["UURR", "RRUU"], [False, False], [(6, 0), (11, 1), (11, 1)])
    with pytest.raises(ValueError, match=r"Mine.parse: override read, which parse and parts are derived from"):
        type("Mine", (Task,), {"parse": lambda self, completion, answers: []})
