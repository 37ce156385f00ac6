"""Measures of the text itself: length, readability, format."""

import json
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from vpo.core.types import Floats
from vpo.rewards.calibration import Calibrated
from vpo.rewards.scorer import Item, Scores
from vpo.util.errors import InputError, nearest

# Measures of textstat, with what scores 0 and what scores 1 where nothing is said: grades of school, and the like.
MEASURES: dict[str, tuple[float, float]] = {
    "automated_readability_index": (18.0, 6.0),
    "coleman_liau_index": (18.0, 6.0),
    "lix": (60.0, 20.0),
    "rix": (8.0, 1.0),
}
# These count syllables, for which textstat needs a dictionary of NLTK's.
BY_SYLLABLES: dict[str, tuple[float, float]] = {
    "flesch_reading_ease": (0.0, 100.0),
    "flesch_kincaid_grade": (18.0, 6.0),
    "gunning_fog": (18.0, 6.0),
    "smog_index": (18.0, 6.0),
}
PATTERN_SECONDS = 1.0  # that a pattern may take for an answer: some take for ever


class Length:
    """1 for an answer of `least` to `most` words; less in proportion below, down to 0 at twice `most` above."""

    def __init__(self, name: str, *, most: int, least: int = 0, unit: str = "words") -> None:
        """Take bounds, in "words" or "characters"."""
        if unit not in ("words", "characters"):
            raise InputError(f"unit must be words or characters, not {unit!r}")
        if not 0 <= least <= most or most < 1:
            raise InputError(f"least and most must be 0 <= least <= most, and most 1 or more, not {least} and {most}")
        self.names: tuple[str, ...] = (name,)
        self.least, self.most, self.unit = least, most, unit

    def score(self, items: Sequence[Item]) -> list[Scores]:
        """Return how well each answer keeps to the bounds."""
        return [(self._score(len(item.answer.split() if self.unit == "words" else item.answer)),) for item in items]

    def _score(self, length: int) -> float:
        if length < self.least:
            return length / self.least
        return 1.0 if length <= self.most else max(0.0, 2.0 - length / self.most)

    def described(self) -> dict[str, Any]:
        """Return the bounds."""
        return {"kind": "length", "least": self.least, "most": self.most, "unit": self.unit}


class Readability:
    """How easily an answer is read, by a formula of textstat; an answer without words scores 0."""

    def __init__(
        self, name: str, *, measure: str = "coleman_liau_index", calibration: dict[str, Any] | None = None
    ) -> None:
        """Take a formula.

        Args:
            name: of the objective.
            measure: its name in textstat.
            calibration: to [0, 1]; by default a range from hard to easy, such as grade 18 to grade 6.
        """
        known = MEASURES | BY_SYLLABLES
        if measure not in known:
            raise InputError(f"measure {measure!r} is not known: {nearest(measure, known)}")
        try:
            import textstat
        except ImportError:
            raise InputError("readability needs textstat: pip install 'vpo[rewards]'") from None
        if measure in BY_SYLLABLES:
            _check_dictionary(measure)
        self.names: tuple[str, ...] = (name,)
        self.measure = measure
        self.function = getattr(textstat, measure)
        self.calibrated = Calibrated(self.names, calibration or {"range": list(known[measure])}, self._raw)

    def score(self, items: Sequence[Item]) -> list[Scores]:
        """Return how easily each answer is read."""
        found = self.calibrated(self._raw(items))
        return [
            score if any(sign.isalnum() for sign in item.answer) else (0.0,)
            for item, score in zip(items, found, strict=True)
        ]

    def _raw(self, items: Sequence[Item]) -> Floats:
        return np.asarray([[float(self.function(item.answer))] for item in items], dtype=np.float64)

    def described(self) -> dict[str, Any]:
        """Return the formula and its calibration."""
        return {"kind": "readability", "measure": self.measure, "calibration": self.calibrated.data()}

    def counted(self) -> dict[str, tuple[float, int]]:
        """Return how much the calibration cut off."""
        return self.calibrated.counted()


def _check_dictionary(measure: str) -> None:
    """Refuse a measure whose dictionary is not there: textstat would load it from the network during training."""
    import nltk

    try:
        nltk.data.find("corpora/cmudict")
    except LookupError:
        others = ", ".join(MEASURES)
        raise InputError(
            f"measure {measure!r} needs a dictionary: python -m nltk.downloader cmudict; without one there are {others}"
        ) from None


class Pattern:
    """1 for an answer that matches a regular expression from its beginning to its end."""

    def __init__(self, name: str, *, pattern: str) -> None:
        """Take a pattern, in which a dot matches an end of line too."""
        try:
            import regex
        except ImportError:
            raise InputError("patterns need regex: pip install 'vpo[rewards]'") from None
        try:
            self.compiled = regex.compile(pattern, regex.DOTALL)
        except regex.error as error:
            raise InputError(f"pattern {pattern!r} is no regular expression ({error})") from None
        self.names: tuple[str, ...] = (name,)
        self.pattern = pattern

    def score(self, items: Sequence[Item]) -> list[Scores]:
        """Return whether each answer matches; none where that takes too long."""
        return [(self._score(item.answer.strip()),) for item in items]

    def _score(self, text: str) -> float | None:
        try:
            return float(self.compiled.fullmatch(text, timeout=PATTERN_SECONDS) is not None)
        except TimeoutError:
            return None

    def described(self) -> dict[str, Any]:
        """Return the pattern."""
        return {"kind": "pattern", "pattern": self.pattern}


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON, though Python reads it")


class Json:
    """1 for an answer that is JSON, in a fence or not; with keys, the share of them that its object has."""

    def __init__(self, name: str, *, keys: list[str] | None = None) -> None:
        """Take the keys that the object must have, none for any JSON."""
        self.names: tuple[str, ...] = (name,)
        self.keys = list(keys or [])

    def score(self, items: Sequence[Item]) -> list[Scores]:
        """Return whether each answer is JSON, and has the keys."""
        return [(self._score(item.answer),) for item in items]

    def _score(self, answer: str) -> float:
        text = answer.strip()
        if text.startswith("```") and text.endswith("```"):
            text = text.removesuffix("```").partition("\n")[2]
        try:
            value = json.loads(text, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            return 0.0
        if not self.keys:
            return 1.0
        return sum(key in value for key in self.keys) / len(self.keys) if isinstance(value, dict) else 0.0

    def described(self) -> dict[str, Any]:
        """Return the keys."""
        return {"kind": "json", "keys": self.keys}
