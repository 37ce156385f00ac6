"""Objectives that are sums of others, recognised by regression."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from vpo.core.geometry import columns
from vpo.core.types import Floats
from vpo.evaluation.agreement import centred
from vpo.evaluation.objective_sets import ObjectiveSet
from vpo.evaluation.pools import Pool

# An objective is the sum of others where they explain this share of its variance over the answers of a problem,
EXPLAINED = 0.98
# and each of them moves it by this share of its own spread. Less is a fit to noise.
MOVES = 0.1
# Differences between answers that there must be for each objective, else a perfect fit says nothing.
FREEDOM = 5


@dataclass(frozen=True)
class Sum:
    """An objective that is a sum of others.

    Attributes:
        objective: its name.
        parts: objective → how much of it is in one unit of the sum.
        explained: the share of its variance that the parts explain.
    """

    objective: str
    parts: Mapping[str, float]
    explained: float


def without_sums(pool: Pool, objectives: ObjectiveSet) -> tuple[ObjectiveSet, tuple[Sum, ...]]:
    """Leave out one sum of others after the other, the best explained first."""
    sums: list[Sum] = []
    while best := max(_sums(pool, objectives), key=lambda each: round(each.explained, 6), default=None):
        sums.append(best)
        objectives = objectives.drop(best.objective, onto=best.parts)
    return objectives, tuple(sums)


def _sums(pool: Pool, objectives: ObjectiveSet) -> Iterator[Sum]:
    """The objectives that two or more others add up to, with weights of 0 or more.

    A difference is no sum: of a, b and a + b, only a + b is one.
    """
    rows_nD = centred(objectives.of(pool))
    names = objectives.names
    if len(names) < 3 or len(rows_nD) - len(pool.problems) < FREEDOM * len(names):
        return
    spread_D = columns(rows_nD).spread
    scaled_nD = rows_nD / spread_D
    for index, name in enumerate(names):
        others = [each for each in range(len(names)) if each != index]
        weights, _ = _regress(scaled_nD[:, others], scaled_nD[:, index])
        parts = [each for each, weight in zip(others, weights, strict=True) if weight >= MOVES]
        if len(parts) < 2:
            continue
        weights, explained = _regress(scaled_nD[:, parts], scaled_nD[:, index])
        if explained >= EXPLAINED:
            units = weights * spread_D[index] / spread_D[parts]
            yield Sum(name, dict(zip((names[part] for part in parts), units.tolist(), strict=True)), explained)


def _regress(inputs_nD: Floats, output_n: Floats) -> tuple[Floats, float]:
    """The weights of 0 or more that fit best, and the share of the output's square that they explain."""
    from scipy.optimize import nnls  # slow to import

    weights_D, residual = nnls(inputs_nD, output_n)
    return weights_D, float(1 - residual**2 / (output_n @ output_n))
