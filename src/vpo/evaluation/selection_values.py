"""What chosen answers are worth: under random weightings, under w*, and in problems solved; against other choices."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vpo.core.at_k import best_at_k
from vpo.core.cover import cover_columns
from vpo.core.intervals import Interval, bootstrap
from vpo.core.simplex import directions
from vpo.core.targets import weights_for
from vpo.core.types import Floats
from vpo.evaluation.answer_rows import AnswerPool, scores_of
from vpo.evaluation.select import ProblemChoice, Selection
from vpo.util.progress import progress
from vpo.util.row_files import Row

WEIGHTINGS, TARGET, SOLVED = "weightings", "target", "solved"
CHOSEN, RANDOM, TOP, BOUND, ALL = "chosen", "random", "top", "bound", "all"
SETS = (CHOSEN, RANDOM, TOP, BOUND, ALL)
ROUNDING = 1e-9
OTHERS = (RANDOM, TOP)  # which the chosen answers are compared with


@dataclass(frozen=True)
class SetValues:
    """The values of k answers of each problem, averaged over problems.

    Attributes:
        k: how many answers.
        values: set → measure → value. Sets: `chosen`; `random`, the expected value of k answers as they were sampled;
            `top`, the best k under w* by the scores that the choice was made by; `bound`, which no k answers exceed;
            `all` answers. Measures: `weightings`, the expected best score over random weightings; `target`, the best
            score under w*; `solved`, whether one solves the problem, where the pool says so.
        differences: `random` and `top` → measure → by how much the chosen answers exceed them, paired over problems.
    """

    k: int
    values: Mapping[str, Mapping[str, Interval]]
    differences: Mapping[str, Mapping[str, Interval]]


def selection_values(
    answers: AnswerPool,
    selection: Selection,
    ks: Sequence[int],
    *,
    target: Mapping[str, float] | None = None,
    concentration: float = 1.0,
) -> list[SetValues]:
    """Measure chosen answers by the scores of the pool, for each k.

    Args:
        answers: that were chosen from.
        selection: what `select` returned, for the largest k.
        ks: numbers of answers; the first k of each choice count.
        target: w*, objective → weight; by default uniform.
        concentration: α of the Dirichlet distribution of random weightings.
    """
    problems = [
        _problem_values(rows, selection.problems[name], ks, weights_of(name, rows, target), concentration)
        for name, rows in progress(list(answers.problems.items()), f"measuring {answers.evaluation.pool.path}")
    ]
    return [_averaged(k, [each[index] for each in problems]) for index, k in enumerate(ks)]


def weights_of(name: str, rows: Sequence[Row], target: Mapping[str, float] | None) -> dict[str, float]:
    """w* of a problem, by objective in the order of the names."""
    names = sorted(rows[0]["scores"])
    return dict(zip(names, weights_for(target, names, f"problem {name!r}").tolist(), strict=True))


def measure_columns(rows: Sequence[Row], weights: Mapping[str, float], concentration: float = 1.0) -> dict[str, Floats]:
    """Measure → a value of each answer in each of C columns, (n, C), such as its score under each weighting."""
    scores_nD = scores_of([row["scores"] for row in rows], list(weights))
    weights_D = np.asarray(list(weights.values()))
    columns = {
        WEIGHTINGS: scores_nD @ directions(len(weights), concentration).T,
        TARGET: scores_nD @ weights_D[:, None],
    }
    if "solved" in rows[0]:
        columns[SOLVED] = np.asarray([[float(row["solved"])] for row in rows])
    return columns


def set_value(values_nC: Floats, rows: Sequence[int]) -> float:
    """The value of some answers together: the mean over the columns of the best of them."""
    return float(values_nC[list(rows)].max(axis=0).mean())


# Set → measure → value, of one problem.
_Values = dict[str, dict[str, float]]


def _problem_values(
    rows: Sequence[Row], choice: ProblemChoice, ks: Sequence[int], weights: Mapping[str, float], concentration: float
) -> list[_Values]:
    """The values of one problem, for each k."""
    columns = measure_columns(rows, weights, concentration)
    fitting = [min(k, len(rows)) for k in ks]
    by_measure = {name: _measured(values_nC, choice, ks, fitting) for name, values_nC in columns.items()}
    return [
        {each: {name: values[index][each] for name, values in by_measure.items()} for each in SETS}
        for index in range(len(ks))
    ]


def _measured(
    values_nC: Floats, choice: ProblemChoice, ks: Sequence[int], fitting: Sequence[int]
) -> list[dict[str, float]]:
    """The value of each set, for each k: the mean over the columns of the best of its rows."""
    random_k = best_at_k(values_nC.T, fitting).mean(axis=0)
    different_nC = np.unique(values_nC, axis=0)
    bounds_k = cover_columns(different_nC, min(max(fitting), len(different_nC))).bounds
    everything = set_value(values_nC, range(len(values_nC)))
    return [
        {
            CHOSEN: set_value(values_nC, choice.chosen[:k]),
            RANDOM: float(random_k[index]),
            TOP: set_value(values_nC, choice.top[:k]),
            BOUND: float(bounds_k[min(fit, len(bounds_k)) - 1]),
            ALL: everything,
        }
        for index, (k, fit) in enumerate(zip(ks, fitting, strict=True))
    ]


def _averaged(k: int, problems: Sequence[_Values]) -> SetValues:
    """Means over problems with their intervals."""
    measures = list(problems[0][CHOSEN])
    columns = {
        each: {name: np.asarray([problem[each][name] for problem in problems]) for name in measures} for each in SETS
    }
    values = {each: {name: _interval(column) for name, column in some.items()} for each, some in columns.items()}
    differences = {
        each: {name: _interval(columns[CHOSEN][name] - columns[each][name], paired=True) for name in measures}
        for each in OTHERS
    }
    return SetValues(k, values, differences)


def _interval(values_P: Floats, *, paired: bool = False) -> Interval:
    """The mean and its interval; without one for a single problem."""
    if len(values_P) < 2:
        return Interval(float(values_P[0]), None, None)
    if not paired and values_P.min() >= -ROUNDING and values_P.max() <= 1 + ROUNDING:
        return bootstrap(np.clip(values_P, 0.0, 1.0), bounds=(0.0, 1.0))
    return bootstrap(values_P)
