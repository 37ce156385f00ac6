"""Checks values from files and command lines against the type annotations of settings."""

from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

NAMES = {
    int: "an integer",
    float: "a number",
    str: "text",
    bool: "true or false",
    list: "a list of texts",
    dict: "a table",
}
SEVERAL = {str: "a list of texts", float: "a list of numbers"}  # members of a tuple


def matches_type(value: Any, annotation: Any) -> bool:
    """Whether a value fits an annotation. An int is a float too; a bool is neither; dict keys are not checked."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return any(matches_type(value, each) for each in arguments)
    if origin is Literal:
        return value in arguments
    if origin is list:
        return isinstance(value, list) and all(matches_type(each, arguments[0]) for each in value)
    if origin is tuple:  # tuple[X, ...] alone
        return isinstance(value, tuple) and all(matches_type(each, arguments[0]) for each in value)
    if origin is dict:
        return isinstance(value, dict) and all(matches_type(each, arguments[1]) for each in value.values())
    if annotation is Any or not isinstance(annotation, type):
        return True
    if isinstance(value, bool):
        return annotation is bool
    return isinstance(value, int | float) if annotation is float else isinstance(value, annotation)


def type_name(annotation: Any) -> str:
    """What a value of an annotated type is, for messages: "an integer", "text or a table"."""
    members = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    names = [
        SEVERAL.get(get_args(each)[0]) if get_origin(each) is tuple else NAMES.get(get_origin(each) or each)
        for each in members
    ]
    return " or ".join(dict.fromkeys(name for name in names if name)) or "of another type"
