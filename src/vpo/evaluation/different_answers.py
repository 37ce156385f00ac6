"""The different answers to a problem with the scores to choose by, and how they may be wrong."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vpo.core.judge_error import ScorePrior, possible_scores, score_prior
from vpo.core.targets import weights_for
from vpo.core.types import Floats
from vpo.evaluation.answer_rows import choosable, copies, key_of, scores_of
from vpo.evaluation.judged import Judged
from vpo.util.grouping import group_by
from vpo.util.row_files import Row

SCENARIOS = 64  # of uncertain scores
MOST_CLASS = 3  # answers that were sampled 1, 2..3, 4..7 and 8 or more times


@dataclass(frozen=True)
class DifferentAnswers:
    """The different answers to a problem.

    Attributes:
        problem: its id.
        rows_n: the index of the first row of each answer.
        texts: of the answers, None for one without.
        counts_n: how often each was sampled.
    """

    problem: str
    rows_n: tuple[int, ...]
    texts: tuple[str | None, ...]
    counts_n: Floats

    def preference(self, values_n: Floats) -> Floats:
        """Ranks of the answers by a value; of equal values, what was sampled more often is higher, then the first."""
        first_n = -np.arange(len(values_n))
        order_n = np.lexsort((first_n, self.counts_n, np.round(values_n, 12)))
        ranks_n = np.empty(len(values_n))
        ranks_n[order_n] = np.arange(len(values_n))
        return ranks_n


@dataclass(frozen=True)
class ScoredAnswers(DifferentAnswers):
    """The different answers to a problem that have a known score.

    Attributes:
        objectives: of the scores to choose by, sorted: the fixed directions are not quite symmetric in their order.
        scores_nD: of each answer, the mean over its copies.
        weights_D: w*.
    """

    objectives: tuple[str, ...]
    scores_nD: Floats
    weights_D: Floats

    @property
    def values_n(self) -> Floats:
        """The score of each answer under w*."""
        values_n: Floats = self.scores_nD @ self.weights_D
        return values_n

    @property
    def classes_n(self) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
        """Answers by how often they were sampled: what a model writes often is right more often."""
        return np.minimum(np.log2(self.counts_n).astype(np.int64), MOST_CLASS)

    def scenarios(self, prior: ScorePrior | None) -> Floats:
        """What the true scores may be, (S, n, D); without errors one scenario, the scores."""
        if prior is None:
            return self.scores_nD[None]
        return possible_scores(
            self.scores_nD,
            error=prior.error,
            whole=prior.whole,
            prior=prior,
            classes=self.classes_n,
            size=SCENARIOS,
        )


def different_answers(problem: str, rows: Sequence[Row]) -> DifferentAnswers:
    """The different answers of a problem, with or without a score."""
    return DifferentAnswers(**_fields(problem, rows, copies(rows)))


def _fields(problem: str, rows: Sequence[Row], groups: Sequence[Sequence[int]]) -> dict[str, Any]:
    """The fields of `DifferentAnswers`."""
    return {
        "problem": problem,
        "rows_n": tuple(group[0] for group in groups),
        "texts": tuple(rows[group[0]].get("answer") for group in groups),
        "counts_n": np.asarray([len(group) for group in groups], dtype=np.float64),
    }


def scored_answers(
    problem: str, rows: Sequence[Row], judged: Judged, target: Mapping[str, float] | None
) -> ScoredAnswers | None:
    """The different answers of a problem with a score; None where the score of none is known.

    The target is that of the pool: it holds where the scores to choose by have the pool's objectives, else their own.
    """
    vectors = {index: judged.scores.get(key_of(rows[index])) for index in choosable(rows)}
    known = {index: vector for index, vector in vectors.items() if vector is not None}
    if not known:
        return None
    groups = [some for group in copies(rows) if (some := [index for index in group if index in known])]
    names = sorted(next(iter(known.values())))
    same = set(names) == set(rows[0]["scores"])
    scores = [scores_of([known[index] for index in group], names).mean(axis=0) for group in groups]
    return ScoredAnswers(
        **_fields(problem, rows, groups),
        objectives=tuple(names),
        scores_nD=np.stack(scores),
        weights_D=weights_for(target if same else judged.target, names, f"problem {problem!r}"),
    )


def priors_of(
    problems: Iterable[ScoredAnswers], error: float, *, whole: bool = False
) -> dict[tuple[str, ...], ScorePrior]:
    """Objectives → how common each vector of true scores is, over all problems with these; empty without errors."""
    if not error:
        return {}
    groups = group_by(problems, lambda each: each.objectives)
    return {
        names: score_prior(
            np.concatenate([each.scores_nD for each in some]),
            error=error,
            whole=whole,
            classes=np.concatenate([each.classes_n for each in some]),
        )
        for names, some in groups.items()
    }
