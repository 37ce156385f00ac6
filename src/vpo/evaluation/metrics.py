"""Metrics: what is measured of a pool, and within which budget."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from vpo.core.diversity import HYPERVOLUME_REFERENCE


class Budget(StrEnum):
    """What k counts: single answers, whole generations, or generated tokens."""

    ANSWERS = "answers"
    GENERATIONS = "generations"
    TOKENS = "tokens"


# Metrics with a budget.
BEST, PASS, ORACLE_SHARE = "best@k", "pass@k", "share of the oracle"
AT_K = re.compile(r"(best|pass)@([1-9]\d{0,5})")  # with its k
# Metrics of one generation.
FIRST, SET = "first", "set"
ONE_GENERATION = {FIRST: "answer 1 alone", SET: "best answer of one generation"}
# Metrics of the whole pool.
DISTINCT_TEXTS = "texts"
DIVERSITY = {
    "l1": "mean L1 distance between two answers' scores",
    "distinct": "different score vectors",
    DISTINCT_TEXTS: "different answers, by their text",
    "nondominated": "answers that no other beats",
    "hypervolume": "volume dominated above −0.1",
    "coverage": "best of each objective, averaged",
    "expected_max": "E_w[max], the set reward of the pool",
}
MEANINGS = {**DIVERSITY, **ONE_GENERATION}


@dataclass(frozen=True)
class Metric:
    """What one number measures: ``Metric(BEST, Budget.ANSWERS, 5)`` is best@5, ``Metric(SET)`` has no budget.

    In JSON it is three fields: `section`, `by` and `at`.
    """

    name: str
    budget: Budget | None = None
    k: int | None = None

    @property
    def section(self) -> str:
        """The part of a table that it stands in."""
        if self.name in ONE_GENERATION:
            return "one generation"
        return "diversity" if self.name in DIVERSITY else self.name

    @property
    def title(self) -> str:
        """The heading of that part, such as "best@k, by answers"."""
        return f"{self.section}, by {self.budget}" if self.budget else self.section

    @property
    def at(self) -> int | str:
        """What tells it from others of its part: k, or the name."""
        return self.name if self.k is None else self.k

    @property
    def label(self) -> str:
        """A short name that needs no heading, such as "best@5" or "set"."""
        if self.k is None:
            return self.name
        return f"oracle@{self.k}" if self.name == ORACLE_SHARE else self.name.replace("@k", f"@{self.k}")

    def bounds(self, answers: int, objectives: int) -> tuple[float, float]:
        """The least and the greatest value for a pool of so many answers, with so many objectives in [0, 1]."""
        return {
            "l1": (0.0, float(objectives)),
            "distinct": (1.0, float(answers)),
            "nondominated": (1.0, float(answers)),
            DISTINCT_TEXTS: (0.0, float(answers)),
            "hypervolume": (0.0, (1 - HYPERVOLUME_REFERENCE) ** objectives),
        }.get(self.name, (0.0, 1.0))

    def data(self) -> dict[str, Any]:
        """The fields of JSON."""
        return {"section": self.section, "by": str(self.budget or ""), "at": self.at}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "Metric":
        """The metric of fields that `data` made."""
        if not data["by"]:
            return cls(data["at"])
        return cls(data["section"], Budget(data["by"]), data["at"])
