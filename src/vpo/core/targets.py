"""Targets: the weighting w* of the objectives that is deployed and reported, as users write it."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from vpo.core.checks import check_weights
from vpo.core.types import Floats
from vpo.util.errors import InputError


def parse_target(text: str) -> dict[str, float]:
    """Read "gold=1,diamond=3" as weights scaled to sum 1. Objectives that are not named weigh 0."""
    weights: dict[str, float] = {}
    for part in text.split(","):
        name, equals, number = (piece.strip() for piece in part.rpartition("="))
        try:
            weight = float(number)
        except ValueError:
            weight = math.nan
        if not (equals and name and math.isfinite(weight) and weight >= 0):
            raise InputError(f"target must be written NAME=WEIGHT,… with weights of 0 or more, not {part!r}")
        if name in weights:
            raise InputError(f"target must name each objective once, and names {name!r} twice")
        weights[name] = weight
    return scaled(weights)


def scaled(target: Mapping[str, float]) -> dict[str, float]:
    """The target with its weights scaled to sum 1."""
    total = sum(target.values())
    if not 0 < total < math.inf or min(target.values()) < 0:
        bound = "of 0 or more, of a sum greater than 0 and finite"
        raise InputError(f"target must hold weights {bound}, not {dict(target)}")
    return {name: weight / total for name, weight in target.items()}


def weights_for(target: Mapping[str, float] | None, objectives: Sequence[str], of: str = "") -> Floats:
    """The weights in the order of the objectives, (D,); uniform without a target.

    Args:
        target: objective → weight, of sum 1.
        objectives: their names.
        of: whose objectives they are, such as "problem 'x'", for the message about an unknown objective.
    """
    if target is None:
        return np.full(len(objectives), 1 / len(objectives))
    for name in target:
        if name not in objectives:
            whose = f"the objectives of {of}" if of else "the objectives"
            raise InputError(f"target names {name!r}, and {whose} are {', '.join(objectives)}")
    weights_D = np.asarray([target.get(name, 0.0) for name in objectives], dtype=np.float64)
    check_weights(weights_D, "target")
    return weights_D
