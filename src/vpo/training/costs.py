"""What training took: rollouts, generated tokens, and seconds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vpo.models.run_folder import is_run
from vpo.training.runs import Run


@dataclass(frozen=True)
class Cost:
    """Of one run, or of an average one of several: rollouts, the tokens of their completions, and seconds of steps."""

    rollouts: float
    tokens: float
    seconds: float


def cost_of(folders: Sequence[Path]) -> Cost | None:
    """Return what an average run of some folders took, or None where none of them is a run with a log."""
    costs = [_of_run(Run(folder)) for folder in folders if is_run(folder) and Run(folder).metrics.is_file()]
    return Cost(*np.mean(costs, axis=0).tolist()) if costs else None


def _of_run(run: Run) -> tuple[float, float, float]:
    rows = run.steps()
    lengths = [row["completions/mean_length"] for row in rows if "completions/mean_length" in row]  # of each batch
    rollouts = run.config().rollouts
    return rollouts * len(lengths), rollouts * sum(lengths), sum(row.get("step_time", 0.0) for row in rows)


def cost_text(costs: Mapping[str, Cost | None]) -> str:
    """Return what each run took, a line each."""
    width = max(map(len, costs))
    head = f"{'training'.ljust(width)}  {'rollouts':>9}  {'tokens':>11}  {'seconds':>7}"
    lines = [
        f"{name.ljust(width)}  {cost.rollouts:9,.0f}  {cost.tokens:11,.0f}  {cost.seconds:7.0f}"
        for name, cost in costs.items()
        if cost
    ]
    return "\n".join([head, *lines])
