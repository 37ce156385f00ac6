"""A completion that its token budget cut off: an answer without its closing tag counts for no reward."""

import numpy as np
import pytest

from vpo.engines.caller import Caller
from vpo.engines.reward import reward_function
from vpo.engines.rows import rows_of
from vpo.tasks.forms import FORMS
from vpo.tasks.reading import read_sections

OPEN = "<answer_1>a</answer_1>\n<answer_2>bb"
WHOLE = "<answer_1>a</answer_1>\n<answer_2>bb</answer_2>"
SINGLE = "<answer>a"


def length(answer):
    return [len(answer) / 2]


def read(texts, tokens, method="vpo", answers=2, longest=10):
    reward = reward_function(score=length, objectives=["length"], method=method, answers=answers, group=2)
    ids = [[0] * count for count in tokens]
    caller = Caller(max_completion_length=longest)
    return reward.score(rows_of(["p"] * len(texts), {}), texts, caller.truncated(ids), caller).batch


def test_an_unclosed_answer_does_not_count_where_the_budget_cut_it_off():
    batch = read([OPEN, OPEN], [10, 9])
    assert [list(answers) for answers in batch.parsed] == [["a", None], ["a", "bb"]]
    np.testing.assert_array_equal(batch.vectors[0], [[0.5], [0]])
    np.testing.assert_array_equal(batch.vectors[1], [[0.5], [1]])


def test_a_closed_answer_counts_wherever_the_completion_ends():
    batch = read([WHOLE, WHOLE], [10, 9])
    assert [list(answers) for answers in batch.parsed] == [["a", "bb"], ["a", "bb"]]


def test_all_count_where_the_budget_is_not_known():
    assert list(read([OPEN, OPEN], [10, 10], longest=None).parsed[0]) == ["a", "bb"]


def test_a_single_answer_in_tags():
    batch = read([SINGLE, SINGLE], [10, 9], method="grpo", answers=1)
    assert [list(answers) for answers in batch.parsed] == [[None], ["a"]]


def test_a_single_answer_without_tags_counts_as_it_is():
    assert list(read(["a", "a"], [10, 9], method="grpo", answers=1).parsed[0]) == ["a"]


@pytest.mark.parametrize(
    ("name", "text", "answers"),
    [
        ("json", '["a", "b', ["a", None]),
        ("json", '["a", "b"', ["a", "b"]),
        ("tags", "<answer_1>a</answer_1><answer_2>b</ans", ["a", None]),
        ("headings", "### Answer 1\na\n### Answer 2\nb", ["a", "b"]),  # has no closing
    ],
)
def test_what_is_left_of_a_cut_off_completion(name, text, answers):
    reading = read_sections(FORMS[name].sections(text, 2), len(text), 2)
    assert reading.answers == ["a", "b"]
    assert reading.without_unclosed().answers == answers
    assert reading.without_unclosed().parts == reading.parts
