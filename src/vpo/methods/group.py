"""The group that a method sees, and its random weightings."""

from collections.abc import Sequence
from dataclasses import dataclass

from vpo.core.arrays import from_numpy, namespace, shape
from vpo.core.simplex import Concentration, dirichlet
from vpo.core.types import Array, Floats


@dataclass(frozen=True)
class Group:
    """The rollouts of one problem whose rewards are known.

    Attributes:
        rewards_GMD: score vectors, float64; zero where an answer is missing.
        mask_GM: true for real answers.
        copies_GM: true for answers that repeat an earlier one of their set; None where the answers are not known.
        target_D: w*, the weighting that is deployed and reported.
        key: (seed, step, problem), the seed of random draws for this group.
        stated_D: the weighting that the prompt states, where that is not the random one of the key: w* in evaluation.
    """

    rewards_GMD: Array
    mask_GM: Array
    target_D: Array
    key: tuple[int | str, ...]
    stated_D: Array | None = None
    copies_GM: Array | None = None

    def repeated(self) -> Array:
        """The copies, (G, M); where the answers are not known, those whose score vector an earlier answer has."""
        if self.copies_GM is not None:
            return self.copies_GM
        xp = namespace(self.rewards_GMD)
        real_GMM = self.mask_GM[:, :, None] & self.mask_GM[:, None, :]
        equal_GMM = xp.all(self.rewards_GMD[:, :, None, :] == self.rewards_GMD[:, None, :, :], axis=-1) & real_GMM
        return xp.any(xp.tril(equal_GMM, k=-1), axis=-1)

    def weighted(self, weights_D: Array) -> Array:
        """w·r of every answer, (G, M)."""
        return self.rewards_GMD @ weights_D

    def draw_weighting(self, concentration: Concentration) -> Array:
        """Draw this group's w ~ Dir(α), (D,). It depends on the key alone."""
        objectives = shape(self.rewards_GMD)[-1]
        return from_numpy(draw_weighting(objectives, concentration, key=self.key), self.rewards_GMD)


def draw_weighting(objectives: int, concentration: Concentration = 1.0, *, key: Sequence[int | str]) -> Floats:
    """Draw w ~ Dir(α), (D,), from a key such as (seed, step, problem) alone, never from a running stream."""
    weights_D: Floats = dirichlet(objectives, concentration, size=1, seed=key)[0]
    return weights_D
