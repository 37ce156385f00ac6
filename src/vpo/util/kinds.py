"""Whether a value from a file fits the type of a setting, and how to name that type in a message."""

from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin


def fits(value: Any, kind: Any) -> bool:
    """Return whether a value is of a kind; a whole number is a float too, and true is neither."""
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return any(fits(value, each) for each in get_args(kind))
    if origin is Literal:
        return value in get_args(kind)
    if origin is list:
        return isinstance(value, list) and all(fits(each, get_args(kind)[0]) for each in value)
    if origin is dict:
        return isinstance(value, dict) and all(fits(each, get_args(kind)[1]) for each in value.values())
    if kind is Any or not isinstance(kind, type):
        return True
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, int | float) if kind is float else isinstance(value, kind)


def kind_name(kind: Any) -> str:
    """Return what a value of a kind is, in words."""
    kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    names = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
    origins = {list: "a list of texts", dict: "a table"}
    words = [names.get(each) or origins.get(get_origin(each) or each) for each in kinds]
    return " or ".join(dict.fromkeys(word for word in words if word)) or "of another kind"
