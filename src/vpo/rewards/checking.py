"""What a rewards file makes of some answers, before anything is trained on it."""

from typing import Any

import numpy as np

from vpo.rewards.rows import read_items
from vpo.rewards.toml import read_vector
from vpo.util.errors import InputError
from vpo.util.text import aligned

LEVELS = {"least": 0.0, "lower": 0.25, "median": 0.5, "upper": 0.75, "most": 1.0}


def check(rewards: str, answers: str) -> dict[str, Any]:
    """Score a file of answers, and return how each objective is spread, cut off, and where it abstains.

    Args:
        rewards: TOML file of rewards.
        answers: file of rows with `prompt`, `answer` or `completion`, and the columns that the rewards need.
    """
    items = read_items(answers)
    vector = read_vector(rewards)
    for column, name in vector.columns.items():
        if any(item.row.get(column) is None for item in items):
            hint = "; the text to score may stand in completion" if column == "answer" else ""
            raise InputError(f"{answers}: reward {name} needs the column {column!r} in every row{hint}")
    rows = vector.scores(items)
    counted = vector.counted()
    objectives = []
    for name, scores in zip(vector.names, zip(*rows, strict=True), strict=True):
        known = [score for score in scores if score is not None]
        cut, number = counted.get(f"clipped/{name}", (0.0, 0))
        spread = {level: float(np.quantile(known, share)) for level, share in LEVELS.items()} if known else {}
        facts = {"name": name, "abstained": len(scores) - len(known), "clipped": cut / number if number else None}
        objectives.append({**facts, "mean": float(np.mean(known)) if known else None, **spread})
    return {"answers": len(items), "objectives": objectives, "scoring": vector.described()}


def check_text(found: dict[str, Any]) -> str:
    """Return the outcome of a check as a table."""
    titles = ["", "mean", *LEVELS, "clipped", "abstained"]
    rows = [
        [
            each["name"],
            *(f"{each[name]:.3f}" if each.get(name) is not None else "-" for name in ("mean", *LEVELS)),
            "-" if each["clipped"] is None else f"{each['clipped']:.1%}",
            str(each["abstained"]),
        ]
        for each in found["objectives"]
    ]
    return "\n".join([f"{found['answers']} answers", *aligned([titles, *rows])])
