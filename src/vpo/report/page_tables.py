"""The tables of the page: a title, a head, and rows of cells that are text, numbers or intervals."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from vpo.core.at_k import Interval
from vpo.evaluation.comparison_text import title_of
from vpo.evaluation.eval_folder import Evaluation
from vpo.evaluation.measure import ORACLE, Comparison, Key, Measure
from vpo.training.costs import Cost, cost_of

SUMMARY: list[Key] = [("best@k", "answers", k) for k in (1, 3, 5, 10, 30)]
SUMMARY += [("one generation", "", "first"), ("one generation", "", "set")]
SUMMARY += [("diversity", "", "l1"), ("diversity", "", "coverage"), (ORACLE, "answers", 30)]


def comparison_tables(comparison: Comparison, names: Sequence[str]) -> list[dict[str, Any]]:
    """A summary of the runs, every measure, and the differences where there are several runs."""
    by_key = {(each.section, each.by, each.at): each for each in comparison.measures}
    shown = [key for key in SUMMARY if key in by_key]
    pairs = [f"{names[a]} − {names[b]}" for a, b in comparison.pairs]
    tables = [
        {
            "title": "Runs",
            "head": ["run", *(_short(by_key[key]) for key in shown)],
            "rows": [[name, *(_cell(by_key[key].values[run]) for key in shown)] for run, name in enumerate(names)],
        },
        {
            "title": "Every measure",
            "head": ["measure", "at", *names],
            "rows": [[title_of(each), str(each.at), *map(_cell, each.values)] for each in comparison.measures],
        },
    ]
    if pairs:
        tables.append(
            {
                "title": "Differences, paired over problems",
                "head": ["measure", "at", *pairs],
                "rows": [
                    [title_of(each), str(each.at), *(_cell(change, mark=True) for change in each.differences)]
                    for each in comparison.measures
                ],
            }
        )
    return tables


def _short(measure: Measure) -> str:
    names = {"best@k": f"best@{measure.at}", ORACLE: f"oracle share @{measure.at}"}
    return names.get(measure.section, str(measure.at))


def _cell(value: Interval | None, *, mark: bool = False) -> dict[str, Any] | None:
    if value is None:
        return None
    return {**asdict(value), "certain": mark and value.certain}


def seed_table(seeds: Mapping[str, Sequence[Sequence[Mapping[str, Any]]]], pools: int = 1) -> dict[str, Any]:
    """Return a table with a row for each pool of each seed of each run.

    Args:
        seeds: for each run, for each seed and each of its pools, the measures: section, by, at and mean.
        pools: of each seed.
    """
    found = [
        (
            [name, place // pools + 1, *([place % pools + 1] if pools > 1 else [])],
            {(each["section"], each["by"], each["at"]): each["mean"] for each in measures},
        )
        for name, group in seeds.items()
        for place, measures in enumerate(group)
    ]
    shown = [key for key in SUMMARY if all(key in means for _, means in found)]
    head = ["run", "seed", *(["pool"] if pools > 1 else [])]
    return {
        "title": "Every seed" if pools == 1 else "Every seed, and every pool drawn of it",
        "head": [*head, *(_short(Measure(*key, values=(), differences=())) for key in shown)],
        "rows": [[*name, *(means[key] for key in shown)] for name, means in found],
    }


def rate_table(rates: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return a table of what each learning rate got on the validation problems, and which was chosen."""
    tried = list(dict.fromkeys(rate for each in rates.values() for rate in each["validation"]))
    return {
        "title": "Learning rates, by the mean of best@k on validation problems",
        "head": ["method", "chosen", *(f"{rate:g}" for rate in tried)],
        "rows": [
            [name, f"{each['rate']:g}", *(each["validation"].get(rate) for rate in tried)]
            for name, each in rates.items()
        ],
    }


def costs_of(evaluations: Sequence[Sequence[Evaluation]], names: Sequence[str]) -> dict[str, Cost | None]:
    """Return what an average run of each group took to train, None for what was not trained."""
    folders = [[each.folder for each in group if each.folder] for group in evaluations]
    return {name: cost_of(group) for name, group in zip(names, folders, strict=True)}


def cost_table(costs: Mapping[str, Cost | None]) -> list[dict[str, Any]]:
    """One table, or none where nothing was trained."""
    rows = [
        [name, round(cost.rollouts), round(cost.tokens), round(cost.seconds, 1)] for name, cost in costs.items() if cost
    ]
    head = ["run", "rollouts", "tokens", "seconds"]
    return [{"title": "Cost of training, of an average run", "head": head, "rows": rows}] if rows else []
