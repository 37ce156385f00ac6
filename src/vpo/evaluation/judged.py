"""Scores to choose answers by: those of the pool, of another pool, or of a rewards file, such as a judge's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

from vpo.evaluation.answer_rows import AnswerKey, AnswerPool, key_of, read_answers, words
from vpo.rewards.scorer import Sample
from vpo.rewards.vector import VectorReward
from vpo.tasks import Task
from vpo.util.errors import InputError
from vpo.util.progress import progress
from vpo.util.row_files import Row

# Answers that are scored in one call of the rewards.
CALL = 256


@dataclass(frozen=True)
class Judged:
    """What a judge says of answers.

    Attributes:
        scores: key of an answer → objective → number. An answer that is not there has no known score.
        target: w* of the judge's objectives, None for the uniform one.
        source: where the scores are from.
    """

    scores: Mapping[AnswerKey, Mapping[str, float]]
    target: Mapping[str, float] | None
    source: str


def own_scores(answers: AnswerPool) -> Judged:
    """The pool's own scores, which are its answers' under `answers.evaluation`."""
    pool = answers.evaluation.pool
    scores = {key_of(row): row["scores"] for rows in answers.problems.values() for row in rows}
    return Judged(scores, pool.target, pool.path)


def judged_by_pool(answers: AnswerPool, path: str | Path) -> Judged:
    """The scores of the same answers in another pool: those of the same problem, generation and position.

    Texts must agree where both pools have them: pools of two evaluations have the same keys and other answers.
    """
    judge = read_answers(path)
    judged_rows = {key_of(row): row for rows in judge.problems.values() for row in rows}
    known = [row for rows in answers.problems.values() for row in rows if key_of(row) in judged_rows]
    source = answers.evaluation.pool.path
    if not known:
        raise InputError(f"{path}: no answer of {source} is here: problem, generation and position must agree")
    for row in known:
        texts = [words(each["answer"]) for each in (row, judged_rows[key_of(row)]) if "answer" in each]
        if len(set(texts)) > 1:
            raise InputError(
                f"{path}: the text of problem {row['problem']!r}, generation {row['generation']!r}, position "
                f"{row['position']} is not that of {source}: the answers must be the same"
            )
    return own_scores(judge)


def judged_by_rewards(answers: AnswerPool, reward: VectorReward, task: Task[Any], split: str, source: str) -> Judged:
    """The scores that a vector reward, such as a judge, has for the answers. Copies are scored once.

    Args:
        answers: with texts.
        reward: what `vpo.rewards.toml.read_rewards` returned.
        task: of the problems, which has their questions.
        split: of the problems.
        source: the file of the rewards.
    """
    problems = {problem.id: problem for problem in task.problems(split)}
    if unknown := [name for name in answers.problems if name not in problems]:
        raise InputError(f"problem {unknown[0]!r} of the pool is not in split {split!r} of task {task.name}")
    rows = [row for some in answers.problems.values() for row in some if "answer" in row]
    if not rows:
        raise InputError(f"{answers.evaluation.pool.path}: the pool has no texts, so that they cannot be scored")
    samples = {(row["problem"], words(row["answer"])): row for row in reversed(rows)}  # the first copy
    vectors = _score(reward, task, problems, list(samples.values()))
    by_text = dict(zip(samples, vectors, strict=True))
    scores = {key_of(row): by_text[row["problem"], words(row["answer"])] for row in rows}
    known = {key: dict(zip(reward.names, vector, strict=True)) for key, vector in scores.items() if vector is not None}
    if not known:
        raise InputError(f"{source}: no answer has a known score ({reward.why_unknown()})")
    return Judged(known, reward.target, source)


def _score(
    reward: VectorReward, task: Task[Any], problems: Mapping[str, Any], rows: Sequence[Row]
) -> list[tuple[float, ...] | None]:
    """The vector of each answer, as a set of its own."""
    vectors: list[tuple[float, ...] | None] = []
    for start in progress(range(0, len(rows), CALL), "judging"):
        block = rows[start : start + CALL]
        vectors += reward.score([_sample(task, problems[row["problem"]], row["answer"]) for row in block])
    return vectors


def _sample(task: Task[Any], problem: Any, answer: str) -> Sample:
    """An answer with its question; the columns are those of the data set, or the fields of the problem."""
    columns = getattr(problem, "row", None)
    if columns is None and is_dataclass(problem):
        columns = {each.name: getattr(problem, each.name) for each in fields(problem)}
    return Sample(problem.id, task.question(problem), answer, columns or {})
