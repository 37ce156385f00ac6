"""What a search came to: the cases that it solved, each at which budget, read from its log."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vpo.core.at_k import Interval
from vpo.core.diversity import is_nondominated
from vpo.core.types import Floats
from vpo.evaluation.intervals import intervals
from vpo.search.log import CANDIDATES, GENERATIONS, SETTINGS, read_rows, rows_by
from vpo.util.errors import InputError

UNITS = ("iterations", "answers", "generations", "tokens")


@dataclass(frozen=True)
class SearchResult:
    """One search over some cases, or several of them, of models that differ in their seed, one after another.

    Attributes:
        name: of what was searched with, and by which strategy.
        settings: of the search.
        cases: names, the same in searches that can be compared.
        problems: the problem of each case, over which intervals are taken.
        solved_at: for each unit of budget, what each case had spent when it was solved; infinity where it never was.
            Tokens are not among them where an endpoint did not count them.
        spent: for each unit, what each case spent in all.
        failures: how many candidates could not be scored, by reason.
        seeds: how many searches these are.
    """

    name: str
    settings: Mapping[str, Any]
    cases: tuple[str, ...]
    problems: tuple[str, ...]
    solved_at: Mapping[str, Floats]
    spent: Mapping[str, Floats]
    failures: Mapping[str, int]
    seeds: int = 1

    @property
    def distinct(self) -> tuple[str, ...]:
        """The cases of one search."""
        return self.cases[: len(self.cases) // self.seeds]

    @property
    def solved(self) -> frozenset[str]:
        """The cases that were solved, by any of the searches."""
        return frozenset().union(*self.solved_by_seed())

    def solved_by_seed(self) -> list[frozenset[str]]:
        """Return the cases that each search solved."""
        found = np.isfinite(self.solved_at["iterations"]).reshape(self.seeds, -1)
        return [frozenset(case for case, at in zip(self.distinct, row, strict=True) if at) for row in found]

    def curve(self, unit: str, budgets: Sequence[float]) -> list[Interval]:
        """Return the share of cases that are solved within each budget, with its interval over problems."""
        names = list(dict.fromkeys(self.problems))
        places = np.asarray([names.index(problem) for problem in self.problems])
        counts = np.bincount(places)
        table = {}
        for budget in budgets:
            solved = (self.solved_at[unit] <= budget).astype(np.float64)
            table[budget] = np.bincount(places, weights=solved) / counts
        found = intervals(table)
        return list(found.values())


def read_result(folder: Path, iterations: int | None = None) -> SearchResult:
    """Return what the search in a folder came to, or had come to after some iterations."""
    if not (folder / SETTINGS).is_file():
        raise InputError(f"{folder}: there is no search here")
    settings = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
    cases: list[list[str]] = settings["cases"]
    names = [f"{problem} {goal}" for problem, goal in cases]
    spent = {case: dict.fromkeys(UNITS, 0.0) for case in names}
    solved: dict[str, dict[str, float]] = {}
    failures: dict[str, int] = {}
    candidates = rows_by(folder / CANDIDATES, "generation")
    rows = [row for row in read_rows(folder / GENERATIONS) if iterations is None or row["iteration"] < iterations]
    for row in rows:
        used = spent[row["case"]]
        used["iterations"] = row["iteration"] + 1
        used["generations"] += 1
        used["tokens"] += row["tokens"] or 0
        for each in candidates.get(row["number"], []):
            used["answers"] += 1
            if each["failure"]:
                failures[each["failure"]] = failures.get(each["failure"], 0) + 1
            if each["solved"] and row["case"] not in solved:
                solved[row["case"]] = dict(used)
    never = dict.fromkeys(UNITS, np.inf)
    units = [unit for unit in UNITS if unit != "tokens" or all(row["tokens"] is not None for row in rows)]
    return SearchResult(
        folder.name,
        settings,
        tuple(names),
        tuple(problem for problem, _ in cases),
        {unit: np.asarray([solved.get(case, never)[unit] for case in names]) for unit in units},
        {unit: np.asarray([spent[case][unit] for case in names]) for unit in units},
        failures,
    )


def families_of(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Return for each case its candidates with their parents, `ancestor` true for those that led to what solved it."""
    names = ("number", "iteration", "operator", "parent", "position", "answer", "value", "solved")
    families = {
        case: [{**{name: row[name] for name in names}, "ancestor": False} for row in rows]
        for case, rows in rows_by(folder / CANDIDATES, "case").items()
    }
    for members in families.values():
        members.sort(key=lambda each: int(each["number"]))
        line = next((each for each in members if each["solved"]), None)
        while line is not None:
            line["ancestor"] = True
            line = None if line["parent"] is None else members[line["parent"]]
    return families


def archives_of(folder: Path) -> dict[str, dict[str, Any]]:
    """Return for each case the candidate of most value, and those that no other dominates; the first of equal ones."""
    archives: dict[str, dict[str, Any]] = {}
    for case, made in rows_by(folder / CANDIDATES, "case").items():
        rows = sorted((row for row in made if row["scores"] is not None), key=lambda row: int(row["number"]))
        if not rows:
            continue
        kept = is_nondominated(np.asarray([row["scores"] for row in rows], dtype=np.float64))
        archive = [row for row, keep in zip(rows, kept, strict=True) if keep]
        archives[case] = {"best": max(rows, key=lambda row: float(row["value"])), "archive": archive}
    return archives


def merged(outcomes: Sequence[SearchResult], name: str) -> SearchResult:
    """Return searches over the same cases as one, in which each case counts with the mean of them."""
    first = outcomes[0]
    units = [unit for unit in UNITS if all(unit in each.spent for each in outcomes)]
    failures: dict[str, int] = {}
    for reason, count in (pair for each in outcomes for pair in each.failures.items()):
        failures[reason] = failures.get(reason, 0) + count
    return SearchResult(
        name,
        first.settings,
        tuple(case for each in outcomes for case in each.cases),
        tuple(problem for each in outcomes for problem in each.problems),
        {unit: np.concatenate([each.solved_at[unit] for each in outcomes]) for unit in units},
        {unit: np.concatenate([each.spent[unit] for each in outcomes]) for unit in units},
        failures,
        sum(each.seeds for each in outcomes),
    )


def only_solved(outcomes: Sequence[SearchResult]) -> list[list[float]]:
    """Return, for each pair, how many cases the first solved and the second never did; of several seeds the mean."""
    return [
        [float(np.mean([len(solved - other.solved) for solved in one.solved_by_seed()])) for other in outcomes]
        for one in outcomes
    ]
