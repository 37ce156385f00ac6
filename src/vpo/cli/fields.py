"""Options made from the fields of settings: name, type, default and help are the field's own."""

import argparse
import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from vpo.util.settings import Setting, is_setting, setting_of

Options = argparse.ArgumentParser | argparse._ArgumentGroup


def add_fields(options: Options, settings: type, names: Sequence[str], shown: Mapping[str, str] = {}) -> None:
    """Add an option for each of some fields of a settings dataclass; `shown` replaces defaults in the help.

    An option that is not given leaves nothing in the namespace: the default is in the dataclass.
    """
    types = get_type_hints(settings)
    by_name = {each.name: each for each in dataclasses.fields(settings)}
    for name in names:
        flag, help = f"--{name.replace('_', '-')}", _help(by_name[name], shown.get(name))
        arguments = _type_arguments(types[name], setting_of(by_name[name]))
        options.add_argument(flag, default=argparse.SUPPRESS, help=help, **arguments)


def given_fields(options: argparse.Namespace, settings: type) -> dict[str, Any]:
    """The settings of a dataclass, the fields made by `setting`, that were given as options."""
    names = {each.name for each in dataclasses.fields(settings) if is_setting(each)}
    return {name: value for name, value in vars(options).items() if name in names}


def names(text: str) -> list[str]:
    """Read names with commas between them."""
    return [name.strip() for name in text.split(",") if name.strip()]


def numbers(text: str) -> tuple[float, ...]:
    """Read numbers with commas between them."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be numbers such as 3e-5,1e-4, not {text!r}") from None


def integers(text: str) -> list[int]:
    """Read integers with commas between them."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be integers such as 1,3,10, not {text!r}") from None


READERS: dict[Any, Callable[[str], Any]] = {
    int: int,
    float: float,
    str: str,
    list[str]: names,
    tuple[str, ...]: lambda text: tuple(names(text)),
    tuple[float, ...]: numbers,
}


def _type_arguments(annotation: Any, setting: Setting) -> dict[str, Any]:
    """The arguments of `add_argument` that follow from the type of a field."""
    optional = get_origin(annotation) is UnionType  # such as int | None
    if optional:
        (annotation,) = (each for each in get_args(annotation) if each is not NoneType)
    if annotation is bool:
        return {"action": argparse.BooleanOptionalAction if optional else "store_true"}
    return {"type": READERS[annotation], "metavar": setting.metavar or "|".join(setting.choices) or "N"}


def _help(field: dataclasses.Field[Any], shown: str | None) -> str:
    """The help of a field, with its default."""
    text, shown = setting_of(field).help, shown_default(field) if shown is None else shown
    return (f"{text} (default: {shown})" if shown else text).replace("%", "%%")


def shown_default(field: dataclasses.Field[Any]) -> str:
    """The default of a field as its help shows it."""
    shown = setting_of(field).shown
    return default_text(field.default) if shown is None else shown


def default_text(default: Any) -> str:
    """A default for people; nothing for one that says nothing."""
    if default is None or default is False or default is dataclasses.MISSING or default in ("", ()):
        return ""
    if isinstance(default, tuple):
        return ",".join(map(default_text, default))
    return re.sub(r"e-0(\d)", r"e-\1", f"{default:g}") if isinstance(default, float) else str(default)
