"""What the page shows of searches: what was solved within which budget, and the family of a solved case."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from vpo.search.result import UNITS, SearchResult, families_of, only_solved
from vpo.tasks import Task, get
from vpo.util.errors import InputError

MARKS = (1, 2, 3, 5, 10, 25, 50, 100, 200, 500, 1000)
KINDS = 5  # of failures that are shown
POINTS = 40  # of a curve by answers, generations or tokens


def search_page(outcomes: Sequence[SearchResult], folders: Sequence[Path], command: str) -> dict[str, Any]:
    """Return the data of the page of some searches over the same cases.

    Args:
        outcomes: what they came to.
        folders: of each, or of the first of its seeds.
        command: what makes the page.
    """
    curves = [_curves(outcomes, unit) for unit in UNITS if all(unit in each.spent for each in outcomes)]
    count = len(set(outcomes[0].problems))
    goals = len(outcomes[0].distinct) // count
    return {
        "title": "Search",
        "summary": f"{count} problems with {goals} goals each; {_goal_text(outcomes[0])}",
        "objectives": [],
        "runs": [{"name": each.name, "curves": [], "positions": [], "training": {}} for each in outcomes],
        "search": {"curves": curves, "families": _families(outcomes, folders)},
        "fronts": [],
        "first_front": 0,
        "gallery": [],
        "tables": search_tables(outcomes),
        "notes": [note for each in outcomes for note in _failures(each)],
        "commands": [command],
        "figure_commands": {"search": command, "tables": command},
    }


def _failures(outcome: SearchResult) -> list[str]:
    """Return what could not be scored, in a line for each kind of reason, with an example."""
    kinds: dict[str, list[str]] = {}
    for reason in outcome.failures:
        kinds.setdefault(reason.partition(":")[0], []).append(reason)
    total = int(outcome.spent["answers"].sum())
    counts = {kind: sum(outcome.failures[reason] for reason in reasons) for kind, reasons in kinds.items()}
    shown = sorted(kinds, key=lambda kind: -counts[kind])[:KINDS]
    return [f"{outcome.name}: {counts[kind]:,} of {total:,} answers not scored: {kinds[kind][0]}" for kind in shown]


def marks(outcomes: Sequence[SearchResult]) -> list[int]:
    """Return the numbers of iterations that a table shows."""
    last = int(_most(outcomes, "iterations"))
    return [*(mark for mark in MARKS if mark < last), last]


def _most(outcomes: Sequence[SearchResult], unit: str) -> float:
    """Return the largest budget up to which all is known: what cases that were not solved spent, the least of those.

    A case for which nothing was ever written spent no tokens, and says nothing.
    """
    unsolved = [each.spent[unit][~np.isfinite(each.solved_at[unit]) & (each.spent[unit] > 0)] for each in outcomes]
    least = [float(spent.min()) for spent in unsolved if len(spent)]
    return max(1.0, min(least) if least else max(float(each.spent[unit].max()) for each in outcomes))


def search_tables(outcomes: Sequence[SearchResult]) -> list[dict[str, Any]]:
    """Return the tables: solved by iterations, as shares and counts; who solves what others do not; what was spent."""
    shown = marks(outcomes)
    names = [each.name for each in outcomes]
    shares = [each.curve("iterations", shown) for each in outcomes]
    counts = [[_mean((each.solved_at["iterations"] <= mark).sum(), each) for mark in shown] for each in outcomes]
    return [
        {
            "title": "Share solved within so many iterations",
            "head": ["search", *map(str, shown)],
            "rows": [
                [name, *({**asdict(value), "certain": False} for value in row)]
                for name, row in zip(names, shares, strict=True)
            ],
        },
        {
            "title": f"Solved within so many iterations, of {len(outcomes[0].distinct)}",
            "head": ["search", *map(str, shown)],
            "rows": [[name, *row] for name, row in zip(names, counts, strict=True)],
        },
        {
            "title": "Solved by the one in the row and never by the one in the column",
            "head": ["search", *names],
            "rows": [[name, *map(_plain, row)] for name, row in zip(names, only_solved(outcomes), strict=True)],
        },
        {
            "title": "Spent",
            "head": ["search", *UNITS[1:]],
            "rows": [
                [
                    each.name,
                    *(_mean(each.spent[unit].sum(), each) if unit in each.spent else None for unit in UNITS[1:]),
                ]
                for each in outcomes
            ],
        },
    ]


def _mean(total: Any, outcome: SearchResult) -> float:
    """Return the mean over seeds of a number that was counted over all of them."""
    return _plain(float(total) / outcome.seeds)


def _plain(number: float) -> float:
    return int(number) if number == int(number) else round(number, 1)


def _curves(outcomes: Sequence[SearchResult], unit: str) -> dict[str, Any]:
    """Return what each search solved by one unit of budget."""
    most = _most(outcomes, unit)
    least = min(1.0 if unit != "tokens" else most, *(float(each.solved_at[unit].min()) for each in outcomes))
    budgets = np.unique(np.geomspace(max(1.0, least), most, POINTS).round()).tolist()
    runs = []
    for each in outcomes:
        values = each.curve(unit, budgets)
        bounds = {name: [getattr(value, name) for value in values] for name in ("mean", "low", "high")}
        runs.append({"budgets": budgets, **bounds})
    return {"unit": unit, "runs": runs}


def _families(outcomes: Sequence[SearchResult], folders: Sequence[Path]) -> list[dict[str, Any]]:
    """Return, for each search that has parents, the family of the solved case with the longest line of ancestors."""
    found = []
    for run, (outcome, folder) in enumerate(zip(outcomes, folders, strict=True)):
        families = families_of(folder) if outcome.settings["strategy"] != "best_of_n" else {}
        solved = [case for case in outcome.distinct if any(each["solved"] for each in families.get(case, []))]
        if not solved:
            continue
        case = max(solved, key=lambda name: sum(each["ancestor"] for each in families[name]))
        members = families[case]
        task, problem = _problem(outcome, outcome.problems[outcome.cases.index(case)])
        svg = task.scene(problem) if task else None
        for each in members:
            drawn = task and svg and each["answer"] is not None and each["ancestor"]
            each["path"] = task.trace(problem, each["answer"]) if task and drawn else ""
        found.append({"run": run, "case": case, "svg": svg, "members": members})
    return found


def _problem(outcome: SearchResult, name: str) -> tuple[Task[Any] | None, Any]:
    settings = outcome.settings
    try:
        task: Task[Any] = get(settings["task"], **settings["task_settings"])
        problems = task.problems(settings["split"], count=settings["problems"])
    except InputError:  # its data is gone
        return None, None
    return task, next(problem for problem in problems if problem.id == name)


def _goal_text(outcome: SearchResult) -> str:
    goals = dict.fromkeys(goal for _, goal in outcome.settings["cases"])
    return f"goals: {'; '.join(goals)}"
