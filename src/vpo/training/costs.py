"""The cost of training: rollouts, generated tokens, and seconds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vpo.models.run_folder import is_run
from vpo.training.runs import Run, has_log


@dataclass(frozen=True)
class Cost:
    """Cost of a run, or the mean of several: rollouts, tokens of their completions, seconds of steps."""

    rollouts: float
    tokens: float
    seconds: float


def cost_of(folders: Sequence[Path]) -> Cost | None:
    """The mean cost of the runs in some folders; None where no folder is a run that vpo logged."""
    costs = [_run_cost(Run(folder)) for folder in folders if is_run(folder) and has_log(folder)]
    return Cost(*np.mean(costs, axis=0).tolist()) if costs else None


def _run_cost(run: Run) -> tuple[float, float, float]:
    rows = run.steps()
    lengths = [row["completions/mean_length"] for row in rows if "completions/mean_length" in row]  # a row per batch
    rollouts = run.config().rollouts
    return rollouts * len(lengths), rollouts * sum(lengths), sum(row.get("step_time", 0.0) for row in rows)


def cost_text(costs: Mapping[str, Cost | None]) -> str:
    """A table of costs, a line per name."""
    width = max(map(len, costs))
    head = f"{'training'.ljust(width)}  {'rollouts':>9}  {'tokens':>11}  {'seconds':>7}"
    lines = [
        f"{name.ljust(width)}  {cost.rollouts:9,.0f}  {cost.tokens:11,.0f}  {cost.seconds:7.0f}"
        for name, cost in costs.items()
        if cost
    ]
    return "\n".join([head, *lines])
