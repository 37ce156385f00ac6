"""Values as JSON and back: what a program returns leaves its sandbox as text, by which nothing can be called.

Lists, texts, booleans, None and most numbers are what they are in JSON; of everything else one tag tells the kind.
"""

from collections import Counter
from typing import Any

DEEPEST = 200  # nesting beyond this is refused, on both sides
ALIKE = 100  # how many members of a set may have one hash
LARGEST = 1 << 4096  # whole numbers beyond this are written in base 16, which takes no time that grows as its square


class UnpackError(Exception):
    """A text that is not one of ours."""


def pack(value: Any, depth: int = 0) -> Any:
    """Return a value as what JSON can hold. Subclasses are taken for what they are derived from, others by name."""
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
    """Something that has no text of its own, and equals nothing."""

    def __init__(self, kind: str) -> None:
        """Take the name of its class."""
        self.kind = kind

    def __repr__(self) -> str:
        """Return the name of its class."""
        return f"<{self.kind}>"


def unpack(value: Any, depth: int = 0) -> Any:
    """Return a value from what JSON held, refusing what `pack` never writes."""
    if depth > DEEPEST:
        raise UnpackError("the value is nested too deep")
    if value is None or isinstance(value, bool | str | int | float):
        return value
    if isinstance(value, list):
        return [unpack(each, depth + 1) for each in value]
    if not (isinstance(value, dict) and len(value) == 1):
        raise UnpackError("the value has no known kind")
    ((tag, content),) = value.items()
    try:
        return _unpacked(tag, content, depth + 1)
    except (TypeError, ValueError, OverflowError) as error:
        raise UnpackError(str(error)) from None


def _unpacked(tag: str, content: Any, depth: int) -> Any:
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
    raise UnpackError(f"the value has no known kind, but {tag[:20]!r}")


def _spread(members: list[Any]) -> list[Any]:
    """Refuse members chosen to have one hash, as multiples of 2⁶¹ − 1 have: a set of them takes the square of time."""
    if len(members) > ALIKE and max(Counter(map(hash, members)).values()) > ALIKE:
        raise UnpackError("too many members have the same hash")
    return members
