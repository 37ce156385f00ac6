"""Right answers to rows of BFCL, and the ways to change them that `bfcl.py` compares."""

from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any

Row = dict[str, Any]
Calls = list[tuple[str, dict[str, Any]]]


def right_calls(row: Row, random: Random) -> Calls:
    """Calls with a random right value for each argument, and some of the optional ones."""
    calls = []
    for call in row["ground_truth"]:
        ((name, gold),) = call.items()
        arguments = {}
        for key, choices in gold.items():
            written = [choice for choice in choices if choice != ""]
            if written and ("" not in choices or random.random() < 0.5):
                arguments[key] = right_value(random.choice(written), random)
        calls.append((name, arguments))
    return calls


def right_value(choice: Any, random: Random) -> Any:
    """A right value as an answer writes it: for each key of an object one of its choices."""
    if isinstance(choice, list):
        return [right_value(item, random) if isinstance(item, dict) else item for item in choice]
    if not isinstance(choice, dict):
        return choice
    value = {}
    for key, choices in choice.items():
        written = [each for each in choices if each != ""] if isinstance(choices, list) else [choices]
        if written and ("" not in choices or random.random() < 0.5):
            value[key] = deepcopy(random.choice(written))
    return value


# Changes of one value. None: the value cannot be changed in this way.


def text(change: Callable[[str, Random], str]) -> Callable[[Any, Random], Any]:
    """A change of a text, of one text in a list, or of one in an object."""

    def changed(value: Any, random: Random) -> Any:
        if isinstance(value, str) and value:
            return change(value, random)
        places = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
        places = [place for place in places if isinstance(value[place], str | list | dict) and value[place]]
        if not places:
            return None
        place = random.choice(places)
        inner = changed(value[place], random)
        if inner is None:
            return None
        copied = deepcopy(value)
        copied[place] = inner
        return copied

    return changed


def number(change: Callable[[float], Any]) -> Callable[[Any, Random], Any]:
    """A change of a number, of one number in a list, or of one in an object."""

    def changed(value: Any, random: Random) -> Any:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return change(value)
        places = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
        random.shuffle(places)
        for place in places:
            inner = changed(value[place], random)
            if inner is not None:
                copied = deepcopy(value)
                copied[place] = inner
                return copied
        return None

    return changed


def a_list(change: Callable[[list[Any], Random], Any]) -> Callable[[Any, Random], Any]:
    return lambda value, random: change(deepcopy(value), random) if isinstance(value, list) else None


def an_object(change: Callable[[dict[str, Any], Random], Any]) -> Callable[[Any, Random], Any]:
    def changed(value: Any, random: Random) -> Any:
        if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            index = random.randrange(len(value))
            return [changed(item, random) if i == index else item for i, item in enumerate(value)]
        return change(deepcopy(value), random) if isinstance(value, dict) and value else None

    return changed


def without(value: dict[str, Any], random: Random) -> dict[str, Any]:
    key = random.choice(list(value))
    return {each: item for each, item in value.items() if each != key}


def moved_words(value: str, random: Random) -> str:
    words = value.split(" ")
    return " ".join(random.sample(words, len(words)))


def inserted(characters: str) -> Callable[[str, Random], str]:
    def change(value: str, random: Random) -> str:
        index = random.randint(0, len(value))
        return value[:index] + random.choice(characters) + value[index:]

    return change


OTHERS = [0, 1, -1, 1.0, 0.5, True, False, "", " .", "a", [], [1], [1.0], ["a"], [[]], [{}], {}, {"a": 1}]

VALUES: dict[str, Callable[[Any, Random], Any]] = {
    "text in capitals": text(lambda value, _: value.upper()),
    "text in small letters": text(lambda value, _: value.lower()),
    "a space more": text(inserted(" ")),
    "spaces dropped": text(lambda value, _: value.replace(" ", "")),
    "a tab or line end more": text(inserted("\t\n\r\u00a0")),
    "dropped punctuation more": text(inserted(",./-_*^")),
    "punctuation dropped": text(lambda value, _: value.translate(str.maketrans("", "", ",./-_*^"))),
    "other punctuation more": text(inserted("!?;:()\"'`#@")),
    "other quotes": text(lambda value, _: value.replace("'", '"') if "'" in value else f'"{value}"'),
    "words moved": text(moved_words),
    "a word dropped": text(lambda value, random: " ".join(value.split(" ")[1:])),
    "a word more": text(lambda value, _: value + " please"),
    "a letter dropped": text(lambda value, random: value[1:]),
    "dates with slashes": text(lambda value, _: value.replace("-", "/")),
    "dates turned": text(lambda value, _: "-".join(reversed(value.split("-")))),
    "an empty text": lambda value, _: "",
    "text as its number": text(lambda value, _: int(value) if value.isdecimal() else value),
    "integer as float": number(float),
    "float as integer": number(lambda value: int(value)),
    "number as text": number(str),
    "number negated": number(lambda value: -value),
    "number a little off": number(lambda value: value + 0.5),
    "boolean as text": lambda value, _: str(value).lower() if isinstance(value, bool) else None,
    "boolean as number": lambda value, _: int(value) if isinstance(value, bool) else None,
    "number as boolean": number(bool),
    "null": lambda value, _: "null",
    "some other value": lambda _, random: deepcopy(random.choice(OTHERS)),
    "in a list": lambda value, _: [value],
    "in an object": lambda value, _: {"value": value},
    "list in another order": a_list(lambda value, random: random.sample(value, len(value))),
    "list turned": a_list(lambda value, _: value[::-1]),
    "list with an item less": a_list(lambda value, _: value[1:]),
    "list with an item twice": a_list(lambda value, _: [*value, *value[:1]]),
    "empty list": a_list(lambda value, _: []),
    "list as its first item": a_list(lambda value, _: value[0] if value else None),
    "list as text": a_list(lambda value, _: ", ".join(map(str, value))),
    "object with a key less": an_object(without),
    "object with a key more": an_object(lambda value, _: {**value, "extra": 1}),
    "object in another order": an_object(lambda value, _: dict(reversed(value.items()))),
    "empty object": an_object(lambda value, _: {}),
}


# Changes of calls


def argument_dropped(calls: Calls, row: Row, random: Random) -> Calls | None:
    index = random.randrange(len(calls))
    name, arguments = calls[index]
    return None if not arguments else [*calls[:index], (name, without(arguments, random)), *calls[index + 1 :]]


def argument_added(value: Callable[[Row, str, Random], Any]) -> Callable[[Calls, Row, Random], Calls | None]:
    """Add an argument that the tool declares and the answer lacks."""

    def change(calls: Calls, row: Row, random: Random) -> Calls | None:
        index = random.randrange(len(calls))
        name, arguments = calls[index]
        tool = next(tool for tool in row["function"] if tool["name"] == name)
        keys = [key for key in tool["parameters"]["properties"] if key not in arguments]
        if not keys:
            return None
        key = random.choice(keys)
        added = value(tool["parameters"]["properties"][key], key, random)
        return None if added is None else [*calls[:index], (name, {**arguments, key: added}), *calls[index + 1 :]]

    return change


def a_default(declared: Row, key: str, random: Random) -> Any:
    return declared.get("default")


def any_value(declared: Row, key: str, random: Random) -> Any:
    kinds = {"string": "text", "integer": 1, "float": 1.5, "boolean": True, "array": [], "dict": {}}
    return kinds.get(declared.get("type", ""), "text")


def a_call_changed(change: Callable[[str, dict[str, Any]], tuple[str, dict[str, Any]]]) -> Any:
    def changed(calls: Calls, row: Row, random: Random) -> Calls:
        index = random.randrange(len(calls))
        return [*calls[:index], change(*calls[index]), *calls[index + 1 :]]

    return changed


def another_tool(calls: Calls, row: Row, random: Random) -> Calls | None:
    others = [tool["name"] for tool in row["function"] if tool["name"] != calls[0][0]]
    return [(random.choice(others), calls[0][1]), *calls[1:]] if others else None


CALLS: dict[str, Callable[[Calls, Row, Random], Calls | None]] = {
    "unchanged": lambda calls, row, random: calls,
    "an argument dropped": argument_dropped,
    "a default added": argument_added(a_default),
    "an optional argument added": argument_added(any_value),
    "an unknown argument added": a_call_changed(lambda name, arguments: (name, {**arguments, "unknown": 1})),
    "arguments in another order": a_call_changed(lambda name, arguments: (name, dict(reversed(arguments.items())))),
    "another tool": another_tool,
    "an unknown tool": a_call_changed(lambda name, arguments: (name + "_x", arguments)),
    "the tool's name with underscores": a_call_changed(lambda name, arguments: (name.replace(".", "_"), arguments)),
    "the tool's name in capitals": a_call_changed(lambda name, arguments: (name.upper(), arguments)),
    "a call less": lambda calls, row, random: calls[1:],
    "a call twice": lambda calls, row, random: [*calls, calls[0]],
    "a call in place of another": lambda calls, row, random: [*calls[:-1], calls[0]],
    "calls in another order": lambda calls, row, random: random.sample(calls, len(calls)),
    "calls turned": lambda calls, row, random: calls[::-1] if len(calls) > 1 else None,
}


def one_value(change: Callable[[Any, Random], Any]) -> Callable[[Calls, Row, Random], Calls | None]:
    """The change of one value of one argument."""

    def changed(calls: Calls, row: Row, random: Random) -> Calls | None:
        places = [(index, key) for index, (_, arguments) in enumerate(calls) for key in arguments]
        for index, key in random.sample(places, len(places)):
            value = change(calls[index][1][key], random)
            if value is not None:
                value = None if value == "null" else value
                return [(name, {**old, key: value} if i == index else old) for i, (name, old) in enumerate(calls)]
        return None

    return changed


CHANGES = {**CALLS, **{name: one_value(change) for name, change in VALUES.items()}}
