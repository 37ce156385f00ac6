"""Rows of BFCL are scored as BFCL's own checker judges them."""

import importlib.util
from itertools import combinations
from pathlib import Path
from random import Random

import pytest

from tests.tasks.test_shared_data import need
from tests.tasks.tool_answers import call, calls
from vpo.tasks.toolrl import ToolrlTask
from vpo.tasks.toolrl.bfcl import _share, accepts, example, match
from vpo.tasks.toolrl.data import from_bfcl
from vpo.tasks.toolrl.problem import Argument
from vpo.util.row_files import read_rows

TASK = ToolrlTask()


def argument(choices, kind, items=None):
    return Argument(choices, kind, items)


# Verdicts of ast_checker, bfcl-eval 2026.3.23.
@pytest.mark.parametrize(
    ("value", "of", "expected"),
    [
        ("New York, NY", argument(["New York NY"], "string"), True),
        ("new-york_ny", argument(["New York NY"], "string"), True),
        ("2024/04/01", argument(["2024-04-01"], "string"), True),
        ("it's", argument(['it"s'], "string"), True),
        ("New York!", argument(["New York"], "string"), False),
        ("New\tYork", argument(["New York"], "string"), False),
        ("York New", argument(["New York"], "string"), False),
        ("", argument(["", "kg"], "string"), True),
        ("./", argument(["", "kg"], "string"), True),
        (2, argument(["2"], "string"), False),
        (2, argument([2], "string"), True),  # the listed type in place of the declared one
        ("2", argument([2], "string"), False),
        (None, argument(["", None], "string"), True),
        (".", argument(["", None], "string"), False),  # exactly, where the types differ
        (5, argument([5], "integer"), True),
        (5.0, argument([5], "integer"), False),
        (True, argument([1], "integer"), False),
        ("5", argument([5], "integer"), False),
        ("", argument(["", 5], "integer"), False),
        ("five", argument(["five"], "integer"), True),
        ("Five", argument(["five"], "integer"), False),  # the name of a variable
        (5, argument([5.0], "float"), True),
        (5.0, argument([5], "float"), True),
        (True, argument([1.0], "float"), False),
        (10**400, argument([1.0], "float"), False),
        (True, argument([True], "boolean"), True),
        (1, argument([True], "boolean"), False),
        ("true", argument([True], "boolean"), False),
        ("x", argument(["X"], "any"), True),
        (["a", "B-b"], argument([["A", "bb"]], "array", "string"), True),
        (["b", "a"], argument([["a", "b"]], "array", "string"), False),  # lists are ordered
        (["b", "a"], argument([["a", "b"], ["b", "a"]], "array", "string"), True),
        ([1, 2], argument([[1, 2]], "array", "integer"), True),
        ([1.0, 2.0], argument([[1, 2]], "array", "integer"), False),
        ([True, 2], argument([[1, 2]], "array", "integer"), False),
        ([1, 2.5], argument([[1.0, 2.5]], "array", "float"), False),  # no integers among floats
        ([1.0, 2.5], argument([[1, 2.5]], "array", "float"), True),
        ([1, 2], argument([[1, 2]], "array", "float"), True),  # but where the listed ones are
        ([], argument(["", ["a"]], "array", "string"), True),
        ([], argument([["a"]], "array", "string"), False),
        ([[1, 2], [3]], argument([[[1, 2], [3]]], "array", "array"), True),
        ([["A"]], argument([[["a"]]], "array", "array"), False),  # texts further inside are compared exactly
        ([40.5, 2.0], argument([[40.5, 2.0]], "tuple", "float"), True),
        ("a", argument([["a"]], "array", "string"), False),
        ({"city": "rome!"}, argument([{"city": ["Rome"]}], "dict"), False),
        ({"city": "ROME"}, argument([{"city": ["Rome", "Roma"]}], "dict"), True),
        ({"city": "Rome", "zip": 1}, argument([{"city": ["Rome"]}], "dict"), False),
        ({}, argument([{"city": ["Rome"]}], "dict"), False),
        ({}, argument([{"city": ["", "Rome"]}], "dict"), True),
        ({"n": 1.0}, argument([{"n": [1]}], "dict"), True),
        ({"list": ["a"]}, argument([{"list": [["a"]]}], "dict"), True),
        ({"list": ["A"]}, argument([{"list": [["a"]]}], "dict"), False),
        ({"n": 2}, argument([{"n": [1]}, {"n": [2]}], "dict"), True),
        ([{"x": "A"}, {"x": 2}], argument([[{"x": ["a"]}, {"x": [2]}]], "array", "dict"), True),
        ([{"x": 2}, {"x": "A"}], argument([[{"x": ["a"]}, {"x": [2]}]], "array", "dict"), False),
        ([{"x": "A"}], argument([[{"x": ["a"]}, {"x": [2]}]], "array", "dict"), False),
        (["x"], argument([[{"x": ["a"]}]], "array", "dict"), False),
    ],
)
def test_values_are_accepted_as_bfcl_does(value, of, expected):
    assert accepts(value, of) is expected
    assert (match(value, of) == 1) is expected


@pytest.mark.parametrize(
    ("value", "of", "expected"),
    [
        ("York", argument(["New York City"], "string"), 1 / 2),  # words: 1 of 1, 1 of 3
        ("York, New", argument(["New York"], "string"), 1 / 2),  # of two words one is in order
        ("a b", argument(["c d", "a c"], "string"), 1 / 2),  # the nearest right value
        ([1, 2, 3], argument([[1, 3]], "array", "integer"), 4 / 5),
        ([3, 1], argument([[1, 3]], "array", "integer"), 1 / 2),
        (["A", "x"], argument([["a", "b"]], "array", "string"), 1 / 2),
        ([1.0], argument([[1]], "array", "integer"), 0),
        ({"a": 1}, argument([{"a": [2]}], "dict"), 0),
        (4, argument([5], "integer"), 0),
        ("x", argument([5], "integer"), 0),
        ("x", argument([], "string"), 0),
    ],
)
def test_values_that_bfcl_rejects_have_a_part_of_the_score(value, of, expected):
    assert match(value, of) == pytest.approx(expected)


def longest_common(one, other):
    """By brute force, over all subsequences of the first."""
    for size in range(len(one), 0, -1):
        for chosen in combinations(one, size):
            rest = iter(other)
            if all(item in rest for item in chosen):
                return size
    return 0


def test_the_part_of_the_score_is_that_of_the_longest_common_subsequence():
    random = Random(0)
    for _ in range(500):
        one, other = (random.choices("abc", k=random.randint(1, 7)) for _ in range(2))
        assert _share(one, other) == pytest.approx(2 * longest_common(one, other) / (len(one) + len(other)))


def test_examples_are_right():
    for of in (
        argument([[1, 2.5]], "array", "float"),
        argument(["", "kg"], "string"),
        argument([""], "string"),
        argument(["", None], "integer"),
        argument([{"a": ["x", "y"], "b": ["", 1]}], "dict"),
        argument([[{"a": ["x"]}]], "array", "dict"),
    ):
        assert accepts(example(of), of)


PROPERTIES = {"city": {"type": "string"}, "days": {"type": "integer"}}


def row(gold, required):
    parameters = {"type": "dict", "properties": PROPERTIES, "required": required}
    return {
        "question": [[{"role": "user", "content": "Weather?"}]],
        "function": [{"name": "weather", "description": "d", "parameters": parameters}],
        "ground_truth": [{"weather": gold}],
    }


def test_a_required_argument_may_not_be_omitted_even_where_bfcl_lists_the_empty_text():
    gold = {"city": ["", "Rome"], "days": ["", 3]}
    problem = from_bfcl(row(gold, ["city"]), "b", "here")
    assert TASK.score(problem, problem.gold) == (1, 1, 1, 1)
    assert TASK.score(problem, calls(call("weather", city="Rome"))) == (1, 1, 1, 1)
    assert TASK.score(problem, calls(call("weather", city=""))) == (1, 1, 1, 1)
    assert TASK.score(problem, calls(call("weather", days=3))) == pytest.approx((1, 1, 0, 1 / 2))
    assert TASK.score(problem, calls(call("weather"))) == (1, 1, 0, 0)


def test_an_optional_argument_that_the_tool_does_not_have_is_unknown():
    problem = from_bfcl(row({"city": ["Rome"], "mood": ["", "good"]}, ["city"]), "b", "here")
    assert TASK.score(problem, problem.gold) == (1, 1, 1, 1)
    assert TASK.score(problem, calls(call("weather", city="Rome", mood="good"))) == pytest.approx((1, 1, 2 / 3, 1))


def test_objects_with_many_choices_are_compared_with_all_of_them():
    choices = {f"key{number}": ["a", "b", "c"] for number in range(6)}  # 729 objects
    bfcl = row({"city": [choices]}, ["city"])
    bfcl["function"][0]["parameters"]["properties"] = {"city": {"type": "dict"}}
    problem = from_bfcl(bfcl, "b", "here")
    assert TASK.score(problem, calls(call("weather", city=dict.fromkeys(choices, "C")))) == (1, 1, 1, 1)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"properties": []}, "here: properties must be dict, not list"),
        ({"required": "city"}, "here: required must be list, not str"),
        ({"properties": {"city": "string"}}, "here: city must be dict, not str"),
        ({"properties": {"city": {"items": "string"}}}, "here: items must be dict, not str"),
    ],
)
def test_bad_schemas_are_named(schema, message):
    bad = row({"city": ["Rome"]}, [])
    bad["function"][0]["parameters"] = schema
    with pytest.raises(ValueError, match=message):
        from_bfcl(bad, "b", "here")


def test_any_value_is_scored():
    random = Random(0)
    values = ["", "a", 1, 1.5, float("inf"), float("nan"), None, True, [], {}, [[]], [{}], {"a": {}}, 10**400, "\ud800"]
    kinds = [None, "string", "integer", "float", "boolean", "array", "tuple", "dict", "any", "HashMap", "unheard of"]
    for _ in range(5000):
        of = argument(random.choices(values, k=random.randint(0, 3)), random.choice(kinds), random.choice(kinds))
        assert 0 <= match(random.choice(values), of) <= 1
        if of.choices:
            example(of)


def test_changed_answers_are_valid_for_bfcl_if_and_only_if_all_scores_are_1(monkeypatch):
    if importlib.util.find_spec("bfcl_eval") is None:
        pytest.skip("the package bfcl-eval is not here")
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    benchmark = importlib.import_module("bfcl")
    rows = [dict(each) for _, each in read_rows(Path(need("bfcl/bfcl_v4_single_turn.jsonl.gz")))]
    counts, exceptions, unlisted = benchmark.compare(rows, 2000, 0, benchmark.load_checker())
    assert unlisted == []
    assert sum(exceptions.values()) < 60
    assert 500 < sum(each.valid for each in counts.values()) < 1500
