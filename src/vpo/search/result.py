"""The result of a search, from its log: which problems were solved, at which budget, and how the best moved."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vpo.core.diversity import is_nondominated
from vpo.core.intervals import Interval
from vpo.core.types import Floats
from vpo.evaluation.intervals import intervals
from vpo.search.candidates import is_counted
from vpo.search.log import read_candidates, read_generations, read_settings
from vpo.util.grouping import group_by

UNITS = ("iterations", "answers", "generations", "tokens")


@dataclass(frozen=True)
class Trajectory:
    """One case before its first generation, index 0, and after each of them.

    Attributes:
        best_T: the highest value so far; NaN where nothing is scored yet.
        spent: for each unit of budget, the total so far, (T,).
    """

    best_T: Floats
    spent: Mapping[str, Floats]

    def best_within(self, unit: str, budgets: Sequence[float]) -> Floats:
        """The highest value within each budget, (len(budgets),); NaN where nothing was scored within it."""
        last = np.searchsorted(self.spent[unit], budgets, side="right") - 1
        best: Floats = self.best_T[last]
        return best

    def spent_after(self, unit: str, iterations: Sequence[float]) -> Floats:
        """What was spent of a unit after so many iterations, (len(iterations),)."""
        last = np.searchsorted(self.spent["iterations"], iterations, side="right") - 1
        spent: Floats = self.spent[unit][last]
        return spent


@dataclass(frozen=True)
class SearchResult:
    """The result of one search, or of several that differ in the seed of their model, one after another.

    Attributes:
        name: of the model and the strategy.
        settings: of the search.
        cases: names of the search problems, the same in searches that can be compared.
        problems: the problem of each case; intervals are over problems.
        solved_at: for each unit of budget, what each case had spent when it was solved; infinity where it was not.
            Without tokens where an endpoint did not count them.
        spent: for each unit, the total of each case.
        trajectories: of each case.
        failures: how many candidates could not be scored, by reason.
        seeds: how many searches are merged in it.
    """

    name: str
    settings: Mapping[str, Any]
    cases: tuple[str, ...]
    problems: tuple[str, ...]
    solved_at: Mapping[str, Floats]
    spent: Mapping[str, Floats]
    trajectories: tuple[Trajectory, ...]
    failures: Mapping[str, int]
    seeds: int = 1

    @property
    def distinct(self) -> tuple[str, ...]:
        """The cases of one search."""
        return self.cases[: len(self.cases) // self.seeds]

    @property
    def solved(self) -> frozenset[str]:
        """The cases that any of the searches solved."""
        return frozenset().union(*self.solved_by_seed())

    def solved_by_seed(self) -> list[frozenset[str]]:
        """The cases that each search solved."""
        solved = np.isfinite(self.solved_at["iterations"]).reshape(self.seeds, -1)
        return [frozenset(case for case, yes in zip(self.distinct, row, strict=True) if yes) for row in solved]

    def curve(self, unit: str, budgets: Sequence[float]) -> list[Interval]:
        """The share of cases solved within each budget, with its interval over problems (None for one problem)."""
        names = list(dict.fromkeys(self.problems))
        index_of_problem = np.asarray([names.index(problem) for problem in self.problems])
        counts_P = np.bincount(index_of_problem)
        shares = {}
        for budget in budgets:
            solved_n = (self.solved_at[unit] <= budget).astype(np.float64)
            shares[budget] = np.bincount(index_of_problem, weights=solved_n) / counts_P
        return list(intervals(shares, dict.fromkeys(shares, (0.0, 1.0))).values())


def read_result(folder: Path, iterations: int | None = None) -> SearchResult:
    """The result of the search in a folder; with `iterations`, as it was after so many."""
    settings = read_settings(folder)
    problems = [problem for problem, _ in settings["cases"]]
    cases = [f"{problem} {goal}" for problem, goal in settings["cases"]]
    candidates = group_by(read_candidates(folder), lambda row: row["generation"])
    rows = [row for row in read_generations(folder) if iterations is None or row["iteration"] < iterations]
    units = [unit for unit in UNITS if unit != "tokens" or all(row["tokens"] is not None for row in rows)]
    logged = group_by(rows, lambda row: str(row["case"]))
    histories = {case: _history(logged.get(case, []), candidates) for case in cases}
    never = dict.fromkeys(UNITS, np.inf)
    failures = Counter(each["failure"] for row in rows for each in candidates.get(row["number"], []) if each["failure"])
    return SearchResult(
        folder.name,
        settings,
        tuple(cases),
        tuple(problems),
        {unit: np.asarray([(histories[case].solved_at or never)[unit] for case in cases]) for unit in units},
        {unit: np.asarray([histories[case].steps[-1][0][unit] for case in cases]) for unit in units},
        tuple(histories[case].trajectory(units) for case in cases),
        dict(failures),
    )


@dataclass
class _History:
    """What a case had spent, with its best value so far, after each generation; and what when it was solved."""

    steps: list[tuple[Mapping[str, float], float]]
    solved_at: Mapping[str, float] | None = None

    def trajectory(self, units: Sequence[str]) -> Trajectory:
        """As arrays."""
        best_T = np.asarray([best for _, best in self.steps])
        return Trajectory(best_T, {unit: np.asarray([used[unit] for used, _ in self.steps]) for unit in units})


def _history(rows: Sequence[Mapping[str, Any]], candidates: Mapping[int, Sequence[Mapping[str, Any]]]) -> _History:
    """The history of one case, from its generations and the candidates of each generation."""
    used = dict.fromkeys(UNITS, 0.0)
    best = np.nan
    history = _History([(dict(used), best)])
    for row in rows:
        counted = is_counted(row)
        used["iterations"] = row["iteration"] + 1
        used["generations"] += counted
        used["tokens"] += row["tokens"] or 0
        for candidate in candidates.get(row["number"], []):
            used["answers"] += counted
            if candidate["scores"] is not None:
                best = float(np.fmax(best, candidate["value"]))
            if candidate["solved"] and history.solved_at is None:
                history.solved_at = dict(used)
        history.steps.append((dict(used), best))
    return history


def families_of(folder: Path, iterations: int | None = None) -> dict[str, list[dict[str, Any]]]:
    """For each case its candidates with their parents, by number; with `iterations`, those of so many.

    `ancestor` is true for those that led to the solution, or where there is none to the best candidate, and for that
    itself.
    """
    names = ("number", "iteration", "operator", "parent", "position", "answer", "scores", "value", "solved", "failure")
    rows = [row for row in read_candidates(folder) if iterations is None or row["iteration"] < iterations]
    families = {
        case: sorted(
            (
                # Only some operators have a second parent, only some tasks feedback.
                {**{name: row[name] for name in names}, "second": row.get("second"), "feedback": row.get("feedback")}
                for row in members
            ),
            key=lambda member: int(member["number"]),
        )
        for case, members in group_by(rows, lambda row: str(row["case"])).items()
    }
    for members in families.values():
        ancestors = _ancestors(members)
        for member in members:
            member["ancestor"] = member["number"] in ancestors
    return families


def _ancestors(members: Sequence[Mapping[str, Any]]) -> set[int]:
    """The numbers of the first solution, or else of the first best candidate, and of all that it descends from."""
    scored = [member for member in members if member["scores"] is not None]
    if not scored:
        return set()
    end = max(scored, key=lambda member: (member["solved"], not member["solved"] and member["value"]))
    by_number = {member["number"]: member for member in members}
    ancestors: set[int] = set()
    waiting = [end["number"]]
    while waiting:
        number = waiting.pop()
        if number in by_number and number not in ancestors:
            ancestors.add(number)
            waiting += [by_number[number][name] for name in ("parent", "second")]
    return ancestors


def archives_of(folder: Path) -> dict[str, dict[str, Any]]:
    """For each case the candidate of highest value, and the non-dominated ones; of equal ones the first."""
    archives: dict[str, dict[str, Any]] = {}
    for case, candidates in group_by(read_candidates(folder), lambda row: str(row["case"])).items():
        rows = sorted((row for row in candidates if row["scores"] is not None), key=lambda row: int(row["number"]))
        if not rows:
            continue
        kept = is_nondominated(np.asarray([row["scores"] for row in rows], dtype=np.float64))
        archive = [row for row, keep in zip(rows, kept, strict=True) if keep]
        archives[case] = {"best": max(rows, key=lambda row: float(row["value"])), "archive": archive}
    return archives


def merge_seeds(results: Sequence[SearchResult], name: str) -> SearchResult:
    """One result of several searches over the same cases; its shares are means over the searches."""
    first = results[0]
    units = [unit for unit in UNITS if all(unit in each.spent for each in results)]
    failures: Counter[str] = Counter()
    for each in results:
        failures.update(each.failures)
    return SearchResult(
        name,
        first.settings,
        tuple(case for each in results for case in each.cases),
        tuple(problem for each in results for problem in each.problems),
        {unit: np.concatenate([each.solved_at[unit] for each in results]) for unit in units},
        {unit: np.concatenate([each.spent[unit] for each in results]) for unit in units},
        tuple(trajectory for each in results for trajectory in each.trajectories),
        dict(failures),
        sum(each.seeds for each in results),
    )


def only_solved(results: Sequence[SearchResult]) -> list[list[float]]:
    """For each pair, how many cases the row's search solved and the column's never did; a mean over the row's seeds."""
    return [
        [float(np.mean([len(solved - other.solved) for solved in one.solved_by_seed()])) for other in results]
        for one in results
    ]
