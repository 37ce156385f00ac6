"""What a method is: its rewards and advantages, and the declarations by which every engine trains it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from vpo.core.arrays import namespace, widen
from vpo.core.checks import as_integer
from vpo.core.types import Array, Floats
from vpo.methods.group import Group
from vpo.methods.normalize import centre, z_score
from vpo.util.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Method:
    """A way to turn the score vectors of a group into advantages.

    A subclass defines `rewards` and, where the advantage is not the z-score of those, `advantages`. Engines read the
    declarations below and never ask which method it is. Fields are the method's settings, with vetted defaults.

    Attributes:
        name: as users type it.
        takes_sets: whether a rollout may hold more than one answer.
        whole_group: whether the advantage needs the whole group. Otherwise the reward of a rollout depends on that
            rollout and the group's key alone, and a trainer can normalise it. Without `per_answer`, the advantages of
            a group must have mean 0: trainers take them as rewards and subtract the mean.
        whole_batch: whether it needs the whole batch too.
        normalize_by_std: whether the advantage is divided by the group's standard deviation, or only centred.
        loss_type: the `loss_type` of TRL that the method prescribes; None where any will do.
        target_in_prompt: whether the prompt states the group's weighting (`prompt_weighting`).
        min_group_size: how many rollouts a group needs; where fewer rewards are known, advantages are 0.
        degenerates_to: what is left of a method for sets where a rollout has one answer; None for nothing to warn of.
        single_reward: for a `per_answer` method, settings that give a rollout one reward instead, for trainers with
            one advantage per completion; None where there are none.
        metric_names: of what it logs beside the metrics of all methods.
        answers: how many answers a prompt requests.
    """

    name: ClassVar[str]
    takes_sets: ClassVar[bool] = False
    whole_group: ClassVar[bool] = False
    whole_batch: ClassVar[bool] = False
    normalize_by_std: ClassVar[bool] = True
    loss_type: ClassVar[str | None] = None
    target_in_prompt: ClassVar[bool] = False
    min_group_size: ClassVar[int] = 2
    degenerates_to: ClassVar[str | None] = None
    single_reward: ClassVar[Mapping[str, Any] | None] = None
    metric_names: ClassVar[tuple[str, ...]] = ()
    answers: int = 1

    def __post_init__(self) -> None:
        """Refuse a number of answers that the method cannot have."""
        as_integer(self.answers, "answers", 1)
        if not self.takes_sets and self.answers != 1:
            raise InputError(f"{self.name} takes 1 answer per rollout, not {self.answers}")

    @property
    def per_answer(self) -> bool:
        """Whether each answer has a reward and an advantage of its own, for its own tokens: (G, M) instead of (G,)."""
        return False

    @property
    def reads_copies(self) -> bool:
        """Whether rewards depend on which answers of a set repeat an earlier one (`Group.repeated`)."""
        return False

    @property
    def draws_weightings(self) -> bool:
        """Whether rewards depend on random weightings, sampled for the group from its key."""
        return False

    @property
    def scale_rewards(self) -> Literal["group", "none"]:
        """TRL's setting. A `whole_group` method returns advantages as rewards, which must not be scaled."""
        return "group" if self.normalize_by_std and not self.whole_group else "none"

    def prompt_weighting(self, objectives: int, key: Sequence[int | str]) -> Floats | None:
        """The weighting, (D,), that the prompt of a group states; None without `target_in_prompt`."""
        return None

    def for_one_rollout(self) -> "Method":
        """The method by whose reward a rollout is logged where neither its group nor the step is known.

        Override it where `rewards` needs them.
        """
        return self

    def check_group_size(self, rollouts: int) -> None:
        """Refuse a group that is too small for the method."""
        if rollouts < self.min_group_size:
            raise InputError(f"a group needs {self.min_group_size} or more rollouts for {self.name}, not {rollouts}")

    def rewards(self, group: Group) -> Array:
        """The reward of each rollout, (G,), or with `per_answer` of each answer, (G, M), to full precision."""
        raise NotImplementedError

    def rounded_rewards(self, group: Group) -> Array:
        """The rewards rounded to float32.

        The same answers in another order differ by rounding noise, which a trainer that divides by a tiny
        spread would turn into advantages; rounding makes them equal.
        """
        rewards = self.rewards(group)
        xp = namespace(rewards)
        return widen(xp.astype(rewards, xp.float32))

    def advantages(self, rewards: Array, group: Group) -> Array:
        """The advantage of each rollout, (G,), or with `per_answer` of each answer, (G, M); `rewards` are rounded."""
        return z_score(rewards) if self.normalize_by_std else centre(rewards)

    def metrics(self, rewards: Array, group: Group) -> dict[str, float]:
        """What is worth watching of a group: a number for each of `metric_names`; `rewards` are rounded."""
        return {}

    def rescale_batch(self, advantages: Array) -> Array:
        """Rescale the advantages of all known rollouts of a batch, one after the other. Most methods change nothing."""
        return advantages
