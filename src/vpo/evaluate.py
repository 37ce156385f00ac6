"""From a policy and problems to a pool: sample, parse, score."""

from collections.abc import Iterator, Sequence
from typing import Any

from vpo.core.arrays import whole_number
from vpo.errors import InputError
from vpo.generate import Sampling, complete
from vpo.policies import Policy
from vpo.score import Tally, scored_rows
from vpo.tasks import Task


def evaluate(
    policy: Policy,
    task: Task[Any],
    problems: Sequence[Any],
    answers: int,
    pool: int,
    sampling: Sampling,
    tally: Tally | None = None,
    stated: Sequence[float] | None = None,
) -> Iterator[dict[str, Any]]:
    """Return the rows of a pool, sampled while they are read.

    Args:
        policy: what writes.
        task: what asks and scores.
        problems: of the task.
        answers: m, how many answers a generation is asked for.
        pool: answers per problem, a multiple of m.
        sampling: how completions are drawn.
        tally: counts what is read.
        stated: a weighting that the prompts state, for a policy that was trained to be told one.
    """
    whole_number(answers, "answers", 1)
    if whole_number(pool, "pool", 1) % answers:
        raise InputError(f"pool must be a multiple of the {answers} answers of a generation, not {pool}")
    tally = Tally() if tally is None else tally
    tally.target = dict(zip(task.names, task.weights, strict=True))
    return _sampled(policy, task, problems, answers, pool // answers, sampling, tally, stated)


def _sampled(
    policy: Policy,
    task: Task[Any],
    problems: Sequence[Any],
    answers: int,
    generations: int,
    sampling: Sampling,
    tally: Tally,
    stated: Sequence[float] | None,
) -> Iterator[dict[str, Any]]:
    asked = [(problem, generation) for problem in problems for generation in range(generations)]
    prompts = [task.ask(problem, answers, stated) for problem, _ in asked]
    for (problem, generation), (text, tokens) in zip(asked, complete(policy, prompts, sampling), strict=True):
        yield from scored_rows(task, problem, text, answers, {"generation": generation, "tokens": tokens}, tally)
