"""Distribution of a rewards file's scores over a file of answers, to look at before training: `vpo rewards`."""

from typing import Any

import numpy as np

from vpo.rewards.rows import read_samples
from vpo.rewards.toml import read_rewards
from vpo.util.errors import InputError
from vpo.util.text import aligned

LEVELS = {"least": 0.0, "lower": 0.25, "median": 0.5, "upper": 0.75, "most": 1.0}


def check(rewards: str, answers: str) -> dict[str, Any]:
    """Score a file of answers: per objective the mean, quantiles, the share clipped, and how often it abstained.

    Args:
        rewards: TOML file of rewards.
        answers: file of rows with `prompt`, `answer` or `completion`, and the columns that the rewards need.
    """
    samples = read_samples(answers)
    reward = read_rewards(rewards)
    for column, name in reward.columns.items():
        if any(sample.row.get(column) is None for sample in samples):
            hint = "; the text to score may stand in completion" if column == "answer" else ""
            raise InputError(f"{answers}: reward {name} needs the column {column!r} in every row{hint}")
    rows = reward.scores(samples)
    counts = reward.counted()
    objectives = []
    for name, scores in zip(reward.names, zip(*rows, strict=True), strict=True):
        known = [score for score in scores if score is not None]
        clipped, total = counts.get(f"clipped/{name}", (0.0, 0))
        quantiles = {level: float(np.quantile(known, share)) for level, share in LEVELS.items()} if known else {}
        objectives.append(
            {
                "name": name,
                "abstained": len(scores) - len(known),
                "clipped": clipped / total if total else None,
                "mean": float(np.mean(known)) if known else None,
                **quantiles,
            }
        )
    return {"answers": len(samples), "objectives": objectives, "scoring": reward.described()}


def check_text(result: dict[str, Any]) -> str:
    """The result of `check` as a table."""
    titles = ["", "mean", *LEVELS, "clipped", "abstained"]
    rows = [
        [
            each["name"],
            *(f"{each[name]:.3f}" if each.get(name) is not None else "-" for name in ("mean", *LEVELS)),
            "-" if each["clipped"] is None else f"{each['clipped']:.1%}",
            str(each["abstained"]),
        ]
        for each in result["objectives"]
    ]
    return "\n".join([f"{result['answers']} answers", *aligned([titles, *rows])])
