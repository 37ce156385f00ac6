"""Random programs, hostile and honest, for `sandbox_fuzz.py`: what they return or print, and what they do before."""

import ast
from dataclasses import dataclass
from random import Random
from typing import Any

from hostile_tables import BITS, CHARACTERS, CLASSES, DEPTHS, FRAMES, PARTS, PRINTING, SIZES, TRICKS, VALUES, WRITE

LARGE = 0.25  # share of the values that may be large


@dataclass(frozen=True)
class Fuzzed:
    """A random program.

    Attributes:
        source: Python, or not.
        entry: its function; None where it reads standard input.
        input: of its tests.
        expected: what it must return or print; a hostile one does not know it.
        honest: whether it does.
    """

    source: str
    entry: str | None
    input: Any
    expected: Any
    honest: bool


def fuzzed(seed: str) -> Fuzzed:
    """The program of a seed: one of eight is honest."""
    random = Random(seed)
    function = random.random() < 0.6
    if random.random() < 1 / 8:
        return _honest(random, function)
    expected = plain_value(random, 2, f"secret {random.getrandbits(64)}")
    source = _source(random, function)
    if function:
        return Fuzzed(source, "answer", (1,), expected, honest=False)
    return Fuzzed(source, None, "1\n", f"{expected!r:.500}\n{random.getrandbits(64)}", honest=False)


def _honest(random: Random, function: bool) -> Fuzzed:
    """A program that holds the expected output, of any type and any character."""
    if function:
        expected = plain_value(random, 3, random.choice(("x", "é\0", "\U0001f600", "a\nb")))
        source = f"inf = float('inf')\ndef answer(_):\n    return {expected!r}\n"
        return Fuzzed(source, "answer", (1,), expected, honest=True)
    words = (random.choice((random.getrandbits(40), random.random(), "é", "")) for _ in range(random.choice(SIZES[:6])))
    text = "\n".join(map(str, words))
    return Fuzzed(f"print({text!r})", None, "1\n", text, honest=True)


def plain_value(random: Random, depth: int, text: str) -> Any:
    """A random value that can be compared, with a text in it."""
    if depth == 0:
        numbers = (random.getrandbits(80), random.uniform(-9, 9), -0.0, float("inf"), 1j, 1 << 5000)
        return random.choice((*numbers, True, None, b"\0\xff", text, text))
    parts = [plain_value(random, depth - 1, text) for _ in range(random.randrange(4))]
    hashable = [part for part in parts if not isinstance(part, list | dict | set | tuple)]
    kind = random.randrange(5)
    if kind == 0:
        return [text, *parts]
    if kind == 1:
        return (text, *parts)
    return {text: parts} if kind == 2 else {text, *hashable} if kind == 3 else text


def _source(random: Random, function: bool) -> str:
    if random.random() < 0.08:
        return _not_python(random)
    lines = [CLASSES]
    tricks = [random.choice(TRICKS) for _ in range(random.choice((0, 0, 0, 1, 1, 2)))]
    if random.random() < 0.15:
        tricks.append(WRITE.format(frame=random.choice(FRAMES), size=random.choice(SIZES)))
    body = "\n".join(tricks) + "\n"
    if random.random() < 0.3:
        body = f"try:\n{_indented(body + 'pass')}\nexcept BaseException: pass\n"
    if function:
        early = random.random() < 0.5  # at import, or in the test
        lines += [body] if early else []
        lines.append("def answer(_):\n" + _indented("" if early else body) + f"\n    return {_value(random, 0)}\n")
        return "\n".join(lines)
    return "\n".join([*lines, body, _printing(random)])


def _indented(text: str) -> str:
    return "\n".join("    " + line for line in text.split("\n"))


def _value(random: Random, depth: int) -> str:
    """An expression of a value."""
    return _filled(random, random.choice(VALUES.strip().split("\n")), depth)


def _printing(random: Random) -> str:
    return _filled(random, random.choice(PRINTING.strip().split("\n")), 1)


def _filled(random: Random, text: str, depth: int) -> str:
    """A line of a table with its words filled in. Inner values are smaller, since they are repeated."""
    inner = _value(random, depth + 1) if depth < 3 and "INNER" in text else "1"
    words = {
        "SIZE": SIZES[: 11 - 2 * depth] if random.random() < LARGE else SIZES[:6],
        "BITS": BITS,
        "DEPTH": DEPTHS,
        "CHAR": CHARACTERS.split(),
        "INNER": [inner],
    }
    for word, choices in words.items():
        text = text.replace(word, str(random.choice(choices)))
    return text


def _not_python(random: Random) -> str:
    length = random.choice((10, 1000, 20_000, 95_000))
    part = ast.literal_eval(f'"{random.choice(PARTS.split())}"')
    before = random.choice(("", "import ", "x = f'", "x = {", "def answer(_):\n    return ", "x = 0x", "class A("))
    return before + part * (length // len(part)) + random.choice(("", "a", "'", "}", "1", ")", "\n"))
