"""What the reader of a comparison should know: problems that were left out, budgets that end early, zeros."""

from collections.abc import Iterator, Sequence

from vpo.evaluation.budgets import Budgets, fewest_answers, fewest_generations, has_tokens
from vpo.evaluation.pools import Pool


def comparison_notes(
    pools: Sequence[Pool], names: Sequence[str], budgets: Budgets, ks: Sequence[int] | None
) -> list[str]:
    """Notes on a comparison.

    Args:
        pools: that are compared.
        names: of the problems that all pools have.
        budgets: at which they are compared.
        ks: budgets that were wanted, None for the default ones.
    """
    return [
        *_problem_notes(pools, names),
        *_answer_notes(pools, names),
        *_token_notes(pools, names, budgets),
        *_generation_notes(pools, names, ks),
    ]


def _problem_notes(pools: Sequence[Pool], names: Sequence[str]) -> Iterator[str]:
    for pool in pools:
        if extra := len(pool.problems) - len(names):
            yield f"{extra} of {len(pool.problems)} problems of {pool.path} are not in every pool and are left out"


def _answer_notes(pools: Sequence[Pool], names: Sequence[str]) -> Iterator[str]:
    problems = [pool.problems[name] for pool in pools for name in names]
    smallest = min(problems, key=lambda problem: len(problem.scores_nD))
    fewest = fewest_answers(problems)
    if fewest < max(len(problem.scores_nD) for problem in problems):
        yield f"k ends at {fewest}, the answers of problem {smallest.problem!r}; others have more"
    for pool in pools:
        if missing := sum(pool.problems[name].missing for name in names):
            yield f"{missing} answers missing from their sets in {pool.path} count as zeros"
        if pool.set_size is None:
            yield f"first and set are not reported for {pool.path}: its generations differ in their answers"


def _token_notes(pools: Sequence[Pool], names: Sequence[str], budgets: Budgets) -> Iterator[str]:
    without = [pool.path for pool in pools if not has_tokens([pool.problems[name] for name in names])]
    if without:
        yield f"nothing is reported by tokens: {', '.join(without)} has no field 'tokens'"
    elif not budgets.tokens:
        yield "no token budget is both one generation of every pool or more, and at most all of every pool"


def _generation_notes(pools: Sequence[Pool], names: Sequence[str], ks: Sequence[int] | None) -> Iterator[str]:
    fewest = fewest_generations(pool.problems[name] for pool in pools for name in names)
    if ks is not None and max(ks) > fewest:
        yield f"by generations k ends at {fewest}, the fewest generations of a problem"
