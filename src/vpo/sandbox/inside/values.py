"""Values as JSON and back: what a program returns leaves its sandbox as text, which can call nothing.

Lists, texts, booleans, None and most numbers are themselves in JSON; everything else is an object with one key, a tag
for its type.
"""

from collections import Counter
from typing import Any

DEEPEST = 200  # nesting beyond this is refused, on both sides
ALIKE = 100  # the most members of a set with the same hash
LARGEST = 1 << 4096  # larger integers are written in base 16, which takes linear time


class UnpackError(Exception):
    """A text that `pack` never writes."""


def pack(value: Any, depth: int = 0) -> Any:
    """A value in terms of JSON. A subclass is packed as its base type, any other object as the name of its class."""
    if depth > DEEPEST:
        raise RecursionError("the value is nested too deep")
    kind = type(value)
    if value is None or kind in (bool, str, float):
        return value
    if kind is int:
        return value if -LARGEST < value < LARGEST else {"i": hex(value)}
    if isinstance(value, list):
        return [pack(each, depth + 1) for each in list.__iter__(value)]
    if isinstance(value, tuple):
        return {"t": [pack(each, depth + 1) for each in tuple.__iter__(value)]}
    if isinstance(value, dict):
        return {"d": [[pack(key, depth + 1), pack(each, depth + 1)] for key, each in dict.items(value)]}
    if isinstance(value, set):
        return {"s": [pack(each, depth + 1) for each in set.__iter__(value)]}
    if isinstance(value, frozenset):
        return {"f": [pack(each, depth + 1) for each in frozenset.__iter__(value)]}
    if isinstance(value, bytes | bytearray):
        return {"b": bytes(value).hex()}
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return pack(int.__int__(value), depth)
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, complex):
        return {"c": [value.real, value.imag]}
    return {"o": str(kind.__name__)[:100]}


class Other:
    """Stands for an object that cannot be packed. It equals nothing."""

    def __init__(self, kind: str) -> None:
        """Keep the name of the object's class."""
        self.kind = kind

    def __repr__(self) -> str:
        """The name of the object's class."""
        return f"<{self.kind}>"


def unpack(value: Any, depth: int = 0) -> Any:
    """The inverse of `pack`. The text may be forged, so what `pack` never writes is refused."""
    if depth > DEEPEST:
        raise UnpackError("the value is nested too deep")
    if value is None or isinstance(value, bool | str | int | float):
        return value
    if isinstance(value, list):
        return [unpack(each, depth + 1) for each in value]
    if not (isinstance(value, dict) and len(value) == 1):
        raise UnpackError("the value has no known tag")
    ((tag, content),) = value.items()
    try:
        return _unpack_tagged(tag, content, depth + 1)
    except (TypeError, ValueError, OverflowError) as error:
        raise UnpackError(str(error)) from None


def _unpack_tagged(tag: str, content: Any, depth: int) -> Any:
    if tag == "t":
        return tuple(unpack(each, depth) for each in content)
    if tag == "s":
        return set(_spread([unpack(each, depth) for each in content]))
    if tag == "f":
        return frozenset(_spread([unpack(each, depth) for each in content]))
    if tag == "d":
        keys = _spread([unpack(key, depth) for key, _ in content])
        return dict(zip(keys, (unpack(each, depth) for _, each in content), strict=True))
    if tag == "i":
        return int(content, 16)
    if tag == "b":
        return bytes.fromhex(content)
    if tag == "c":
        return complex(*content)
    if tag == "o":
        return Other(str(content)[:100])
    raise UnpackError(f"the value has no known tag: {tag[:20]!r}")


def _spread(members: list[Any]) -> list[Any]:
    """Refuse members chosen to have the same hash, such as multiples of 2⁶¹ − 1: a set of them takes quadratic time."""
    if len(members) > ALIKE and max(Counter(map(hash, members)).values()) > ALIKE:
        raise UnpackError("too many members have the same hash")
    return members
