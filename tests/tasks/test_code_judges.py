"""Verdicts are those of the data sets' own judges: LiveCodeBench's and EvalPlus's, each restated here from its rule."""

import json
import math
from random import Random

import numpy as np
import pytest

from tests.tasks import code_rows
from tests.tasks.watched import only, task_on
from vpo.sandbox.comparing import agrees
from vpo.sandbox.verdicts import Case
from vpo.tasks.code.evalplus import tolerance

# One expression for each module that LiveCodeBench imports; the last ones show which of two equal names remains.
EXPRESSIONS = [
    "len(ascii_lowercase)",
    "bool(fullmatch('a+', 'aa'))",
    "timedelta(days=1).days",
    "Counter('aab')['a']",
    "heappop([1, 2])",
    "bisect_left([1, 2], 2)",
    "deepcopy([1])[0]",
    "gcd(4, 6)",
    "randint(1, 1)",
    "mean([1, 3])",
    "next(accumulate([5]))",
    "reduce(mul, [2, 3])",
    "itemgetter(0)([7])",
    "StringIO('x').read()",
    "maxsize > 0",
    "loads('[1]')[0]",
    "Optional[int] is not None",
    "pow(2, 10, 1000)",
    "copy.copy(3)",
    "datetime.date(2025, 1, 1).year",
    "math.gcd(4, 6) + operator.add(1, 2) + len(string.digits) + len(json.dumps([]))",
]


def test_programs_have_all_that_livecodebench_imports(tmp_path):
    tests = [{"input": "1\n", "output": "ok", "testtype": "stdin"}]
    row = code_rows.livecodebench_row(public_test_cases=json.dumps(tests), private_test_cases="[]")
    task = task_on(tmp_path, [row])
    source = "\n".join([*EXPRESSIONS, "stdin.readline()", "print('ok')"])
    assert task.score(only(task), source) == (1,)

    row = code_rows.livecodebench_row(functional=True)
    task = task_on(tmp_path, [row], "functional.jsonl")
    body = "\n".join(f"        {each}" for each in EXPRESSIONS)
    answer = f"class Solution:\n    def work(self, items: List[int], k):\n{body}\n        return [1, 2]"
    assert task.score(only(task), answer) == (1, 1)


def test_programs_may_recurse_as_deep_as_in_livecodebench(tmp_path):
    tests = [{"input": "40000", "output": "40000", "testtype": "stdin"}]
    row = code_rows.livecodebench_row(public_test_cases=json.dumps(tests), private_test_cases="[]")
    task = task_on(tmp_path, [row])
    source = "def depth(n):\n    return 0 if n == 0 else 1 + depth(n - 1)\nprint(depth(int(input())))"
    assert task.score(only(task), source) == (1,)
    assert task.score(only(task), source.replace("int(input())", "10 * int(input()) // 10 * 2")) == (0,)


@pytest.mark.parametrize(
    ("actual", "expected", "same"),
    [
        ((1, 2), [1, 2], True),  # a tuple stands for a list
        ([(1, 2)], [[1, 2]], False),  # but not inside one
        (0.1 + 0.2, 0.3, False),  # no tolerance
        (2.0, 2, True),
        (True, 1, True),
        ("2", 2, False),
        (None, None, True),
    ],
)
def test_values_are_compared_as_in_livecodebench(actual, expected, same):
    assert agrees(Case((), expected, compare="livecodebench"), actual) is same


@pytest.mark.parametrize(
    ("actual", "expected", "same"),
    [
        ("1 2 \n3\n\n", "1 2\n3", True),
        ("\n 1 2", "1 2", True),
        ("011", "11", True),  # as decimal numbers
        ("1.50 1e1", "1.5 10", True),
        ("0.30000000000000004", "0.3", False),
        ("1  2", "1 2", True),
        ("a  b", "a b", False),
        ("1\n2", "1 2", False),
        ("1\n\n2", "1\n2", False),
        ("NaN", "nan", False),
        ("sNaN", "1", False),
        ("", "", True),
        ("", "0", False),
    ],
)
def test_texts_are_compared_as_in_livecodebench(actual, expected, same):
    assert agrees(Case("", expected, compare="livecodebench_text"), actual) is same


def evalplus_accepts(out, exp, atol):
    """EvalPlus's rule, with numpy's own allclose, except that arrays of different shapes are not broadcast."""
    exact = out == exp
    numbers = exp if isinstance(exp, list | tuple) and exp else [exp]
    if atol == 0 and all(isinstance(each, float) for each in numbers):
        atol = 1e-6
    if exact or atol == 0:
        return bool(exact)
    try:
        return (
            type(out) is type(exp)
            and (not isinstance(exp, list | tuple) or len(out) == len(exp))
            and np.shape(out) == np.shape(exp)
            and bool(np.allclose(out, exp, rtol=1e-07, atol=atol))
        )
    except (TypeError, ValueError):
        return False


def random_value(random, depth=2):
    if depth and random.random() < 0.5:
        members = [random_value(random, depth - 1) for _ in range(random.randrange(3))]
        return random.choice([list, tuple])(members)
    return random.choice([0, 1, 2, True, 1.0, 1.5, -2.5, 1e9, math.inf, math.nan, "1", "ab", None, 1j])


def nearby(value, random):
    """The value itself, or one that differs a little: in a number, in a type, in its length."""
    if isinstance(value, list | tuple):
        members = [nearby(each, random) for each in value]
        if random.random() < 0.1:
            members.append(1.0)
        return random.choice([type(value), type(value), list, tuple])(members)
    if isinstance(value, float) and random.random() < 0.6:
        return value + random.choice([0.0, 1e-9, 5e-7, 2e-6, 50.0])
    if type(value) is int and random.random() < 0.3:
        return random.choice([float(value), value + 1, bool(value)])
    return value


def test_values_are_compared_as_in_evalplus():
    random = Random(0)
    accepted = 0
    for _ in range(20_000):
        expected = random_value(random)
        actual = nearby(expected, random)
        atol = random.choice([0, 0, 1e-6, 1e-4])
        case = Case((), expected, tolerance(expected, atol or None), "evalplus")
        assert agrees(case, actual) == evalplus_accepts(actual, expected, atol), (actual, expected, atol)
        accepted += agrees(case, actual)
    assert 4_000 < accepted < 16_000  # both verdicts are common


def test_a_tuple_is_no_list_in_evalplus_and_in_asserts(tmp_path):
    row = code_rows.mbppplus_row(
        canonical_solution="\ndef add(a, b):\n    return [a, b]\n", base_input=[[1, 2]], plus_input=[[3, 4]]
    )
    task = task_on(tmp_path, [row])
    assert task.score(only(task), "def add(a, b):\n    return [a, b]") == (1, 1)
    assert task.score(only(task), "def add(a, b):\n    return (a, b)") == (0, 0)
    task = task_on(tmp_path, [code_rows.mbpp_row()], "mbpp.jsonl")
    assert task.score(only(task, "train"), "def order(items):\n    return sorted(items)") == (1, 1, 1)
    assert task.score(only(task, "train"), "def order(items):\n    return tuple(sorted(items))") == (0, 0, 0)


def digits(body):
    return f"def digit_distance_nums(a, b):\n    {body}"


@pytest.mark.parametrize(
    ("number", "solution", "inputs", "other", "wrong"),
    [
        (
            164,
            "def are_equivalent(a, b):\n    return a == b",
            [[1, 2]],
            "def are_equivalent(a, b):\n    return None",
            "",
        ),
        (
            295,
            "def sum_div(n):\n    return sum(d for d in range(1, n) if n % d == 0)",
            [[12]],
            "def sum_div(n):\n    return 0",
            "def sum_div(n):\n    return 1",
        ),
        (
            558,
            digits("return sum(map(int, str(abs(a - b))))"),
            [[12345, 9]],
            digits("return sum(abs(int(x) - int(y)) for x, y in zip(str(a).zfill(9), str(b).zfill(9)))"),
            digits("return 0"),
        ),
        (
            581,
            "def surface_Area(b, s):\n    return 2 * b * s + b ** 2",
            [[3, 4]],
            "def surface_Area(b, s):\n    return round(b * b + 2 * b * ((b / 2) ** 2 + s * s) ** 0.5)",
            "def surface_Area(b, s):\n    return 2 * b * s",
        ),
    ],
)
def test_other_readings_that_evalplus_accepts(tmp_path, number, solution, inputs, other, wrong):
    entry = solution.split("(")[0].removeprefix("def ")
    row = code_rows.mbppplus_row(
        task_id=f"Mbpp/{number}", entry_point=entry, canonical_solution=solution, base_input=inputs, plus_input=[]
    )
    task = task_on(tmp_path, [row])
    assert task.score(only(task), solution) == (1,)
    assert task.score(only(task), other) == (1,)
    raising = f"def {entry}(*args):\n    raise ValueError"
    assert task.score(only(task), wrong or raising) == (0,)
