"""The budgets at which pools are compared: those that every problem of every pool can serve."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from vpo.core.checks import as_integer
from vpo.evaluation.pools import Pool, ProblemPool
from vpo.util.errors import InputError

DEFAULT_KS = (1, 3, 5, 10, 30, 100, 300)
TOKEN_BUDGETS = 5


@dataclass(frozen=True)
class Budgets:
    """The same for all pools of a comparison: k in answers, k in generations, and numbers of tokens."""

    answers: tuple[int, ...]
    generations: tuple[int, ...]
    tokens: tuple[int, ...]


def shared_problems(pools: Sequence[Pool]) -> list[str]:
    """Names of the problems that all pools have; refuses pools that share none, or differ in the objectives of one."""
    names = [name for name in pools[0].problems if all(name in pool.problems for pool in pools)]
    if not names:
        raise InputError(f"the pools must share problems, and {' and '.join(pool.path for pool in pools)} share none")
    for pool in pools[1:]:
        for name in names:
            ours, theirs = pools[0].problems[name].objectives, pool.problems[name].objectives
            if set(ours) != set(theirs):
                raise InputError(
                    f"the pools must have the same objectives: problem {name!r} has {', '.join(ours)} in "
                    f"{pools[0].path} and {', '.join(theirs)} in {pool.path}"
                )
    return names


def fit_budgets(pools: Sequence[Sequence[ProblemPool]], ks: Sequence[int] | None) -> Budgets:
    """Choose budgets.

    Args:
        pools: the problems of each pool.
        ks: wanted in answers, and in generations as far as they reach; by default 1, 3, 5, 10, … up to all of them.
    """
    problems = [problem for pool in pools for problem in pool]
    answers, generations = fewest_answers(problems), fewest_generations(problems)
    for k in () if ks is None else ks:
        if not 1 <= as_integer(k, "k") <= answers:
            raise InputError(f"k must lie in 1..{answers}, the answers of the smallest problem, not {k}")
    return Budgets(
        answers=_up_to(answers, ks),
        generations=_up_to(generations, ks),
        tokens=_shared_token_budgets(pools),
    )


def fewest_answers(problems: Iterable[ProblemPool]) -> int:
    """The answers of the problem that has the fewest."""
    return min(len(problem.scores_nD) for problem in problems)


def fewest_generations(problems: Iterable[ProblemPool]) -> int:
    """The generations of the problem that has the fewest."""
    return min(len(problem.set_sizes_N) for problem in problems)


def has_tokens(problems: Sequence[ProblemPool]) -> bool:
    """Whether tokens are known: they are for all problems of a pool, or for none."""
    return problems[0].tokens_N is not None


def token_range(problems: Iterable[ProblemPool]) -> tuple[float, float]:
    """Tokens of one generation and of all generations of a problem, each averaged over the problems."""
    tokens = [problem.tokens_N for problem in problems if problem.tokens_N is not None]
    one = float(np.mean([tokens_N.mean() for tokens_N in tokens]))
    everything = float(np.mean([tokens_N.sum() for tokens_N in tokens]))
    return one, everything


def spaced(low: float, high: float, count: int) -> tuple[int, ...]:
    """At most `count` different integers from low to high, evenly spaced in the logarithm."""
    return tuple(sorted({round(budget) for budget in np.geomspace(low, high, count)}))


def _up_to(most: int, ks: Sequence[int] | None) -> tuple[int, ...]:
    wanted = {*DEFAULT_KS, most} if ks is None else {int(k) for k in ks}
    return tuple(k for k in sorted(wanted) if k <= most)


def _shared_token_budgets(pools: Sequence[Sequence[ProblemPool]]) -> tuple[int, ...]:
    """From one generation of the most expensive pool to all of the cheapest one; none where tokens are unknown."""
    if not all(has_tokens(problems) for problems in pools):
        return ()
    ranges = [token_range(problems) for problems in pools]
    low, high = max(one for one, _ in ranges), min(everything for _, everything in ranges)
    return spaced(low, high, TOKEN_BUDGETS) if low <= high else ()
