"""The task toolrl: which calls an answer makes, however they are written, and none that it only thought of."""

import json
from random import Random

import pytest

from tests.tasks.tool_answers import BODY, TALK, WEATHER, call, calls, problem_of
from vpo.tasks.toolrl import Call, ToolrlTask
from vpo.tasks.toolrl.calls import parse_calls

TASK = ToolrlTask()
ROME = {"name": "weather", "parameters": {"city": "New York City", "days": 3}}
OTHER_KEY = {"name": "weather", "arguments": ROME["parameters"]}
WRONG = call("weather", city="Oslo", days=9)


@pytest.mark.parametrize(
    "content",
    [
        json.dumps([ROME]),
        json.dumps(ROME, indent=4),
        json.dumps([ROME], indent=1),
        json.dumps(OTHER_KEY),
        json.dumps({**OTHER_KEY, "arguments": json.dumps(ROME["parameters"])}),
        json.dumps([OTHER_KEY], indent=2).replace("\n", "\r\n"),
    ],
)
def test_calls_in_other_forms_whose_meaning_is_clear(content):
    assert TASK.score(WEATHER, calls(content)) == (1, 1, 1, 1)
    assert TASK.score(WEATHER, f"<think>t</think><tool_call>{content}</tool_call>") == (1, 1, 1, 1)
    assert TASK.normal_form(calls(content)) == TASK.normal_form(WEATHER.gold)


def test_several_calls_in_other_forms():
    problem = problem_of(call("a", x=1), call("b", y=2), call("c"))
    one, two, three = ({"name": "a", "parameters": {"x": 1}}, {"name": "b", "arguments": {"y": 2}}, {"name": "c"})
    dumps = json.dumps
    for content in (
        dumps([one, two, three]),
        dumps([one, two, three], indent=2),
        "\n".join(dumps(each, indent=2) for each in (one, two, three)),
        f"{dumps([one, two])}\n\n{dumps(three, indent=2)}",
        f"{dumps(one)}\n</tool_call>\n<tool_call>\n{dumps([two, three])}",
    ):
        assert TASK.score(problem, calls(content)) == (1, 1, 1, 1), content


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (f"{json.dumps(ROME)}}}", (0, 0, 0, 0)),  # a line that is no JSON
        (f"{json.dumps(ROME)}\n{json.dumps(ROME)[:-1]}", (1, 2 / 3, 1 / 2, 1 / 2)),
        (f"{json.dumps(ROME)[:-1]}\n{json.dumps(ROME)}", (1, 2 / 3, 1 / 2, 1 / 2)),
        (f"{json.dumps(ROME, indent=1)}\n{{broken\n{json.dumps(ROME)}", (1, 1 / 2, 1 / 3, 1 / 3)),
        (json.dumps([ROME, 7]), (1, 2 / 3, 1 / 2, 1 / 2)),  # an item that is no call
        (json.dumps([[ROME]]), (0, 0, 0, 0)),
        (json.dumps([ROME] * 101), (0, 0, 0, 0)),  # more calls than are read
        (json.dumps({**ROME, "arguments": {"city": "Oslo"}}), (1, 1, 1, 1)),  # parameters come first
        (json.dumps({**OTHER_KEY, "arguments": "[" * 9999}), (1, 1, 0, 0)),
        (json.dumps({**OTHER_KEY, "arguments": '{"city": ' + "[" * 60 + "]" * 60 + "}"}), (0, 0, 0, 0)),
    ],
)
def test_calls_that_are_broken_in_part(content, expected):
    assert TASK.score(WEATHER, calls(content)) == pytest.approx(expected)


@pytest.mark.parametrize(
    "content",
    ["```json\nCALL\n```", "```\r\nCALL\r\n  ```", "CALL,", "CALL, \n", "```json\nCALL,\n```\n", "x\nCALL,\n"],
)
def test_fences_and_a_trailing_comma_are_skipped(content):
    content = content.replace("CALL", json.dumps(ROME))
    names = [call.name for call in parse_calls(content)]
    assert names == ([None, "weather"] if content.startswith("x") else ["weather"])


def names_slowly(content):
    """The names of the calls in a block: values of whole lines, and single lines from the first broken one on."""
    lines = [line for line in content.strip().split("\n") if line.strip()]
    values, begin = [], 0
    while begin < len(lines):
        ends = range(begin + 1, len(lines) + 1)
        read = next(((end, value[0]) for end in ends if (value := decoded("\n".join(lines[begin:end])))), None)
        if read is None:
            values += [value[0] if (value := decoded(line)) else None for line in lines[begin:]]
            break
        begin = read[0]
        values.append(read[1])
    items = [item for value in values for item in (value if isinstance(value, list) else [value])]
    return [item.get("name") if isinstance(item, dict) else None for item in items]


def decoded(text):
    try:
        bare = text.rstrip()
        return (json.loads(bare[:-1] if bare.endswith("},") else text),)
    except ValueError:
        return None


def test_the_parser_of_calls_agrees_with_the_rules_in_words():
    random = Random(0)
    one = {"name": "f", "parameters": {"x": [1, {"y": "z\n"}]}}
    pieces = [json.dumps(one), json.dumps(one, indent=1), json.dumps([one, {"name": "g"}]), json.dumps([one], indent=2)]
    pieces += ["\n", "\n", " ", "{", "}", "[]", "x", "7", ",", '{"name":\n"h"}', "\r\n", "[\n"]
    for _ in range(3000):
        content = "".join(random.choice(pieces) + random.choice(["", "\n"]) for _ in range(random.randint(0, 7)))
        assert [each.name for each in parse_calls(content)] == names_slowly(content), content


def test_no_calls_in_an_array_are_no_calls():
    assert TASK.score(TALK, calls("[]") + "<response>Hello.</response>") == (1, 1, 1, 1)


@pytest.mark.parametrize(
    "answer",
    [
        f"<think>maybe <tool_call>{WRONG}</tool_call></think>{BODY}",
        f"Okay. <think>maybe <tool_call>{WRONG}</tool_call></think>{BODY}",
        f"<think>a</think> Hm. <think>maybe <tool_call>{WRONG}</tool_call></think>{BODY}",
        f"<think></think><think>now</think>{BODY}",
        f"<think>a</think>{BODY}<think>or <tool_call>{WRONG}</tool_call></think>",
        f"<think>a</think>{BODY}<think>or <tool_call>{WRONG}</tool_call>",  # a thought that is not closed
        f"<think>a</think>I use <tool_call>. <think>or <tool_call>{WRONG}</tool_call></think>{BODY}",
        f"maybe <tool_call>{WRONG}</tool_call></think>{BODY}",
    ],
)
def test_a_call_drafted_in_any_thought_is_no_call(answer):
    assert TASK.score(WEATHER, answer) == (1, 1, 1, 1)
    assert TASK.score(WEATHER, TASK.parse(answer, 1)[0]) == (1, 1, 1, 1)


def test_tags_in_the_text_of_a_call_are_text():
    for text in ("</think>", "<think>", "a <think> b </think> c", "<response>x</response>"):
        problem = problem_of(call("write", text=text))
        assert problem.calls == (Call("write", {"text": text}),)
        assert TASK.score(problem, problem.gold) == (1, 1, 1, 1)
        single = problem.gold.partition("</think>")[2]
        assert TASK.score(problem, single) == (0, 1, 1, 1)
