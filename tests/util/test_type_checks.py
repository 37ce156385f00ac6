from typing import Any, Literal

import pytest

from vpo.util.type_checks import matches_type, type_name


@pytest.mark.parametrize(
    ("value", "annotation", "expected"),
    [
        (3, int, True),
        (3, float, True),
        (3.0, int, False),
        (True, int, False),
        (True, float, False),
        (True, bool, True),
        (1, bool, False),
        (None, str | None, True),
        ("a", int | list[str], False),
        (["a"], int | list[str], True),
        (["a", 1], list[str], False),
        ({"a": 1}, dict[str, float], True),
        ({"a": "b"}, dict[str, float], False),
        ("a", Literal["a", "b"], True),
        ("c", Literal["a", "b"], False),
        (object(), Any, True),
    ],
)
def test_values_match_annotations(value, annotation, expected):
    assert matches_type(value, annotation) is expected


def test_types_have_names_for_messages():
    assert type_name(int) == "an integer"
    assert type_name(float | None) == "a number"
    assert type_name(str | dict[str, int]) == "text or a table"
    assert type_name(Literal["a"]) == "of another type"
