"""Splits prose into chains of tokens: runs of numbers, operators and equals signs that belong together."""

import re
from typing import NamedTuple

from vpo.tasks.math.arithmetic import Number, Token, parse_number, percentage

BAD = "?"  # a token that makes its side impossible to parse
# Words that compute something: the numbers beside them are not the whole expression.
_COMPUTING = re.compile(
    r"of|by|half|twice|thrice|double|triple|divided|multiplied"
    r"|squared|cubed|root|dozen|hundred|thousand|million"
)
SPOKEN = {"x": "*", "times": "*", "plus": "+", "minus": "-"}
OPERATORS = {
    **{operator: operator for operator in "+-*/()"},
    **{"−": "-", "–": "-", "×": "*", "⋅": "*", "·": "*", "÷": "/", "[": "(", "]": ")"},
    **{r"\times": "*", r"\cdot": "*", r"\div": "/"},
}
_PIECE = re.compile(
    r"(?P<number>[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]+)?|\.[0-9]+)"
    r"|(?P<word>[^\W\d_]+(?:[/'’-][^\W\d_]+)*)"
    r"|(?P<space>[^\S\n]+|[$€£]|\\[$,;! ]|\.{2,}|…|(?<![0-9)])\*\*|\*\*(?![0-9(]))"
    r"|(?P<line>\n)"
    r"|(?P<within>(?<=[0-9])[.,:](?=[0-9]))"  # 10:30, 1,2345
    r"|(?P<stop>[.,;:?!\"“”|—<>≈≠→]|\\[()\[\]])"
    r"|(?P<equals>=)"
    r"|(?P<percent>\\?%)"
    r"|(?P<operator>\\(?:times|cdot|div)(?![A-Za-z])|\*\*|[-+*/()\[\]−–×⋅·÷])"
    r"|(?P<other>\\[A-Za-z]+|.)",
    re.DOTALL,
)
_OPERAND = re.compile(r"\s{0,3}[$€£]?\s{0,3}[0-9.(]")


class Piece(NamedTuple):
    """A token and its position in the text."""

    start: int
    end: int
    token: Token


def chains(text: str) -> list[list[Piece]]:
    """The chains of a text that have an equals sign."""
    reader = _ChainReader()
    for match in _PIECE.finditer(text):
        reader.take(match)
    reader.end()
    return reader.chains


class _ChainReader:
    """Goes over the pieces of a text once, and collects chains."""

    def __init__(self) -> None:
        self.chains: list[list[Piece]] = []
        self.chain: list[Piece] = []
        self.unit = False  # whether a word, such as a unit, follows the last token
        self.fresh = True  # whether the chain begins a line, where a minus may begin a number

    def take(self, match: re.Match[str]) -> None:
        """Add one match of _PIECE."""
        kind, start, end = match.lastgroup, match.start(), match.end()
        match kind:
            case "number":
                self._number(start, end, parse_number(match.group()))
            case "word":
                self._word(start, end, match.group().lower(), match.string)
            case "line" | "stop":
                self.end(fresh=kind == "line")
            case "equals":
                self._add(start, end, "=")
            case "percent":
                self._percent(start, end)
            case "operator":
                self._operator(start, end, OPERATORS.get(match.group(), BAD))
            case "other" | "within":
                self._add(start, end, BAD)

    def end(self, *, fresh: bool = False) -> None:
        """End the chain; the next token begins another."""
        if any(piece.token == "=" for piece in self.chain):
            self.chains.append(self.chain)
        self.chain, self.unit, self.fresh = [], False, fresh

    @property
    def last(self) -> Token | None:
        return self.chain[-1].token if self.chain else None

    def _add(self, start: int, end: int, token: Token) -> None:
        self.chain.append(Piece(start, end, token))
        self.unit = False

    def _number(self, start: int, end: int, number: Number | None) -> None:
        if self.unit:  # 5 apples and 3 + 4 = 7
            self.end()
        if isinstance(self.last, Number) or self.last == ")" or number is None:
            self._add(start, start, BAD)  # 400 000
        self._add(start, end, number or BAD)

    def _word(self, start: int, end: int, word: str, text: str) -> None:
        computed = isinstance(self.last, Number) or self.last == ")"
        if word == "percent":
            self._percent(start, end)
        elif word in SPOKEN:
            self._add(start, end, SPOKEN[word] if computed and _OPERAND.match(text, end) else BAD)
        elif _COMPUTING.fullmatch(word) or (computed and len(word) == 1) or self.last in ("+", "-", "*", "/", "("):
            self._add(start, end, BAD)
        elif computed:
            self.unit = True
        else:  # a word before anything else: a name that an operator may follow
            self.end()
            self._add(start, end, BAD)
            self.unit = True

    def _percent(self, start: int, end: int) -> None:
        if isinstance(self.last, Number) and not self.unit and not self.last.percent:
            self.chain[-1] = Piece(self.chain[-1].start, end, percentage(self.last))
        else:
            self._add(start, end, BAD)

    def _operator(self, start: int, end: int, operator: str) -> None:
        if operator == "(" and self.unit:  # 5 apples (3 + 2 = 5)
            self.end()
        elif operator == "(" and isinstance(self.last, Number) and self.chain[-1].end != start:  # = 4 (15 minutes)
            self.end()
            self._add(start, start, BAD)
        if not self.chain and operator not in "(" and not (operator == "-" and self.fresh):
            self._add(start, start, BAD)
        self._add(start, end, operator)
