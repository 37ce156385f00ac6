"""Scorers that need no model: length, readability, regular expression, JSON."""

import json
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from vpo.core.types import Floats
from vpo.rewards.calibrator import Calibrator
from vpo.rewards.scorer import Sample, Scores
from vpo.util.errors import InputError, nearest
from vpo.util.packages import require

# Formulas of textstat, each with its default range, hard to easy: school grades and the like.
MEASURES: dict[str, tuple[float, float]] = {
    "automated_readability_index": (18.0, 6.0),
    "coleman_liau_index": (18.0, 6.0),
    "lix": (60.0, 20.0),
    "rix": (8.0, 1.0),
}
# These count syllables, for which textstat needs a dictionary of NLTK.
BY_SYLLABLES: dict[str, tuple[float, float]] = {
    "flesch_reading_ease": (0.0, 100.0),
    "flesch_kincaid_grade": (18.0, 6.0),
    "gunning_fog": (18.0, 6.0),
    "smog_index": (18.0, 6.0),
}
PATTERN_TIMEOUT = 1.0  # seconds per answer: some patterns backtrack for ever


class Length:
    """1 for an answer of `least` to `most` words, in proportion below, falling to 0 at twice `most`."""

    def __init__(self, name: str, *, most: int, least: int = 0, unit: str = "words") -> None:
        """Take the bounds, in "words" or "characters"."""
        if unit not in ("words", "characters"):
            raise InputError(f"unit must be words or characters, not {unit!r}")
        if not 0 <= least <= most or most < 1:
            raise InputError(f"least and most must be 0 <= least <= most, and most 1 or more, not {least} and {most}")
        self.names: tuple[str, ...] = (name,)
        self.least, self.most, self.unit = least, most, unit

    def score(self, samples: Sequence[Sample]) -> list[Scores]:
        """Scores of each answer."""
        texts = [sample.answer for sample in samples]
        lengths = [len(text.split()) if self.unit == "words" else len(text) for text in texts]
        return [(self._score(length),) for length in lengths]

    def _score(self, length: int) -> float:
        if length < self.least:
            return length / self.least
        return 1.0 if length <= self.most else max(0.0, 2.0 - length / self.most)

    def described(self) -> dict[str, Any]:
        """The bounds."""
        return {"kind": "length", "least": self.least, "most": self.most, "unit": self.unit}


class Readability:
    """A readability formula of textstat, calibrated to [0, 1]; an answer without letters or digits scores 0."""

    def __init__(
        self, name: str, *, measure: str = "coleman_liau_index", calibration: dict[str, Any] | None = None
    ) -> None:
        """Look the formula up.

        Args:
            name: of the objective.
            measure: name of the formula in textstat.
            calibration: to [0, 1]; by default a range from hard to easy, such as grade 18 to grade 6.
        """
        known = MEASURES | BY_SYLLABLES
        if measure not in known:
            raise InputError(f"measure {measure!r} is not known: {nearest(measure, known)}")
        textstat = require("textstat", "readability", extra="rewards")
        if measure in BY_SYLLABLES:
            _check_dictionary(measure)
        self.names: tuple[str, ...] = (name,)
        self.measure = measure
        self.function = getattr(textstat, measure)
        self.calibrator = Calibrator(self.names, calibration or {"range": list(known[measure])}, self._raw)

    def score(self, samples: Sequence[Sample]) -> list[Scores]:
        """Scores of each answer."""
        scores = self.calibrator(self._raw(samples))
        return [
            score if any(character.isalnum() for character in sample.answer) else (0.0,)
            for sample, score in zip(samples, scores, strict=True)
        ]

    def _raw(self, samples: Sequence[Sample]) -> Floats:
        return np.asarray([[float(self.function(sample.answer))] for sample in samples], dtype=np.float64)

    def described(self) -> dict[str, Any]:
        """The formula and its calibration."""
        return {"kind": "readability", "measure": self.measure, "calibration": self.calibrator.data()}

    def counted(self) -> dict[str, tuple[float, int]]:
        """How many scores were clipped: see `Calibrator.counted`."""
        return self.calibrator.counted()


def _check_dictionary(measure: str) -> None:
    """Refuse a measure whose dictionary is missing: textstat would download it during training."""
    import nltk

    try:
        nltk.data.find("corpora/cmudict")
    except LookupError:
        others = ", ".join(MEASURES)
        raise InputError(
            f"measure {measure!r} needs a dictionary (python -m nltk.downloader cmudict); these need none: {others}"
        ) from None


class Pattern:
    """1 for an answer that a regular expression matches as a whole; abstains where matching takes too long."""

    def __init__(self, name: str, *, pattern: str) -> None:
        """Compile the pattern; a dot matches a newline too."""
        regex = require("regex", "kind pattern", extra="rewards")
        try:
            self.compiled = regex.compile(pattern, regex.DOTALL)
        except regex.error as error:
            raise InputError(f"pattern {pattern!r} is not a regular expression ({error})") from None
        self.names: tuple[str, ...] = (name,)
        self.pattern = pattern

    def score(self, samples: Sequence[Sample]) -> list[Scores]:
        """Scores of each answer."""
        return [(self._score(sample.answer.strip()),) for sample in samples]

    def _score(self, text: str) -> float | None:
        try:
            return float(self.compiled.fullmatch(text, timeout=PATTERN_TIMEOUT) is not None)
        except TimeoutError:
            return None

    def described(self) -> dict[str, Any]:
        """The pattern."""
        return {"kind": "pattern", "pattern": self.pattern}


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON, though Python reads it")


class Json:
    """1 for an answer that is JSON, in a code fence or not; with keys, the share of them that its object has."""

    def __init__(self, name: str, *, keys: list[str] | None = None) -> None:
        """Take the keys that the object must have; none for any JSON."""
        self.names: tuple[str, ...] = (name,)
        self.keys = list(keys or [])

    def score(self, samples: Sequence[Sample]) -> list[Scores]:
        """Scores of each answer."""
        return [(self._score(sample.answer),) for sample in samples]

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
        """The keys."""
        return {"kind": "json", "keys": self.keys}
