"""Values of arguments as the checker of the Berkeley Function-Calling Leaderboard compares them.

`accepts` is its rule (``ast_checker`` of the package bfcl-eval, version 2026.3.23) for one value, with its turns:

- Text is compared without spaces, case and ``, . / - _ * ^``; a ``'`` is a ``"``.
- A list is ordered; its texts are compared as text, everything else in it exactly.
- An object has all keys of the gold one that may not be omitted, and no others; its texts are compared as text.
- A value must be of the type that the tool declares: 5.0 is no integer, though 5 is a float. Where the right values are
  of another type, the name of a variable or null, values of that type are compared exactly.

`match` gives the values that it rejects part of the score, below 1.
"""

import json
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from vpo.tasks.toolrl.problem import Argument

# The types that BFCL declares for tools in Python, Java and JavaScript, as types of JSON values.
KINDS: Mapping[str, type] = {
    **dict.fromkeys(("string", "String", "any", "char"), str),
    **dict.fromkeys(("integer", "byte", "short", "long", "Bigint"), int),
    **dict.fromkeys(("float", "double"), float),
    **dict.fromkeys(("boolean", "Boolean"), bool),
    **dict.fromkeys(("array", "tuple", "Array", "ArrayList", "Set", "Queue", "Stack"), list),
    **dict.fromkeys(("dict", "HashMap", "Hashtable"), dict),
}
TYPED = ("array", "tuple")  # whose items have a declared type
_DROPPED = " ,./-_*^"
_STANDARD = str.maketrans("'", '"', _DROPPED)
_WORDS = str.maketrans({**dict.fromkeys(_DROPPED, " "), "'": '"'})


def match(value: Any, argument: Argument) -> float:
    """How well a value matches an argument's right values, 0 to 1; 1 if and only if BFCL accepts it.

    A text or list that is not accepted has the F1 of the longest common subsequence, of words or of items, with the
    nearest right value. Any other value is right or wrong.
    """
    if accepts(value, argument):
        return 1.0
    parts = _parts(value)
    shares = [_share(parts, _parts(right)) for right in argument.choices if type(right) is type(value)]
    return max((share for share in shares if share < 1), default=0.0)  # 1: of another type than the declared one


def accepts(value: Any, argument: Argument) -> bool:
    """Whether a value is right by BFCL's checker."""
    choices = argument.choices
    types = [type(right) for right in choices if right != ""]
    listed = types[0] if types else None
    expected = KINDS.get(argument.kind or "", type(value) if type(value) in types else listed)
    if expected is float and type(value) is int:
        value = _as_float(value)
    if type(value) is not expected:
        return listed is type(value) and value in choices
    items = KINDS.get(argument.items or "")
    if items and argument.kind in TYPED and not any(_typed(value, right, items) for right in choices):
        return False
    if listed is not None and listed is not expected:
        return value in choices
    if isinstance(value, dict):
        return any(_accepts_object(value, right) for right in choices)
    if isinstance(value, list):
        return any(_accepts_list(value, right, items) for right in choices)
    if isinstance(value, str):
        return _standard(value) in [_standard(right) for right in choices]
    return value in choices


def example(argument: Argument) -> Any:
    """A value that is right: the first that BFCL lists and accepts, or lists at all."""
    plain = [_plain(right, argument) for right in argument.choices]
    written = [value for value in plain if value != ""] + plain
    return next((value for value in written if accepts(value, argument)), written[0])


def _typed(value: Any, right: Any, items: type) -> bool:
    """Whether the items of a list are of their declared type, or of that of a right list."""
    if not isinstance(right, list):
        return True
    listed = next((type(item) for item in right if item != ""), None)
    return all(type(item) in (items, listed) for item in value)


def _accepts_list(value: Sequence[Any], right: Any, items: type | None) -> bool:
    if not isinstance(right, list | str) or len(value) != len(right):  # "" is an empty list too
        return False
    if items is dict:
        return all(_accepts_object(item, gold) for item, gold in zip(value, right, strict=True))
    return [_standard(item) for item in value] == [_standard(item) for item in right]


def _accepts_object(value: Any, right: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(right, dict):
        return False
    choices = {key: listed if isinstance(listed, list) else [listed] for key, listed in right.items()}
    return all(key in value or not _needed(listed) for key, listed in choices.items()) and all(
        key in choices and _standard(item) in [_standard(each) for each in choices[key]] for key, item in value.items()
    )


def _needed(choices: Sequence[Any]) -> bool:
    """Whether a key with these right values must be there. One without any must not: BFCL accepts no answer then."""
    return bool(choices) and "" not in choices


def _standard(value: Any) -> Any:
    """A text as BFCL compares it; any other value as it is."""
    return value.translate(_STANDARD).lower() if isinstance(value, str) else value


def _as_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("nan")  # beyond all floats, equal to none


def _plain(right: Any, argument: Argument) -> Any:
    """A right value as an answer writes it: each key of an object that may not be omitted, with its first choice."""
    if isinstance(right, dict):
        choices = {key: listed if isinstance(listed, list) else [listed] for key, listed in right.items()}
        return {key: listed[0] for key, listed in choices.items() if _needed(listed)}
    if isinstance(right, list):
        items = [_plain(item, argument) if isinstance(item, dict) else item for item in right]
        if KINDS.get(argument.items or "") is float:  # BFCL takes no integers among floats
            return [float(item) if type(item) is int else item for item in items]
        return items
    return right


def _parts(value: Any) -> list[Hashable]:
    """What a value is compared by where it is not right: the words of a text, the items of a list."""
    if isinstance(value, str):
        return [word for word in value.translate(_WORDS).lower().split(" ") if word]
    if isinstance(value, list):
        return [json.dumps(_standard(item), sort_keys=True) for item in value]
    return []


def _share(parts: Sequence[Hashable], gold: Sequence[Hashable]) -> float:
    """The F1 of the longest common subsequence, as ROUGE-L has it; 0 where one is empty."""
    if not parts or not gold:
        return 0.0
    # By bits: bit j of `row` is 0 where gold item j lengthens the subsequence so far.
    bits: dict[Hashable, int] = {}
    for j, item in enumerate(gold):
        bits[item] = bits.get(item, 0) | 1 << j
    full = row = (1 << len(gold)) - 1
    for item in parts:
        common = row & bits.get(item, 0)
        row = (row + common | row - common) & full
    return 2 * (len(gold) - row.bit_count()) / (len(parts) + len(gold))
