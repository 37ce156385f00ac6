"""What each method could gain, before any training: simulated training on a pool of the untrained policy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vpo.core.checks import as_integer
from vpo.core.intervals import Interval
from vpo.core.targets import weights_for
from vpo.core.types import Floats
from vpo.evaluation.budgets import fewest_answers
from vpo.evaluation.intervals import intervals
from vpo.evaluation.pools import Pool, ProblemPool
from vpo.evaluation.similarity import similarity_of
from vpo.evaluation.simulate import RATE, STEPS, TRANSFER, Recipe, Simulated, Support, simulate
from vpo.evaluation.weighted import best_of_completion, best_of_draws, divergence, mean_l1
from vpo.util.errors import InputError

DEFAULT_KS = (1, 3, 5, 10, 30)
# Problems that are simulated: a hundred say as much as their intervals do, in seconds.
MOST_PROBLEMS = 100


@dataclass(frozen=True)
class Prediction:
    """What a method would change, averaged over problems, with intervals over these.

    Attributes:
        name: of the recipe.
        answers: M, of a completion.
        group: G, rollouts per problem.
        gains: k → best@k less that of the untrained policy.
        completion: the best answer of one completion.
        l1: mean L1 distance between two answers' scores.
        kl: how far the policy went, per answer.
        slope: above 0 the method rewards typical answers, which narrows the policy; below 0 rare ones.
    """

    name: str
    answers: int
    group: int
    gains: Mapping[int, Interval]
    completion: float
    l1: float
    kl: float
    slope: float


@dataclass(frozen=True)
class Outlook:
    """Predictions for one pool.

    Attributes:
        problems: how many were simulated.
        base: k → best@k of the untrained policy, of k answers drawn independently from its pool.
        base_l1: its mean L1 distance.
        without_texts: how many of them have no texts, so that typical answers are known by score vectors alone.
        settings: of the simulation.
        predictions: one for each recipe.
    """

    problems: int
    base: Mapping[int, float]
    base_l1: float
    without_texts: int
    settings: Mapping[str, float]
    predictions: tuple[Prediction, ...]

    def best(self, k: int) -> Prediction:
        """The prediction with the highest best@k."""
        return max(self.predictions, key=lambda each: float(each.gains[k].mean))


def predict(
    pool: Pool,
    recipes: Sequence[Recipe],
    *,
    target: Mapping[str, float] | None = None,
    ks: Sequence[int] | None = None,
    steps: int = STEPS,
    rate: float = RATE,
    transfer: float = TRANSFER,
    most: int = MOST_PROBLEMS,
) -> Outlook:
    """Predict what training with each recipe would change.

    Args:
        pool: of the untrained policy, 2 or more answers a problem.
        recipes: methods with their groups.
        target: w*, objective → weight, of sum 1; without it all objectives weigh alike.
        ks: of best@k; by default 1, 3, 5, 10 and 30, as far as the pool reaches.
        steps: of the simulation, as `rate` and `transfer` are (`vpo.evaluation.simulate`).
        rate: how far a step goes.
        transfer: the share of what is particular to a problem that is learned.
        most: problems to simulate, evenly spaced over the pool.
    """
    problems = _spaced(list(pool.problems.values()), most)
    ks = predicted_ks(pool, ks)
    for recipe in recipes:
        _check(recipe)
    supports = [_support(problem, target) for problem in problems]
    uniform = Simulated(tuple(np.full((1, len(each.scores_nD)), 1 / len(each.scores_nD)) for each in problems), 0.0)
    base_Pk = _best(supports, uniform, ks)
    predictions = []
    for recipe in recipes:
        after = simulate(recipe, supports, steps=steps, rate=rate, transfer=transfer)
        predictions.append(_prediction(recipe, supports, after, base_Pk, ks))
    return Outlook(
        problems=len(problems),
        base=dict(zip(ks, base_Pk.mean(axis=0).tolist(), strict=True)),
        base_l1=_l1(supports, uniform),
        without_texts=sum(problem.answers is None for problem in problems),
        settings={"steps": steps, "rate": rate, "transfer": transfer},
        predictions=tuple(predictions),
    )


def _prediction(
    recipe: Recipe,
    supports: Sequence[Support],
    after: Simulated,
    base_Pk: Floats,
    ks: Sequence[int],
) -> Prediction:
    gains_Pk = _best(supports, after, ks) - base_Pk
    columns = {k: gains_Pk[:, index] for index, k in enumerate(ks)}
    pairs = zip(supports, after.probabilities, strict=True)
    completions = [best_of_completion(each_Mn, support.values_n) for support, each_Mn in pairs]
    return Prediction(
        name=recipe.name,
        answers=recipe.method.answers,
        group=recipe.group,
        gains=intervals(columns, dict.fromkeys(ks, (-1.0, 1.0))),
        completion=float(np.mean(completions)),
        l1=_l1(supports, after),
        kl=float(np.mean([divergence(each_Mn) for each_Mn in after.probabilities])),
        slope=after.slope,
    )


def _best(supports: Sequence[Support], policy: Simulated, ks: Sequence[int]) -> Floats:
    """best@k of each problem, (P, len(ks)); of a set, answers of all positions are drawn alike."""
    pairs = zip(supports, policy.probabilities, strict=True)
    return np.stack([best_of_draws(each_Mn.mean(axis=0), support.values_n, ks) for support, each_Mn in pairs])


def _l1(supports: Sequence[Support], policy: Simulated) -> float:
    pairs = zip(supports, policy.probabilities, strict=True)
    return float(np.mean([mean_l1(each_Mn.mean(axis=0), support.scores_nD) for support, each_Mn in pairs]))


def _support(problem: ProblemPool, target: Mapping[str, float] | None) -> Support:
    names = sorted(problem.objectives)  # the fixed directions are not quite symmetric
    weights_D = weights_for(target, names, f"problem {problem.problem!r}")
    return Support(problem.problem, problem.scores_of(names), weights_D, similarity_of(problem))


def _spaced(problems: Sequence[ProblemPool], most: int) -> list[ProblemPool]:
    count = min(as_integer(most, "most", 1), len(problems))
    return [problems[index * len(problems) // count] for index in range(count)]


def predicted_ks(pool: Pool, ks: Sequence[int] | None) -> tuple[int, ...]:
    """The k of best@k: those given, or 1, 3, 5, 10 and 30 as far as the smallest problem of a pool has answers."""
    fewest = fewest_answers(pool.problems.values())
    if ks is None:
        return tuple(k for k in DEFAULT_KS if k <= fewest)
    for k in ks:
        if not 1 <= as_integer(k, "k") <= fewest:
            raise InputError(f"k must lie in 1..{fewest}, the answers of the smallest problem, not {k}")
    return tuple(sorted(set(ks)))


def _check(recipe: Recipe) -> None:
    recipe.method.check_group_size(as_integer(recipe.group, "group", 1))
    if recipe.method.target_in_prompt:
        raise InputError(
            f"{recipe.method.name} states a weighting in its prompts: what it gains cannot be predicted from one pool"
        )
