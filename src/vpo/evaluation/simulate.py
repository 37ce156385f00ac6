"""Training as it would go on a pool of the untrained policy: policy improvement by a method's own advantages.

The policy of a problem is a distribution π over the answers of its pool, uniform before training; in a set each
position has its own. One step draws groups from π, computes the method's advantages on them, averages these over equal
score vectors to a(y), the expected advantage of an answer, and multiplies

    π(y) ← π(y) · exp(η · g(y)) / Z,

the improvement of π by g that costs least in KL. With g = a every method would gain on every problem, as if each answer
could be told from its score. On problems that training did not see, a policy cannot tell that. So g has two parts:

    g(y) = c · τ(y) + ρ · (a(y) − c · τ(y))

τ(y) = log Σ_z π(z) · similarity(y, z) is how typical an answer is of the policy, centred. That can be told on any
problem, and c, the slope of the regression of a on τ over all problems, is learned in full: with c > 0 the policy
sharpens everywhere, also where the typical answer is wrong. Of the rest, which is particular to a problem, the share ρ
is learned. Advantages are divided by their root mean square before training, as an optimizer such as Adam does.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np

from vpo.core.types import Floats
from vpo.methods.base import Method
from vpo.methods.compute import advantages
from vpo.util.progress import progress

Indices = np.ndarray[Any, np.dtype[np.intp]]

# Chosen once, on the 7 × 7 mazes of the demo, and the same for every method, pool and task (docs/predicting.md).
STEPS = 15
RATE = 1.0  # η
TRANSFER = 0.03  # ρ
ROLLOUTS = 24  # of each problem and step, in as many groups as that makes
LEAST = 1e-12  # of a probability whose logarithm is taken


@dataclass(frozen=True)
class Recipe:
    """A method and how many rollouts a problem has.

    Attributes:
        name: as users type it, such as "vpo_marginal:answers=1:group=24".
        method: with its settings.
        group: G, rollouts per problem.
    """

    name: str
    method: Method
    group: int


@dataclass(frozen=True)
class Support:
    """The answers of a problem that a simulated policy can give.

    Attributes:
        problem: its id.
        scores_nD: score vectors.
        target_D: w*.
        similarity_nn: how alike the answers are.
    """

    problem: str
    scores_nD: Floats
    target_D: Floats
    similarity_nn: Floats

    @property
    def values_n(self) -> Floats:
        """w*·r of each answer."""
        return self.scores_nD @ self.target_D


@dataclass(frozen=True)
class Simulated:
    """A policy after simulated training.

    Attributes:
        probabilities: of the answers of each problem at each position of a set, (M, n).
        slope: c of the first step; above 0 the method rewards typical answers, and the policy sharpens.
    """

    probabilities: tuple[Floats, ...]
    slope: float


class PoolPolicy:
    """The policy of one problem.

    Attributes:
        support: its answers.
        logits_Mn: of the answers at each position.
    """

    def __init__(self, support: Support, answers: int) -> None:
        """The policy before training, for sets of so many answers."""
        self.support = support
        _, kinds_n = np.unique(support.scores_nD, axis=0, return_inverse=True)
        self.kinds_n = kinds_n.reshape(-1)
        self.logits_Mn: Floats = np.zeros((answers, len(support.scores_nD)))
        self.rng = np.random.default_rng(crc32(support.problem.encode()))  # the order of problems changes nothing

    def probabilities(self) -> Floats:
        """π of each position, (M, n)."""
        exponentials_Mn = np.exp(self.logits_Mn - self.logits_Mn.max(axis=1, keepdims=True))
        probabilities_Mn: Floats = exponentials_Mn / exponentials_Mn.sum(axis=1, keepdims=True)
        return probabilities_Mn

    def draw(self, groups: int, rollouts: int) -> Indices:
        """Answers of groups of rollouts, by their index in the pool, (B, G, M); positions are independent."""
        positions = self.probabilities()
        columns = [self.rng.choice(len(each_n), size=(groups, rollouts), p=each_n) for each_n in positions]
        return np.stack(columns, axis=-1)

    def by_answer(self, indices_BGM: Indices, advantages_BGM: Floats) -> Floats:
        """The advantage of each answer at each position, (M, n), centred: the mean over equal score vectors.

        Answers that were not drawn have 0, the advantage of an average rollout.
        """
        means = []
        for position in range(indices_BGM.shape[-1]):
            kinds = self.kinds_n[indices_BGM[..., position].reshape(-1)]
            values = advantages_BGM[..., position].reshape(-1)
            sums = np.bincount(kinds, values, minlength=self.kinds_n.max() + 1)
            counts = np.bincount(kinds, minlength=self.kinds_n.max() + 1)
            means.append((sums / np.maximum(counts, 1))[self.kinds_n])
        return self._centred(np.stack(means))

    def typicality(self) -> Floats:
        """τ, (M, n)."""
        density_Mn = self.probabilities() @ self.support.similarity_nn
        return self._centred(np.log(np.maximum(density_Mn, LEAST)))

    def _centred(self, values_Mn: Floats) -> Floats:
        centred_Mn: Floats = values_Mn - (self.probabilities() * values_Mn).sum(axis=1, keepdims=True)
        return centred_Mn


def simulate(
    recipe: Recipe,
    problems: Sequence[Support],
    *,
    steps: int = STEPS,
    rate: float = RATE,
    transfer: float = TRANSFER,
    rollouts: int = ROLLOUTS,
) -> Simulated:
    """Train a policy on a pool.

    Args:
        recipe: the method and its group.
        problems: their answers, with all that is known of them.
        steps: of policy improvement.
        rate: η, how far a step goes.
        transfer: ρ, the share of what is particular to a problem that is learned.
        rollouts: of each problem and step; at least one group.
    """
    policies = [PoolPolicy(support, recipe.method.answers) for support in problems]
    groups = max(1, rollouts // recipe.group)
    scale, first_slope = 0.0, None
    learns = any(policy.kinds_n.any() for policy in policies)  # otherwise all answers of each problem score alike
    for step in progress(range(steps if learns else 0), f"predicting {recipe.name}"):
        indices = [policy.draw(groups, recipe.group) for policy in policies]
        advantages_PBGM = _advantages(recipe, policies, indices, step)
        scale = scale or float(np.sqrt((advantages_PBGM**2).mean()))
        if not scale:
            continue  # no group had a signal
        by_answer = [
            policy.by_answer(indices_BGM, each_BGM / scale)
            for policy, indices_BGM, each_BGM in zip(policies, indices, advantages_PBGM, strict=True)
        ]
        slope = _slope(policies, by_answer)
        first_slope = slope if first_slope is None else first_slope
        for policy, advantage_Mn in zip(policies, by_answer, strict=True):
            shared_Mn = slope * policy.typicality()
            policy.logits_Mn = policy.logits_Mn + rate * (shared_Mn + transfer * (advantage_Mn - shared_Mn))
    return Simulated(tuple(policy.probabilities() for policy in policies), first_slope or 0.0)


def _advantages(recipe: Recipe, policies: Sequence[PoolPolicy], indices: Sequence[Indices], step: int) -> Floats:
    """The method's advantages of all groups as one batch, (P, B, G, M); a rollout's is that of each of its answers."""
    groups = [
        (policy.support, number, indices_GM)
        for policy, indices_BGM in zip(policies, indices, strict=True)
        for number, indices_GM in enumerate(indices_BGM)
    ]
    rewards = [support.scores_nD[indices_GM] for support, _, indices_GM in groups]
    targets = [support.target_D for support, *_ in groups]
    names = [f"{support.problem}/{number}" for support, number, _ in groups]
    result = np.asarray(advantages(recipe.method, rewards, target=targets, step=step, problems=names))
    shape = len(policies), *indices[0].shape
    return np.broadcast_to(result.reshape(*shape[:3], -1), shape)


def _slope(policies: Sequence[PoolPolicy], by_answer: Sequence[Floats]) -> float:
    """The regression of advantages on typicality, over all problems; 0 where all answers are as typical."""
    product = square = 0.0
    for policy, advantage_Mn in zip(policies, by_answer, strict=True):
        weights_Mn, typical_Mn = policy.probabilities(), policy.typicality()
        product += float((weights_Mn * advantage_Mn * typical_Mn).sum() / len(weights_Mn))
        square += float((weights_Mn * typical_Mn**2).sum() / len(weights_Mn))
    return product / square if square > LEAST else 0.0
