"""Programs whose outputs are a burden to whoever reads them, each with an honest one of the same shape."""

from dataclasses import dataclass
from typing import Any

# Numbers of one hash, in sets of one hash: inside the program their own hashes are used, which differ.
ALIKE = """
class Number(int):
    __hash__ = object.__hash__
class Group(frozenset):
    __hash__ = object.__hash__
def numbers(first):
    return Group(Number((2**61 - 1) * (first + index)) for index in range(30))
def group(last):
    return Group([numbers(100 * index + 1) for index in range(29)] + [numbers(last)])
"""
HONEST_SETS = "def answer(n):\n    return {frozenset((i, j) for j in range(i)) for i in range(n)}\n"
DEEP = "def answer(_):\n    value = []\n    for _ in range({depth}): value = [value]\n    return [value] * {count}\n"
# Whatever the channel is, it gets a flood.
FLOOD = """
import os
def answer(_):
    for number in range(3, 64):
        rest = {data}
        try:
            while rest:
                rest = rest[os.write(number, rest):]
        except OSError:
            pass
"""


@dataclass(frozen=True)
class Burden:
    """A program whose outputs take much time or memory to read.

    Attributes:
        name: of the test.
        source: the program.
        honest: a program of the same shape whose output is as expected.
        expected: of the honest program.
        input: of both.
        entry: their function; None where they read standard input.
        tests: how many, all with this input.
        forged: whether it writes to the channel itself, which a judge without one cannot show.
    """

    name: str
    source: str
    honest: str
    expected: Any
    input: Any = (1,)
    entry: str | None = "answer"
    tests: int = 1
    forged: bool = False


def _prints(name: str, data: str, honest: str, expected: str, **more: Any) -> Burden:
    source = f"import os\ndata = {data}\nwhile data: data = data[os.write(1, data):]\n"
    return Burden(name, source, honest, expected, "", entry=None, **more)


def _floods(name: str, data: str) -> Burden:
    honest = "def answer(n):\n    return 'x' * 100_000\n"
    return Burden(name, FLOOD.format(data=data), honest, "x" * 100_000, forged=True)


def _returns(name: str, value: str, honest: str, expected: Any, **more: Any) -> Burden:
    return Burden(
        name, f"def answer(_):\n    return {value}\n", f"def answer(n):\n    return {honest}\n", expected, **more
    )


BURDENS = [
    Burden(
        "sets_that_hash_alike",
        ALIKE + "def answer(_):\n    return {group(10**6 + 100 * index) for index in range(100)}\n",
        HONEST_SETS,
        {frozenset((i, j) for j in range(i)) for i in range(60)},
        (60,),
    ),
    _prints("line_ends", "b'\\n' * 15_900_000", "print('\\n'.join('5' * 100_000))", "5\n" * 100_000),
    _prints("words", "b'1 2\\n' * 3_900_000", "print('1.50 2\\n' * 20_000)", "1.5 2\n" * 20_000),
    _prints("carriage_returns", "b'\\r\\n' * 7_900_000", "print('5\\r\\n' * 20_000)", "5\n" * 20_000),
    _prints("bad_bytes", "b'\\xff' * 15_900_000", "print('é' * 100_000)", "é" * 100_000),
    _prints(
        "wide_character_printed",
        "b'x' * 15_900_000 + '\\U0001f600'.encode()",
        "print('x' * 100_000 + '\\U0001f600')",
        "x" * 100_000 + "\U0001f600",
        tests=4,
    ),
    _returns(
        "wide_character",
        "'x' * 15_900_000 + '\\U0001f600'",
        "'x' * 100_000 + '\\U0001f600'",
        "x" * 100_000 + "\U0001f600",
        tests=4,
    ),
    Burden(
        "lists_nested_deep",
        DEEP.format(depth=190, count=6000),
        DEEP.format(depth=60, count=10),
        [eval("[" * 61 + "]" * 61)] * 10,
    ),
    _returns("empty_lists", "[[]] * 900_000", "[[]] * 10_000", [[]] * 10_000),
    _returns("numbers", "list(range(2_000_000))", "list(range(100_000))", list(range(100_000))),
    _returns(
        "texts", "[str(i) for i in range(1_000_000)]", "[str(i) for i in range(9999)]", [str(i) for i in range(9999)]
    ),
    _floods("flood_of_digits", "b'1' * 15_900_000 + b'\\n'"),
    _floods("flood_of_brackets", "b'[' * 15_900_000 + b'\\n'"),
    _floods("flood_of_lists", "b'[0,\"returned\",[' + b'[],' * 5_000_000 + b'[]]]\\n'"),
    _floods("flood_of_lines", "b'\\n' * 15_900_000"),
    _floods("flood_without_a_line", "bytes(15_900_000)"),
    _floods("flood_of_lengths", "b'\\xff' * 15_900_000"),
]
