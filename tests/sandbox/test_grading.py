"""How the grader reads outputs: values and texts compared, and forged lines on the channel."""

import contextlib
import json
import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpo.sandbox import Case, Limits, Program, Sandbox, Status
from vpo.sandbox.comparing import agrees
from vpo.sandbox.inside.values import DEEPEST, Other, UnpackError, pack, unpack

nan = math.nan
scalars = (
    st.none() | st.booleans() | st.integers() | st.integers(1 << 4090, 1 << 5000) | st.floats(allow_nan=False)
    | st.text(st.characters()) | st.binary() | st.complex_numbers(allow_nan=False)
)  # fmt: skip
keys = scalars | st.tuples(scalars, scalars) | st.frozensets(scalars, max_size=3)
values = st.recursive(
    scalars | st.sets(keys, max_size=4) | st.frozensets(keys, max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=15,
)


@given(values)
def test_values_come_back_as_they_were(value):
    unpacked = unpack(json.loads(json.dumps(pack(value))))
    assert unpacked == value
    assert type(unpacked) is type(value)
    assert agrees(Case((), value), unpacked)


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | st.text(), lambda inner: st.lists(
    inner) | st.dictionaries(st.sampled_from("tsfdibco?"), inner, max_size=2), max_leaves=10))  # fmt: skip
def test_any_json_is_unpacked_or_refused(content):
    with contextlib.suppress(UnpackError):
        repr(unpack(content))


def test_subclasses_are_unpacked_as_their_base_type_and_other_objects_equal_nothing():
    class Number(int):
        def __eq__(self, other):
            return True

        __hash__ = int.__hash__

    assert type(unpack(pack(Number(3)))) is int
    assert isinstance(unpack(pack(range(3))), Other)  # as it is no list to Python
    assert isinstance(unpack(pack(object())), Other)
    assert unpack(pack(object())) != unpack(pack(object()))
    nested = []
    for _ in range(DEEPEST + 2):
        nested = [nested]
    with pytest.raises(RecursionError):
        pack(nested)
    with pytest.raises(UnpackError):
        unpack(nested)


def test_members_of_one_hash_are_refused_in_linear_time():
    alike = [number * (2**61 - 1) for number in range(1, 30_000)]
    began = time.perf_counter()
    for content in ({"s": alike}, {"f": alike}, {"d": [[key, 0] for key in alike]}):
        with pytest.raises(UnpackError, match="hash"):
            unpack(content)
    assert time.perf_counter() - began < 5.0  # each would take as long
    assert len(unpack({"s": list(range(30_000))})) == 30_000


COMPARED = [
    ("value", [1, (2, 3)], (1, [2, 3]), None, True),
    ("value", [1, 2], [2, 1], None, False),
    ("value", [1], [1, 2], None, False),
    ("value", 1.0, 1, None, True),
    ("value", 1, 1.0, None, True),
    ("value", 1.00000001, 1.0, None, True),
    ("value", 1.01, 1.0, None, False),
    ("value", 1.01, 1.0, 0.1, True),
    ("value", 1e9, 1_000_000_007, None, False),  # a wrong integer is not right as a float
    ("value", complex(1e9), 1_000_000_007, None, False),
    ("value", 5.05, 5, 0.1, True),
    ("value", nan, 1.0, None, False),
    ("value", nan, nan, None, True),
    ("value", math.inf, 1e308, None, False),
    ("value", 1 << 20_000, 1.0, None, False),
    ("value", "1", 1, None, False),
    ("value", {1: [1.0]}, {1: (1.00000001,)}, None, True),
    ("value", {1: 2, 2: 3}, {1: 2}, None, False),
    ("value", {1, 2}, {2, 1}, None, True),
    ("value", {1, 2}, [1, 2], None, False),
    ("value", 1 + 1j, 1 + 1.00000001j, None, True),
    ("value", 5, complex(0, math.inf), None, False),
    ("value", None, 0, None, False),
    ("value", Other("x"), None, None, False),
    ("set", [3, 1, 1, 2], (1, 2, 3), None, True),
    ("set", [3, 1], [1, 2, 3], None, False),
    ("set", [[1, 2], (3,)], {(3,), (1, 2)}, None, True),
    ("set", [1.00000001, 2], [2, 1.0], None, True),
    ("set", list(range(5000)), list(range(4999, -1, -1)), None, True),
    ("set", [Other("x")], [object], None, False),
    ("set", [1e9], {1_000_000_000, 1_000_000_001, 1_000_000_050}, None, False),  # integers are exact, both ways
    ("set", [1_000_000_000, 1_000_000_001], {1e9, 1_000_000_001}, None, True),
    ("set", [[1e9]], [[1_000_000_000], [1_000_000_001]], None, False),
    ("set", [1e9], [1_000_000_000], None, True),
    ("set", 5, [5], None, False),
    ("text", "1  \n2\n\n", "1\n2", None, True),
    ("text", "1 2", "1\n2", None, False),
    ("text", "1.50", "1.5", None, True),
    ("text", "1.51", "1.5", None, False),
    ("text", "1.51", "1.5", 0.1, True),
    ("text", "nan", "5", 0.1, False),
    ("text", "1e9999999", "5", 0.1, False),
    ("text", "1e-9999999", "0", None, False),
    ("text", 5, "5", None, False),
    ("text", "yes", "no", None, False),
    ("text", "11", "0011", None, False),
    ("text", "1_1", "11", None, False),
    ("text", "٣.0", "3.0", None, False),
    ("text", "3.0", "3", None, True),
    ("text", "1e1", "10.0", None, True),
]


@pytest.mark.parametrize(("compare", "actual", "expected", "atol", "same"), COMPARED, ids=range(len(COMPARED)))
def test_comparisons(compare, actual, expected, atol, same):
    assert agrees(Case((), expected, atol, compare), actual) is same


def test_sets_of_very_many_members_are_compared_quickly():
    began = time.perf_counter()
    expected = [float(number) for number in range(2000)]
    assert not agrees(Case((), expected, compare="set"), [1999 + number * 1e-9 for number in range(50_000)])
    assert not agrees(Case((), expected, compare="set"), [1] * 300_000)
    assert time.perf_counter() - began < 5.0  # minutes, if all were compared with all


CHANNEL = """
import os
def send(line):
    for number in range(3, 64):
        try: os.write(number, line.encode() + b"\\n")
        except OSError: pass
    os._exit(1)
"""


@pytest.fixture(scope="module")
def box():
    with Sandbox(limits=Limits(test_seconds=1.0, seconds=3.0, memory_mb=256), unsafe=True) as box:
        yield box


FORGED = [
    ('[0,"returned",{"c":[1%s,0]}]' % ("0" * 400), "forbidden"),
    ('[0,"returned",{"i":"%s"}]' % ("f" * 50_000), "wrong answer"),
    ('[0,"returned",%s]' % ("1" * 5_000), "forbidden"),
    ('[0,"returned",{"s":[[]]}]', "forbidden"),
    ('[0,"returned",{"s":5}]', "forbidden"),
    ('[0,"returned",{"o":"\\ud800"}]', "wrong answer"),
    ('[0,"returned",' + "[" * 5_000 + "]" * 5_000 + "]", "forbidden"),
    ('[0,"exception",' + "[" * 980 + "]" * 980 + "]", "forbidden"),
    ('[0,"exception","\\ud800\\u001b[2J\\n"]', "exception"),
    ('[0,"infrastructure error","x"]', "exception"),
    ('[0,"passed",true]', "forbidden"),
    ('[1,"returned",5]', "forbidden"),
    ("[0,NaN,Infinity]", "forbidden"),
    ("null", "forbidden"),
    ("", "forbidden"),
]


@pytest.mark.parametrize(("line", "reason"), FORGED, ids=range(len(FORGED)))
def test_forged_lines_are_at_most_wrong_answers(box, line, reason):
    program = Program(f"{CHANNEL}\ndef f(x):\n    send({line!r})\n", "f")
    verdict = box.grade(program, [Case((1,), 2)])[0]
    assert (verdict.status, verdict.reason) == (Status.FAILED, reason)
    assert verdict.detail.isprintable()


@pytest.mark.parametrize("ends", ["Infinity", "-5", "1e3", '"4"', "null", "1" * 30, "-1e999", "[]"])
def test_forged_lengths_of_texts_do_not_raise(box, ends):
    source = f"""{CHANNEL}
import sys
frame = sys._getframe()
while "number" not in frame.f_locals:
    frame = frame.f_back
n = frame.f_locals["number"]
send(f'[{{n}},"returned",0]\\n[{{n + 1}},"returned",{ends}]\\n[{{n + 2}},"returned",0]')
"""
    verdicts = box.grade(Program(source), [Case("", "5")] * 8)
    assert {verdict.status for verdict in verdicts} == {Status.FAILED}
