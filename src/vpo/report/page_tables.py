"""The tables of the page: a title, a head, and rows of cells that are text, numbers or intervals."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from vpo.core.intervals import Interval
from vpo.evaluation.compare import Comparison
from vpo.evaluation.eval_folder import Evaluation
from vpo.evaluation.metrics import BEST, FIRST, ORACLE_SHARE, SET, Budget, Metric
from vpo.training.costs import Cost, cost_of

# The columns of the summary.
SUMMARY = (
    *(Metric(BEST, Budget.ANSWERS, k) for k in (1, 3, 5, 10, 30)),
    *map(Metric, (FIRST, SET, "l1", "coverage")),
    Metric(ORACLE_SHARE, Budget.ANSWERS, 30),
)
EVERY_METRIC = "Every metric"


def comparison_tables(comparison: Comparison, names: Sequence[str]) -> list[dict[str, Any]]:
    """A summary of the runs, every metric, and the differences where there are several runs.

    Tables with the same `views` are one on the page, where the reader chooses which to see.
    """
    values = {row.metric: row.values for row in comparison.rows}
    shown = [metric for metric in SUMMARY if metric in values]
    pairs = [f"{names[a]} − {names[b]}" for a, b in comparison.pairs]
    count = f"{len(comparison.problems)} problems"
    tables = [
        {
            "title": f"Runs, over {count}",
            "head": ["run", *(metric.label for metric in shown)],
            "rows": [[name, *(_cell(values[metric][run]) for metric in shown)] for run, name in enumerate(names)],
        },
        {
            "title": f"Every metric, over {count}",
            "views": EVERY_METRIC,
            "head": ["metric", "at", *names],
            "rows": [[row.metric.title, str(row.metric.at), *map(_cell, row.values)] for row in comparison.rows],
        },
    ]
    if pairs:
        tables.append(
            {
                "title": f"Differences, paired over {count}",
                "views": EVERY_METRIC,
                "head": ["metric", "at", *pairs],
                "rows": [
                    [row.metric.title, str(row.metric.at), *(_cell(each, mark=True) for each in row.differences)]
                    for row in comparison.rows
                ],
            }
        )
    return tables


def _cell(value: Interval | None, *, mark: bool = False) -> dict[str, Any] | None:
    if value is None:
        return None
    return {**asdict(value), "certain": mark and value.certain}


def seed_table(seeds: Mapping[str, Sequence[Sequence[Mapping[str, Any]]]], pools: int = 1) -> dict[str, Any]:
    """A row per pool of each seed of each run.

    Args:
        seeds: for each run, for each seed and each of its pools, the metrics as in results.json: section, by, at, mean.
        pools: of each seed.
    """
    rows = [
        (
            [run, index // pools + 1, *([index % pools + 1] if pools > 1 else [])],
            {Metric.from_data(each): each["mean"] for each in metrics},
        )
        for run, group in seeds.items()
        for index, metrics in enumerate(group)
    ]
    shown = [metric for metric in SUMMARY if all(metric in means for _, means in rows)]
    head = ["run", "seed", *(["pool"] if pools > 1 else [])]
    return {
        "title": "Every seed" if pools == 1 else "Every seed, and every pool sampled from it",
        "head": [*head, *(metric.label for metric in shown)],
        "rows": [[*name, *(means[metric] for metric in shown)] for name, means in rows],
    }


def rate_table(rates: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The validation score of each learning rate, and the rate that was chosen."""
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
    """The training cost of an average run of each group, None for what was not trained."""
    folders = [[each.folder for each in group if each.folder] for group in evaluations]
    return {name: cost_of(group) for name, group in zip(names, folders, strict=True)}


def cost_table(costs: Mapping[str, Cost | None]) -> list[dict[str, Any]]:
    """One table, or none where nothing was trained. The page shows it as cards."""
    rows = [
        [name, round(cost.rollouts), round(cost.tokens), round(cost.seconds, 1)] for name, cost in costs.items() if cost
    ]
    head = ["run", "rollouts", "tokens", "seconds"]
    title = "Cost of training, of an average run"
    return [{"title": title, "cards": True, "head": head, "rows": rows}] if rows else []
