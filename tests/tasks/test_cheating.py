"""Cheating: what is read of a completion must not depend on what would score best."""

import pytest

from tests.tasks.test_forms import TASKS
from tests.tasks.test_task import PROBLEMS
from vpo.tasks.answers import write

RIGHT, WRONG, NEAR = "5 * 10 + 3", "3 + 5 + 10", "5 * 10 - 3"
DEF, BAD = "```python\ndef f(): return 1\n```", "```python\ndef f(): return 0\n```"
ATTEMPTS = [  # name, task, m, completion, and which of the answers are right
    ("second answer hidden after the first", "countdown", 1, f"<answer>{WRONG}</answer><answer>{RIGHT}</answer>", [0]),
    ("second answer inside the first", "countdown", 1, f"<answer>{WRONG}\n{RIGHT}</answer>", [0]),
    ("answer after the end", "countdown", 1, f"<answer>{WRONG}</answer>\n{RIGHT}", [0]),
    ("answer before the tags", "countdown", 1, f"{RIGHT}\n<answer>{WRONG}</answer>", [0]),
    ("answer in a thought", "countdown", 1, f"<think>\n{RIGHT}\n</think>", [0]),
    ("answer in a thought that never ends", "countdown", 1, f"{WRONG}\n<think>\n{RIGHT}", [0]),
    ("answer in a thought of the prompt", "countdown", 1, f"{RIGHT}\n</think>\n{WRONG}", [0]),
    ("list of expressions, the right one first", "countdown", 1, f"1. {RIGHT}\n2. {WRONG}", [0]),
    ("hedging on one line", "countdown", 1, f"{RIGHT} or {WRONG}", [0]),
    ("claims of which one is true", "countdown", 1, f"{RIGHT} = 53\n{WRONG} = 53", [0]),
    ("what cannot be computed at the end", "countdown", 1, f"{RIGHT}\n5 / (3 - 3) + 10", [0]),
    ("brackets that do not fit at the end", "countdown", 1, f"{RIGHT}\n(3 + 5 + 10", [0]),
    ("box with a false claim", "countdown", 1, rf"\boxed{{{WRONG} = 53}}: {RIGHT}", [0]),
    ("claims in a set", "countdown", 2, f"{WRONG} = 53\n{NEAR} = 53\n{RIGHT} = 53", [0, 0]),
    ("marks in tags, then more", "countdown", 1, f"<answer>`{RIGHT}`\n`{WRONG}`</answer>", [0]),
    ("two in marks in tags", "countdown", 1, f"<answer>${RIGHT}$ ${WRONG}$</answer>", [0]),
    ("marks in the tags of a set", "countdown", 2, f"<answer_1>`{WRONG}`: `{RIGHT}` = 1</answer_1>", [0, 0]),
    ("two boxes on one line", "countdown", 1, rf"\boxed{{{RIGHT}}} \boxed{{{WRONG}}}", [0]),
    ("two boxes", "gsm8k", 1, r"\boxed{14} or \boxed{15}", [0]),
    ("box, then another mark", "gsm8k", 1, "\\boxed{14}\n#### 15", [0]),
    ("mark, then another box", "gsm8k", 1, "#### 14\n\\boxed{15}", [0]),
    ("two sentences", "gsm8k", 1, "The answer is 14. The answer is 15.", [0]),
    ("labels after labels", "countdown", 2, f"Answer 1: {WRONG}\nAnswer 2: {NEAR}\nAnswer 1: {RIGHT}", [0, 0]),
    (
        "labels beside tags",
        "countdown",
        2,
        f"Answer 1: {RIGHT}\nAnswer 2: {RIGHT}\n<answer_1>{WRONG}</answer_1>",
        [0, 0],
    ),
    ("a list of numbers", "gsm8k", 1, "It may be any of these:\n13, 14, 15, 16", [0]),
    ("both in one sentence", "gsm8k", 1, "The answer is 14 or 15.", [0]),
    ("a heading that looks like a mark", "gsm8k", 1, "#### 14\n#### 15 is right", [0]),
    ("mark in a thought", "gsm8k", 1, "<think>#### 14</think>I do not know.", [0]),
    ("four answers for three", "countdown", 3, write([WRONG, WRONG, NEAR, RIGHT]), [0, 0, 0]),
    ("a number twice", "countdown", 2, f"<answer_1>{WRONG}</answer_1><answer_1>{RIGHT}</answer_1>", [0, 0]),
    ("answers beside tags", "countdown", 2, f"<answer_1>{WRONG}</answer_1>\n{RIGHT}", [0, 0]),
    ("one text in two answers", "countdown", 2, f"<answer_1><answer_2>{RIGHT}</answer_2></answer_1>", [0, 1]),
    ("quoted tags", "countdown", 2, f"I use <answer_1> and <answer_2>.\n{RIGHT}", [0, 0]),
    ("numbers without end", "countdown", 2, "".join(f"<answer_{i}>{RIGHT}</answer_{i}>" for i in (3, 4, 5)), [0, 0]),
    ("lines beyond m", "countdown", 2, f"{WRONG}\n{NEAR}\n{RIGHT}", [0, 0]),
    ("unclosed in the middle", "countdown", 2, f"<answer_1>{RIGHT}<answer_2>{WRONG}</answer_2>", [0, 0]),
    ("closed by another number", "countdown", 2, f"<answer_1>{RIGHT}</answer_2><answer_2>{WRONG}</answer_2>", [0, 0]),
    ("tags of another form first", "countdown", 2, f"### Answer 1\n{RIGHT}\n<answer_1>{WRONG}</answer_1>", [0, 0]),
    (
        "closed twice",
        "countdown",
        2,
        f"<answer_1>{WRONG}</answer>{RIGHT}</answer_1><answer_2>{WRONG}</answer>{RIGHT}</answer>",
        [0, 0],
    ),
    ("numbered answers to a request for one", "countdown", 1, write([WRONG, RIGHT]), [0]),
    ("an empty tag after two", "countdown", 1, f"{RIGHT}\n{WRONG}\n<answer>", [0]),
    ("fence in the reasoning", "code", 1, f"First idea:\n{DEF}\nBetter:\n{BAD}", [0]),
    ("fence in a thought", "code", 1, f"<think>\n{DEF}\n</think>\n{BAD}", [0]),
    ("fence after the tags", "code", 1, f"<answer>{BAD}</answer>\n{DEF}", [0]),
    ("closed fence, then one without end", "code", 1, f"{BAD}\n```python\ndef f(): return 1", [0]),
    ("fences beyond m", "code", 2, f"{BAD}\n{BAD}\n{DEF}", [0, 0]),
    ("usage fence with another definition", "code", 1, f"{BAD}\n```\ndef f(): return 1\n```", [0]),
    ("two lists of names", "eureqa", 1, "GOLD\nOr:\nA: x\nB: x\nC: x\nD: x\nE: x", [0]),
    ("numbers in a box and after it", "gsm8k", 1, r"\boxed{15} that is 14", [0]),
    ("box in a box", "gsm8k", 1, r"\boxed{15 \boxed{14} 15}", [0]),
    ("boxes in a box", "gsm8k", 1, r"\boxed{\boxed{15}\boxed{14}}", [0]),
    ("digits of another script", "gsm8k", 1, "#### \u0661\u0664", [0]),
    ("a list of code in place of answers", "code", 1, f"{BAD}\n[{DEF!r}]", [0]),
    ("two answers in one form", "musique", 1, "<support>1</support><answer>x</answer>GOLD", [0]),
]


@pytest.mark.parametrize(
    ("name", "answers", "completion", "right"), [each[1:] for each in ATTEMPTS], ids=[a[0] for a in ATTEMPTS]
)
def test_lenient_reading_gains_nothing(name, answers, completion, right):
    if name == "code":
        from vpo.tasks.code.answers import extract_program

        parsed = TASKS["code"].parse(completion, answers)
        assert ["return 1" in (extract_program(each or "", "f") or "") for each in parsed] == list(map(bool, right))
        return
    task, problem = PROBLEMS[name]
    completion = completion.replace("GOLD", task.gold(problem))
    parsed = task.parse(completion, answers)
    solved = [answer is not None and task.solved(task.score(problem, answer)) for answer in parsed]
    assert solved == list(map(bool, right))
