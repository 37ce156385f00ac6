"""The task toolrl: scores of answers by hand."""

import json
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tasks.tool_answers import TALK, WEATHER, call, calls, problem_of
from vpo.tasks.toolrl import Call, ToolrlTask
from vpo.tasks.toolrl.matching import match
from vpo.tasks.toolrl.problem import Argument

TASK = ToolrlTask()


def nested(depth):
    value = 1
    for _ in range(depth):
        value = [value]
    return value


NESTED = {40: nested(40)}
NESTED_CALL = call("weather", city="New York City", days=nested(60))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (calls(call("weather", city="New York City", days=3)), (1, 1, 1, 1)),
        (calls(call("weather", days=3.0, city="new york city")), (1, 1, 1, 1)),  # order and case mean nothing
        (calls(call("weather", city="New York City")), (1, 1, 2 / 3, 1 / 2)),  # keys: 1 of 1, 1 of 2
        (calls(call("weather", city="New York City", days=3, unit="C")), (1, 1, 4 / 5, 1)),  # keys: 2 of 3, 2 of 2
        (calls(call("weather", city="York", days=3)), (1, 1, 1, (1 / 2 + 1) / 2)),  # words: 1 of 1, 1 of 3
        (calls(call("weather", city="New York City", days="3")), (1, 1, 1, 1 / 2)),  # "3" is not 3
        (calls(call("weather", city="New York City", days=4)), (1, 1, 1, 1 / 2)),
        (calls(call("play", song="x")), (1, 0, 0, 0)),
        # Names: 1 of 2, 1 of 1. The unmatched call scores 0: means of 1 and 0.
        (calls(call("weather", city="New York City", days=3), call("play", song="x")), (1, 2 / 3, 1 / 2, 1 / 2)),
        (calls(call("weather", city="New York City", days=3), "{broken"), (1, 2 / 3, 1 / 2, 1 / 2)),
        (calls(call("weather", city="New York City", days=3), think=""), (0, 1, 1, 1)),  # no thoughts
        ("<tool_call>" + call("weather", city="New York City", days=3) + "</tool_call>", (0, 1, 1, 1)),
        ("<think>t</think><response>It will rain.</response>", (0, 0, 0, 0)),  # calls were due
        ("<think>t</think>", (0, 0, 0, 0)),
        ("<think>t</think><tool_call></tool_call>", (0, 0, 0, 0)),  # an empty answer in a valid form
        (
            "<think>t</think><tool_call>" + call("weather", city="New York City", days=3),
            (0, 1, 1, 1),
        ),  # complete but for its end tag
        ("<think>t</think><tool_call>" + call("weather", city="New York City", days=3)[:-1], (0, 0, 0, 0)),  # cut off
        ("<think>t</think>A <tool_call> is not needed.", (0, 0, 0, 0)),  # the tag is mentioned
        (f"<think><tool_call>{call('weather', city='New York City', days=3)}</tool_call></think>", (0, 0, 0, 0)),
        (calls('["weather"]'), (0, 0, 0, 0)),  # nothing that can be read
        (calls("x"), (0, 0, 0, 0)),
        (calls("x") + "<response>It rains.</response>", (0, 0, 0, 0)),
        (calls('{"name": "weather", "parameters": [1]}'), (1, 1, 0, 0)),
        (calls('{"name": "weather"}'), (1, 1, 0, 0)),
        (calls("[" * 50_000), (0, 0, 0, 0)),
        (calls(call("weather", city="New York City", days=3, more=NESTED[40])), (1, 1, 4 / 5, 1)),
        (calls(call("weather", city="New York City", days=3), NESTED_CALL), (1, 2 / 3, 1 / 2, 1 / 2)),
        (
            "</think>" + calls(call("weather", city="New York City", days=3)),
            (1, 1, 1, 1),
        ),  # an empty thought and another
        (
            calls(call("weather", city="New York City", days=3)).partition("</think>")[2] + "<think>t</think>",
            (0, 1, 1, 1),
        ),
        (calls(call("weather", city="New York City", days=3)).partition("</think>")[2], (0, 1, 1, 1)),
        (calls(*[call("weather", city="New York City", days=3)] * 101), (0, 0, 0, 0)),  # more calls than are read
        (calls("9" * 200_000), (0, 0, 0, 0)),
        ("", (0, 0, 0, 0)),
    ],
)
def test_hand_worked_calls(answer, expected):
    assert TASK.score(WEATHER, answer) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("<think>t</think><response>Hello.</response>", (1, 1, 1, 1)),
        ("<response>Hello.</response>", (0, 1, 1, 1)),
        ("<think>t</think><response> </response>", (0, 0, 0, 0)),  # an empty answer in a valid form
        ("<think>t</think>", (0, 0, 0, 0)),
        (calls(call("play", song="x")), (0, 0, 0, 0)),
        (calls(call("play", song="x")) + "<response>Hello.</response>", (0, 0, 0, 0)),
    ],
)
def test_hand_worked_responses(answer, expected):
    assert TASK.score(TALK, answer) == expected


def test_a_single_answer_is_what_was_written():
    for problem in (WEATHER, TALK):
        assert TASK.parse(f" {problem.gold}\n", 1) == [problem.gold]


def test_a_brief_gold_answer_says_the_same_in_fewer_words():
    brief = ToolrlTask(brief=True)
    for problem, words in ((WEATHER, "tools"), (TALK, "no tool")):
        long = replace(problem, gold=problem.gold.replace("</think>", " and so on" * 99 + "</think>"))
        gold = brief.gold(long)
        assert gold.startswith(f"<think> The request calls for {words}. </think>")
        assert len(gold) < 200 < len(TASK.gold(long))
        assert TASK.normal_form(gold) == TASK.normal_form(long.gold)
        assert TASK.score(problem, gold) == TASK.score(problem, long.gold) == (1, 1, 1, 1)


def test_calls_are_aligned_by_name_then_by_keys():
    problem = problem_of(call("play", song="a", loud=True), call("play", artist="b"))
    # The call with `artist` belongs to the second gold call whatever its position.
    assert TASK.score(problem, calls(call("play", artist="b"), call("play", song="a", loud=True))) == (1, 1, 1, 1)
    # Key overlap decides, not the value: {song} with {song, loud} has F1 2/3, with {artist} 0.
    vector = TASK.score(problem, calls(call("play", song="a"), call("play", artist="z")))
    assert vector == pytest.approx((1, 1, (2 / 3 + 1) / 2, (1 / 2 + 0) / 2))


def test_calls_of_the_same_keys_are_aligned_by_their_values():
    problem = problem_of(call("play", song="a"), call("play", song="b"))
    assert TASK.score(problem, calls(call("play", song="b"), call("play", song="a"))) == (1, 1, 1, 1)
    # The same call twice counts once.
    assert TASK.score(problem, calls(call("play", song="a"), call("play", song="a"))) == (1, 1, 1, 1 / 2)


@pytest.mark.parametrize("depth", [45, 49, 60, 100, 300, 500, 900, 1500, 100_000])
def test_deep_json_neither_raises_nor_depends_on_the_stack(depth):
    line = '{"name": "weather", "parameters": {"city": "x", "days": ' + "[" * depth + "1" + "]" * depth + "}}"
    answer = calls(line)
    expected = (1, 1, 1, 0) if depth < 48 else (0, 0, 0, 0)
    assert TASK.score(WEATHER, answer) == expected
    hash(TASK.normal_form(answer))


@given(
    st.lists(st.tuples(st.sampled_from("fg"), st.sampled_from(["a", "b", "a b", "c d"])), max_size=4),
    st.lists(st.tuples(st.sampled_from("fg"), st.sampled_from(["a", "b", "a b", "c d"])), max_size=4),
    st.randoms(use_true_random=False),
)
def test_the_order_of_calls_changes_nothing(gold, predicted, random):
    problem = problem_of(*(call(name, song=song) for name, song in gold))
    lines = [call(name, song=song) for name, song in predicted] or [call("h")]
    shuffled = random.sample(lines, len(lines))
    assert TASK.score(problem, calls(*shuffled)) == pytest.approx(TASK.score(problem, calls(*lines)))
    assert TASK.normal_form(calls(*shuffled)) == TASK.normal_form(calls(*lines))


def test_no_order_changes_a_score_by_a_bit():
    """Python orders a set of texts anew in every process, so sums must not depend on an order."""
    random = Random(0)
    gold = [call("play", song=f"{number} x y z"[: random.randint(3, 7)], **{f"key{number}": 1}) for number in range(7)]
    predicted = [call("play", song=f"{number} x y", **{f"key{number}": number % 2}) for number in range(7)]
    scores = {TASK.score(problem_of(*random.sample(gold, 7)), calls(*random.sample(predicted, 7))) for _ in range(50)}
    assert len(scores) == 1


def test_calls_are_paired_for_the_best_of_all():
    problem = problem_of(call("play", song="a"), call("play", song="b"))
    # "a b d" fits either by half; "a c d" only the first: the best pairing gives each 1/2.
    for lines in ([call("play", song="a b d"), call("play", song="a c d")],):
        for order in (lines, lines[::-1]):
            assert TASK.score(problem, calls(*order)) == pytest.approx((1, 1, 1, 1 / 2))


def test_separators_inside_texts_do_not_split_calls():
    text = "one\u2028two\x85three\x0bfour"
    problem = problem_of(json.dumps({"name": "play", "parameters": {"song": text}}, ensure_ascii=False))
    assert problem.calls == (Call("play", {"song": text}),)
    assert TASK.score(problem, problem.gold) == (1, 1, 1, 1)


def test_thoughts_that_the_prompt_opened_count_in_a_single_answer():
    body = calls(call("weather", city="New York City", days=3)).partition("</think>")[2]
    (answer,) = TASK.parse(f"I reason.</think>{body}", 1)
    assert TASK.score(WEATHER, answer) == (1, 1, 1, 1)
    # A call in the thoughts does not count.
    (answer,) = TASK.parse(f"maybe {body} </think><response>Sorry.</response>", 1)
    assert TASK.score(WEATHER, answer) == (0, 0, 0, 0)


def test_calling_every_tool_scores_little():
    tools = [call(f"tool_{number}") for number in range(19)]
    vector = TASK.score(WEATHER, calls(call("weather", city="New York City", days=3), *tools))
    assert vector == pytest.approx((1, 2 / 21, 1 / 20, 1 / 20))


@pytest.mark.parametrize(
    ("value", "gold", "expected"),
    [
        (True, True, 1),
        ("true", True, 0),  # a boolean as a string
        (True, "True", 0),
        (1, True, 0),
        (True, 1, 0),
        (5, 5.0, 1),
        (5.1, 5, 0),
        ("5", 5, 0),
        (None, None, 1),
        (0, None, 0),
        ("", "", 1),
        ("x", "", 0),
        ("New York", "new york", 1),
        ("a b c", "b c d", 2 / 3),
        ([1, 2], [2, 1], 1),  # a list is a multiset
        ([1, 1], [1, 2], 1 / 2),
        ([1], [1, 2, 3], 1 / 2),  # precision 1, recall 1/3
        ([], [], 1),
        ("1", [1], 0),
        ([1.0, {"a": 2}], [{"a": 2.0}, 1], 1),
        ({"a": 1, "b": [2]}, {"b": [2], "a": 1}, 1),
        ({"a": 1}, {"a": 2}, 0),
        (float("nan"), 1, 0),
    ],
)
def test_values(value, gold, expected):
    assert match(value, gold) == pytest.approx(expected)


def test_several_right_values():
    gold = Call("f", {"x": 1}, {"x": Argument([1, 2, "two"])})
    problem = replace(WEATHER, calls=(gold,))
    for value, expected in ((1, 1), (2, 1), ("two", 1), (3, 0)):
        assert TASK.score(problem, calls(call("f", x=value)))[3] == expected


def test_in_a_set_the_thoughts_belong_to_each_answer():
    body = calls(call("weather", city="New York City", days=3)).partition("</think>")[2]
    completion = f"<think>once</think><answer_1>{body}</answer_1><answer_2><response>x</response></answer_2>"
    first, second, third = TASK.parse(completion, 3)
    assert TASK.score(WEATHER, first) == (1, 1, 1, 1)
    assert second == "<think>once</think>\n<response>x</response>"
    assert third is None
    # Where the prompt opened the thoughts.
    assert TASK.parse(completion.removeprefix("<think>"), 3) == [first, second, third]
    # Without thoughts there are none.
    assert TASK.score(WEATHER, TASK.parse(f"<answer_1>{body}</answer_1>", 3)[0]) == (0, 1, 1, 1)


def test_the_same_calls_in_another_order_are_the_same_answer():
    one, other = call("a", x=1, y=2), call("b")
    assert TASK.normal_form(calls(one, other)) == TASK.normal_form(calls(other, call("a", y=2.0, x=1), think="Hm."))
    assert TASK.normal_form(calls(one)) != TASK.normal_form(calls(other))
    response = "<think>a</think><response>Hi.</response>"
    assert TASK.normal_form(response) == TASK.normal_form("<response> Hi. </response>")


def test_a_call_whose_end_was_cut_off_does_not_count_in_training():
    body = calls(call("weather", city="New York City", days=3))
    assert TASK.read(body, 1).unclosed is None
    assert TASK.read(body.partition("</tool_call>")[0], 1).unclosed == 0
