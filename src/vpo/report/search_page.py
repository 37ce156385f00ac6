"""The data of the page of searches: how the best moved, what was solved and spent, and who descended from whom."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from vpo.report.search_curves import best_curves, best_values, most_spent, scored_cases, solved_curves, spent_curves
from vpo.report.search_families import search_families
from vpo.search.goals import TaskGoal
from vpo.search.result import UNITS, SearchResult, only_solved
from vpo.util.grouping import group_by
from vpo.util.text import counted, listed

MARKS = (1, 2, 3, 5, 10, 25, 50, 100, 200, 500, 1000)
KINDS = 5  # of failures that are shown


def search_page(results: Sequence[SearchResult], folders: Sequence[Path], command: str) -> dict[str, Any]:
    """The data of the page of some searches over the same problems and goals, as JSON.

    Args:
        results: of the searches.
        folders: of each search, or of the first of its seeds.
        command: that makes the page.
    """
    count = len(set(results[0].problems))
    goals = len(results[0].distinct) // count
    return {
        "title": f"{Path(results[0].settings['task']).stem}: search",
        "verdict": _verdict(results),
        "summary": f"{counted(count, 'problem')} with {counted(goals, 'goal')} each; {_goal_text(results[0])}",
        "objectives": [],
        "runs": [{"name": each.name, "curves": [], "positions": [], "training": {}} for each in results],
        "search": {
            "best": best_curves(results),
            "curves": solved_curves(results),
            "spent": spent_curves(results),
            "families": search_families(results, folders),
        },
        "fronts": [],
        "first_front": 0,
        "gallery": [],
        "tables": search_tables(results),
        "notes": [*_unscored(results), *(note for each in results for note in _failures(each))],
        "commands": [command],
    }


def _verdict(results: Sequence[SearchResult]) -> str:
    """What each search reached: how many it solved, or where nothing was solved its best value."""
    count = len(results[0].distinct)
    if any(each.solved for each in results):
        solved = [_mean(sum(map(len, each.solved_by_seed())), each) for each in results]
        return f"Solved of {count}: {listed([f'{each.name} {n:g}' for each, n in zip(results, solved, strict=True)])}."
    ends = [
        best_values(results, run, "iterations", [float(each.spent["iterations"].max())])[0]
        for run, each in enumerate(results)
    ]
    reached = [f"{each.name} {end.mean:.6g}" for each, end in zip(results, ends, strict=True) if end is not None]
    of = "" if count == 1 and results[0].seeds == 1 else ", averaged over the problems and goals"
    return f"Nothing was solved. Best value{of}: {listed(reached)}." if reached else "No answer could be scored."


def _unscored(results: Sequence[SearchResult]) -> list[str]:
    """A note on the cases without a value, which no mean of the best value counts."""
    without = scored_cases(results).count(False)
    return (
        [
            f"{without} of {len(results[0].distinct)} are not in the means of the best value: a search has no scored "
            "answer to them"
        ]
        if without
        else []
    )


def _failures(result: SearchResult) -> list[str]:
    """Answers that could not be scored: a line for each kind of reason, with an example."""
    kinds = group_by(result.failures, lambda reason: reason.partition(":")[0])
    total = int(result.spent["answers"].sum())
    counts = {kind: sum(result.failures[reason] for reason in reasons) for kind, reasons in kinds.items()}
    shown = sorted(kinds, key=lambda kind: -counts[kind])[:KINDS]
    return [f"{result.name}: {counts[kind]:,} of {total:,} answers not scored: {kinds[kind][0]}" for kind in shown]


def marks(results: Sequence[SearchResult]) -> list[int]:
    """The numbers of iterations that a table shows."""
    last = int(most_spent(results, "iterations"))
    return [*(mark for mark in MARKS if mark < last), last]


def search_tables(results: Sequence[SearchResult]) -> list[dict[str, Any]]:
    """Solved by iterations, as shares and as counts; the best value; solved by one search alone; budgets spent."""
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
            "title": "Best value within so many iterations, averaged",
            "head": ["search", *map(str, shown)],
            "rows": [[each.name, *_best_row(results, run, shown)] for run, each in enumerate(results)],
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


def _best_row(results: Sequence[SearchResult], run: int, iterations: Sequence[int]) -> list[float | None]:
    values = best_values(results, run, "iterations", iterations)
    return [None if value is None else float(f"{value.mean:.6g}") for value in values]


def _mean(total: Any, result: SearchResult) -> float:
    """The mean over seeds of a total over all of them."""
    return _plain(float(total) / result.seeds)


def _plain(number: float) -> float:
    return int(number) if number == int(number) else round(number, 1)


def _goal_text(result: SearchResult) -> str:
    goals = list(dict.fromkeys(goal for _, goal in result.settings["cases"]))
    return "the goal of the task" if goals == [TaskGoal.name] else f"goals: {'; '.join(goals)}"
