"""What every method is made of: the group it sees, the shape of a method, and the arithmetic they share."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from vpo.core.arrays import from_numpy, namespace, shape, widen
from vpo.core.checks import as_integer
from vpo.core.simplex import Concentration, dirichlet
from vpo.core.types import Array, Floats
from vpo.util.errors import InputError

# Added to a standard deviation before dividing by it, as TRL does.
EPSILON = 1e-4


@dataclass(frozen=True)
class Group:
    """The rollouts of one problem, as a method sees them: known rewards only, missing answers marked.

    Attributes:
        rewards_GMD: score vectors, float64; zero where an answer is missing.
        mask_GM: true for real answers.
        target_D: w*, the weighting that is deployed and reported.
        key: (seed, step, problem), what random draws for this group start from.
    """

    rewards_GMD: Array
    mask_GM: Array
    target_D: Array
    key: tuple[int | str, ...]

    def weighted(self, weights_D: Array) -> Array:
        """Return w·r of every answer, (G, M)."""
        return self.rewards_GMD @ weights_D

    def draw(self, concentration: Concentration) -> Array:
        """Draw this group's weighting w ~ Dir(α), (D,). It depends on the key alone."""
        objectives = shape(self.rewards_GMD)[-1]
        return from_numpy(drawn_weighting(objectives, concentration, key=self.key), self.rewards_GMD)


def drawn_weighting(objectives: int, concentration: Concentration = 1.0, *, key: Sequence[int | str]) -> Floats:
    """Return the weighting, (D,), that `random_weighting` and `goal_conditioned` draw for a group.

    A trainer that writes the weighting into the prompt calls this with the same (seed, step, problem).
    """
    weights_D: Floats = dirichlet(objectives, concentration, size=1, seed=key)[0]
    return weights_D


@dataclass(frozen=True, kw_only=True)
class Method:
    """A way to turn the score vectors of a group into advantages.

    Subclasses say what a rollout earns and, where it is not the z-score of that, its advantage.
    Their fields are the method's settings, with the vetted values as defaults.

    Attributes:
        name: what users type.
        multi: whether a rollout may hold more than one answer.
        whole_group: whether the advantage needs the whole group. Otherwise what a rollout earns depends on that
            rollout and its group's key alone, and any trainer can normalise it.
        whole_batch: whether it needs the whole batch too.
        target_in_prompt: whether the group's weighting has to be written into its prompt.
        smallest_group: how many rollouts a group needs.
        alone: what is left of a method for sets where a rollout has one answer; None for nothing to warn of.
        answers: how many answers a prompt asks for.
    """

    name: ClassVar[str]
    multi: ClassVar[bool] = False
    whole_group: ClassVar[bool] = False
    whole_batch: ClassVar[bool] = False
    target_in_prompt: ClassVar[bool] = False
    smallest_group: ClassVar[int] = 2
    alone: ClassVar[str | None] = None
    answers: int = 1

    def __post_init__(self) -> None:
        """Refuse a number of answers that the method cannot have."""
        as_integer(self.answers, "answers", 1)
        if not self.multi and self.answers != 1:
            raise InputError(f"{self.name} takes 1 answer per rollout, not {self.answers}")

    @property
    def keyed(self) -> bool:
        """Whether what a rollout earns depends on its group's key: on weightings drawn for the group."""
        return False

    def check_group(self, rollouts: int) -> None:
        """Refuse a group that is too small for the method."""
        if rollouts < self.smallest_group:
            raise InputError(f"a group needs {self.smallest_group} or more rollouts for {self.name}, not {rollouts}")

    @property
    def per_answer(self) -> bool:
        """Whether each answer of a rollout earns by itself, for its own tokens: what is earned is (G, M) then."""
        return False

    def earned(self, group: Group) -> Array:
        """Return what each rollout earns, (G,), or each of its answers, (G, M), to full precision."""
        raise NotImplementedError

    def reward(self, group: Group) -> Array:
        """Return what each rollout, or answer, earns, rounded to float32.

        The same answers in another order differ by rounding noise, which a trainer that divides by a tiny
        spread would turn into advantages; rounding makes them equal.
        """
        earned = self.earned(group)
        xp = namespace(earned)
        return widen(xp.astype(earned, xp.float32))

    def advantage(self, group: Group) -> Array:
        """Return the advantage of each rollout, (G,), or of each of its answers, (G, M)."""
        return z_score(self.reward(group))

    def finish(self, advantages: Array) -> Array:
        """Rescale the advantages of all known rollouts of a batch, (any,). Most methods leave them alone."""
        return advantages


def z_score(values: Array) -> Array:
    """Return (x − mean) / (std + 1e-4) along the first axis, with the sample std. No spread gives exactly 0."""
    xp = namespace(values)
    centred = centre(values)
    return centred / (xp.std(centred, axis=0, correction=1) + EPSILON)


def centre(values: Array) -> Array:
    """Return x − mean along the first axis; exactly 0 where all are equal."""
    xp = namespace(values)
    equal = xp.max(values, axis=0) == xp.min(values, axis=0)
    return xp.where(equal, xp.zeros_like(values), values - xp.mean(values, axis=0))
