"""The data of the page of searches: problems solved by budget, and how one solution evolved."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from vpo.search.result import UNITS, SearchResult, families_of, only_solved
from vpo.tasks import Task, get
from vpo.util.errors import InputError
from vpo.util.grouping import group_by

MARKS = (1, 2, 3, 5, 10, 25, 50, 100, 200, 500, 1000)
KINDS = 5  # of failures that are shown
POINTS = 40  # of a curve by answers, generations or tokens


def search_page(results: Sequence[SearchResult], folders: Sequence[Path], command: str) -> dict[str, Any]:
    """The data of the page of some searches over the same problems and goals, as JSON.

    Args:
        results: of the searches.
        folders: of each search, or of the first of its seeds.
        command: that makes the page.
    """
    curves = [_curves(results, unit) for unit in UNITS if all(unit in each.spent for each in results)]
    count = len(set(results[0].problems))
    goals = len(results[0].distinct) // count
    return {
        "title": f"{Path(results[0].settings['task']).stem}: search",
        "summary": f"{count} problems with {goals} goals each; {_goal_text(results[0])}",
        "objectives": [],
        "runs": [{"name": each.name, "curves": [], "positions": [], "training": {}} for each in results],
        "search": {"curves": curves, "families": _families(results, folders)},
        "fronts": [],
        "first_front": 0,
        "gallery": [],
        "tables": search_tables(results),
        "notes": [note for each in results for note in _failures(each)],
        "commands": [command],
    }


def _failures(result: SearchResult) -> list[str]:
    """Answers that could not be scored: a line for each kind of reason, with an example."""
    kinds = group_by(result.failures, lambda reason: reason.partition(":")[0])
    total = int(result.spent["answers"].sum())
    counts = {kind: sum(result.failures[reason] for reason in reasons) for kind, reasons in kinds.items()}
    shown = sorted(kinds, key=lambda kind: -counts[kind])[:KINDS]
    return [f"{result.name}: {counts[kind]:,} of {total:,} answers not scored: {kinds[kind][0]}" for kind in shown]


def marks(results: Sequence[SearchResult]) -> list[int]:
    """The numbers of iterations that a table shows."""
    last = int(_most(results, "iterations"))
    return [*(mark for mark in MARKS if mark < last), last]


def _most(results: Sequence[SearchResult], unit: str) -> float:
    """The largest budget that every unsolved problem has spent; the largest spent where all are solved.

    A problem for which nothing was generated spent no tokens, and sets no limit.
    """
    unsolved = [each.spent[unit][~np.isfinite(each.solved_at[unit]) & (each.spent[unit] > 0)] for each in results]
    least = [float(spent.min()) for spent in unsolved if len(spent)]
    return max(1.0, min(least) if least else max(float(each.spent[unit].max()) for each in results))


def search_tables(results: Sequence[SearchResult]) -> list[dict[str, Any]]:
    """Solved by iterations, as shares and as counts; solved by one search alone; budgets spent."""
    shown = marks(results)
    names = [each.name for each in results]
    shares = [each.curve("iterations", shown) for each in results]
    counts = [[_mean((each.solved_at["iterations"] <= mark).sum(), each) for mark in shown] for each in results]
    return [
        {
            "title": f"Share solved within so many iterations, over {len(set(results[0].problems))} problems",
            "head": ["search", *map(str, shown)],
            "rows": [
                [name, *({**asdict(value), "certain": False} for value in row)]
                for name, row in zip(names, shares, strict=True)
            ],
        },
        {
            "title": f"Solved within so many iterations, of {len(results[0].distinct)}",
            "head": ["search", *map(str, shown)],
            "rows": [[name, *row] for name, row in zip(names, counts, strict=True)],
        },
        {
            "title": "Solved by the search in the row and never by the one in the column",
            "head": ["search", *names],
            "rows": [[name, *map(_plain, row)] for name, row in zip(names, only_solved(results), strict=True)],
        },
        {
            "title": "Spent",
            "head": ["search", *UNITS[1:]],
            "rows": [
                [
                    each.name,
                    *(_mean(each.spent[unit].sum(), each) if unit in each.spent else None for unit in UNITS[1:]),
                ]
                for each in results
            ],
        },
    ]


def _mean(total: Any, result: SearchResult) -> float:
    """The mean over seeds of a total over all of them."""
    return _plain(float(total) / result.seeds)


def _plain(number: float) -> float:
    return int(number) if number == int(number) else round(number, 1)


def _curves(results: Sequence[SearchResult], unit: str) -> dict[str, Any]:
    """The share that each search solved within budgets of one unit."""
    most = _most(results, unit)
    least = min(1.0 if unit != "tokens" else most, *(float(each.solved_at[unit].min()) for each in results))
    budgets = np.unique(np.geomspace(max(1.0, least), most, POINTS).round()).tolist()
    runs = []
    for each in results:
        values = each.curve(unit, budgets)
        bounds = {name: [getattr(value, name) for value in values] for name in ("mean", "low", "high")}
        runs.append({"budgets": budgets, **bounds})
    return {"unit": unit, "runs": runs}


def _families(results: Sequence[SearchResult], folders: Sequence[Path]) -> list[dict[str, Any]]:
    """For each search with parents, all candidates of the solved problem whose solution has the most ancestors."""
    shown = []
    for run, (result, folder) in enumerate(zip(results, folders, strict=True)):
        families = families_of(folder) if result.settings["strategy"] != "best_of_n" else {}
        solved = [case for case in result.distinct if any(each["solved"] for each in families.get(case, []))]
        if not solved:
            continue
        case = max(solved, key=lambda name: sum(each["ancestor"] for each in families[name]))
        members = families[case]
        task, problem = _problem(result, result.problems[result.cases.index(case)])
        svg = task.scene(problem) if task else None
        for each in members:
            has_path = task and svg and each["answer"] is not None and each["ancestor"]
            each["path"] = task.trace(problem, each["answer"]) if task and has_path else ""
        shown.append({"run": run, "case": case, "svg": svg, "members": members})
    return shown


def _problem(result: SearchResult, name: str) -> tuple[Task[Any] | None, Any]:
    settings = result.settings
    try:
        task: Task[Any] = get(settings["task"], **settings["task_settings"])
        problems = task.problems(settings["split"], count=settings["problems"])
    except InputError:  # its data is no longer there
        return None, None
    return task, next(problem for problem in problems if problem.id == name)


def _goal_text(result: SearchResult) -> str:
    goals = dict.fromkeys(goal for _, goal in result.settings["cases"])
    return f"goals: {'; '.join(goals)}"
