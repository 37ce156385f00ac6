"""Choosing at the end: k answers of each problem of a pool, by a judge that may err."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from vpo.core.cover import Cover, cover_columns, greedy_cover
from vpo.core.judge_error import ScorePrior
from vpo.core.simplex import DEFAULT_SIZE, directions
from vpo.core.types import Floats
from vpo.evaluation.answer_rows import AnswerPool, choosable, key_of, words
from vpo.evaluation.different_answers import (
    SCENARIOS,
    DifferentAnswers,
    ScoredAnswers,
    different_answers,
    priors_of,
    scored_answers,
)
from vpo.evaluation.judged import Judged, own_scores
from vpo.evaluation.select_config import SelectConfig
from vpo.evaluation.similarity import same_form, score_agreement, word_overlap
from vpo.tasks import Task
from vpo.util.errors import InputError
from vpo.util.progress import progress

# Directions for each scenario of uncertain scores: eight times as many pairs as the fixed set has directions.
DIRECTIONS_PER_SCENARIO = 8 * DEFAULT_SIZE // SCENARIOS


@dataclass(frozen=True)
class ProblemChoice:
    """What was chosen for a problem, as indices of its rows in `AnswerPool.problems`, in the order of choice.

    Attributes:
        chosen: at most k different answers; the first j are the choice of j.
        top: at most k different answers, the best under w* by the same scores.
        different: how many different answers there are.
    """

    chosen: tuple[int, ...]
    top: tuple[int, ...]
    different: int


@dataclass(frozen=True)
class Selection:
    """Choices by problem, and what their reader should know."""

    problems: Mapping[str, ProblemChoice]
    notes: tuple[str, ...]


def select(
    answers: AnswerPool,
    k: int,
    config: SelectConfig | None = None,
    *,
    target: Mapping[str, float] | None = None,
    judged: Judged | None = None,
    task: Task[Any] | None = None,
) -> Selection:
    """Choose k different answers of each problem, or all where there are fewer.

    Args:
        answers: what `read_answers` returned.
        k: how many.
        config: how; by default the cover.
        target: w*, objective → weight, of sum 1; by default uniform. Of a judge with other objectives, its own counts.
        judged: the scores to choose by; by default those of the pool.
        task: of the problems, whose normal form of an answer `similarity` exact compares; by default the words.
    """
    if k < 1:
        raise InputError(f"k must be 1 or more, not {k}")
    config = config or SelectConfig()
    judged = judged or own_scores(answers)
    scored = {name: scored_answers(name, rows, judged, target) for name, rows in answers.problems.items()}
    known = [each for each in scored.values() if each is not None]
    priors = priors_of(known, config.error, whole=config.error_of == "answers")
    normal_form = words if task is None else task.normal_form
    choices = {}
    for name, each in progress(list(scored.items()), f"choosing from {answers.evaluation.pool.path}"):
        prior = None if each is None else priors.get(each.objectives)
        every = different_answers(name, answers.problems[name])
        choices[name] = _choose(every, each, k, config, prior, normal_form)
    return Selection(choices, tuple(_notes(answers, judged, choices, k, config)))


def _choose(
    every: DifferentAnswers,
    scored: ScoredAnswers | None,
    k: int,
    config: SelectConfig,
    prior: ScorePrior | None,
    normal_form: Callable[[str], Hashable],
) -> ProblemChoice:
    """The choice of one problem: of every answer where texts vote, else of those that have a score."""
    top = every.rows_n[:k] if scored is None else _rows(scored, np.argsort(-scored.preference(scored.values_n))[:k])
    if not config.uses_scores:
        vote = _least_risk(every, k, _text_similarity(every, config.similarity, normal_form))
        return ProblemChoice(_rows(every, vote.order), top, len(every.rows_n))
    if scored is None:
        return ProblemChoice(top, top, len(every.rows_n))
    by_risk = config.by == "mbr"
    cover = _scored_risk(scored, k, config, normal_form) if by_risk else _cover(scored, k, config, prior)
    return ProblemChoice(_rows(scored, cover.order), top, len(scored.rows_n))


def _rows(problem: DifferentAnswers, indices: Iterable[int]) -> tuple[int, ...]:
    return tuple(problem.rows_n[index] for index in indices)


def _cover(problem: ScoredAnswers, k: int, config: SelectConfig, prior: ScorePrior | None) -> Cover:
    """The answers whose best is good on average over the weightings, or under w*, and over what the scores may be."""
    scenarios_SnD = problem.scenarios(prior)
    size = DEFAULT_SIZE if prior is None else DIRECTIONS_PER_SCENARIO
    if config.by == "target":
        points_KD: Floats = problem.weights_D[None]
    else:
        points_KD = directions(len(problem.objectives), config.concentration, size=size)
    preference_n = problem.preference(scenarios_SnD.mean(axis=0) @ problem.weights_D)
    k = min(k, len(problem.rows_n))
    return greedy_cover(scenarios_SnD, k, directions=points_KD, preference=preference_n)


def _scored_risk(problem: ScoredAnswers, k: int, config: SelectConfig, normal_form: Callable[[str], Hashable]) -> Cover:
    """The least risk where scores weigh the votes, or say how similar answers are."""
    if config.similarity == "scores":
        similarity_nn = score_agreement(problem.scores_nD, problem.weights_D)
    else:
        similarity_nn = _text_similarity(problem, config.similarity, normal_form)
    return _least_risk(problem, k, similarity_nn, problem.values_n if config.weigh_votes else None)


def _least_risk(problem: DifferentAnswers, k: int, similarity_nn: Floats, values_n: Floats | None = None) -> Cover:
    """The answers of which one is similar to what was sampled: of one answer, minimum Bayes risk.

    With equality as the similarity that is the majority vote of self-consistency. Values weigh the votes. Without them
    no score breaks a tie: where all texts differ, it alone would choose.
    """
    values_n = np.ones(len(problem.rows_n)) if values_n is None else values_n
    votes_n = problem.counts_n * np.maximum(values_n, 0.0)
    votes_n = votes_n if votes_n.sum() > 0 else problem.counts_n
    k = min(k, len(problem.rows_n))
    preference_n = problem.preference(values_n)
    return cover_columns(similarity_nn, k, weights_C=votes_n / votes_n.sum(), preference_n=preference_n)


def _text_similarity(problem: DifferentAnswers, similarity: str, normal_form: Callable[[str], Hashable]) -> Floats:
    texts = [text for text in problem.texts if text is not None]
    if len(texts) < len(problem.texts):
        raise InputError(
            f"similarity {similarity} needs texts, and problem {problem.problem!r} has none: choose scores"
        )
    return same_form(texts, normal_form) if similarity == "exact" else word_overlap(texts)


def _notes(
    answers: AnswerPool, judged: Judged, choices: Mapping[str, ProblemChoice], k: int, config: SelectConfig
) -> list[str]:
    """What the reader of the choices should know."""
    groups = [[rows[index] for index in choosable(rows)] for rows in answers.problems.values()]
    known = [[key_of(row) in judged.scores for row in rows] for rows in groups]
    silent = sum(map(len, answers.problems.values())) - sum(map(len, groups))
    unknown = sum(each.count(False) for each in known)
    blind = sum(not any(each) for each in known)
    few = sum(each.different < k for each in choices.values())
    notes = {
        "answers without a text, which are not chosen": silent,
        f"answers without a score in {judged.source}, which are not chosen": unknown if config.uses_scores else 0,
        "problems of which no answer has a score, whose first answers are chosen": blind if config.uses_scores else 0,
        f"problems with fewer than {k} different answers, all of which are chosen": few,
    }
    return [f"{note}: {count}" for note, count in notes.items() if count]
