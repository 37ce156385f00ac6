"""From completions to rewards: reads the answers, scores each as a vector, and rewards by a method.

`RewardScorer.score` returns all that a trainer needs of a batch as one value. Every engine is built on it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeAlias

import numpy as np

from vpo.core.types import Floats
from vpo.engines.alarms import Alarms
from vpo.engines.caller import Caller
from vpo.engines.grading import Grader
from vpo.engines.grouped import GroupedBatch, GroupResult, RolloutGroup
from vpo.engines.metrics import Mean, ScoredBatch, answer_mask, known_rewards, mean, merged, metrics
from vpo.engines.prompts import DEPLOYED
from vpo.engines.rows import ScoredRows, group_indices, key_of, text_of
from vpo.methods import Group, Method
from vpo.util.errors import InputError
from vpo.util.grouping import group_by
from vpo.util.processes import gathered, together

KNOWN = "known"  # among the means of a batch; it is not logged
# Sees every scored batch of this process: the steps done before it, the rows of the data set, the completions, scores.
Observer: TypeAlias = Callable[[int, Sequence[Mapping[str, Any]], Sequence[str], ScoredBatch], None]


def refuse(reason: str) -> None:
    """End the training: a trainer that calls a reward function is stopped by an error alone."""
    raise InputError(reason)


@dataclass(frozen=True)
class RewardResult:
    """What a trainer needs to know of a batch of completions, B of them in this process.

    Attributes:
        rewards: one number per completion, which the trainer turns into an advantage; None where it is not known.
        advantages_BM: the advantage of each answer, where the method is `per_answer`; 0 where it is not known.
        metrics: for the log, over all processes.
        known: the share of completions with an answer whose reward is known, over all processes.
        batch: the scores.
    """

    rewards: list[float | None]
    advantages_BM: Floats | None
    metrics: dict[str, float]
    known: Mean
    batch: ScoredBatch


@dataclass(frozen=True, eq=False)
class RewardScorer:
    """Parses completions, scores each answer, and rewards by a method.

    Attributes:
        grader: reads and scores answers.
        method: of the rewards.
        objectives: their names; none where problems differ in their objectives.
        target: w*; None for a uniform one, where problems differ in their objectives.
        group: G, rollouts per problem; None where no method needs to know it.
        seed: of random weightings.
        observer: sees every scored batch.
        on_stall: called with the reason where a trainer should stop, since no reward can be known any more.
    """

    grader: Grader
    method: Method
    objectives: tuple[str, ...]
    target: Floats | None
    group: int | None
    seed: int
    observer: Observer | None = None
    on_stall: Callable[[str], None] = refuse
    alarms: Alarms = field(default_factory=Alarms, repr=False)

    def score(
        self,
        rows: Sequence[Mapping[str, Any]],
        completions: Sequence[Any],
        truncated: Sequence[bool] = (),
        caller: Caller | None = None,
    ) -> RewardResult:
        """Read, score and reward a batch. Where several processes call, all of them must.

        Args:
            rows: of the data set, one per completion, each with its prompt.
            completions: texts, or lists of messages.
            truncated: which of them the token budget cut off; empty where that is not known. In these an answer
                without its closing tag does not count.
            caller: what is known of the trainer.
        """
        caller = caller or Caller()
        several = caller.processes > 1
        # Where one process fails, the others must not wait for it.
        joined = together if several else nullcontext
        with joined():
            own = self._scored(rows, completions, truncated)
        size = caller.group_size or self.group or 0
        # Whole groups need nothing of the other processes.
        alone = not several or (size > 0 and len(rows) % size == 0 and not self.method.whole_batch)
        parts = [own] if alone else gathered(own.without_texts())
        with joined():
            everything = ScoredRows.joined(parts)
            rewards, advantages, means = self._rewards(everything, size, caller.step)
            means |= self._means(everything, rewards, size)
            start = 0 if alone else sum(len(each.rows) for each in parts[: caller.process_index])
            mine = slice(start, start + len(rows))
            batch = ScoredBatch(own.parsed, own.strict, own.vectors, rewards[mine], group_indices(own.rows, size))
            if self.observer is not None:
                self.observer(caller.step, own.rows, own.texts, batch)
        means = merged(gathered(means)) if several and alone else means
        known = means.pop(KNOWN)
        counts = {name: Mean(*each) for name, each in self.grader.counted().items()}
        means |= merged(gathered(counts)) if several else counts
        if caller.process_index == 0:
            unread = (text for text, answers in zip(own.texts, own.parsed, strict=True) if None in answers)
            self.alarms.check_read_rate(means["read_rate"].value, len(rewards), next(unread, None))
            self.alarms.check_known_share(known, self.grader.why_unknown())
        logged = {f"vpo/{name}": each.value for name, each in means.items()}
        return RewardResult(rewards[mine], None if advantages is None else advantages[mine], logged, known, batch)

    def check_known(self, known: Mean, caller: Caller) -> None:
        """Count a batch of a trainer, and stop the trainer after too many in a row without a known reward.

        Args:
            known: of the batch, as in `RewardResult`.
            caller: the trainer.
        """
        if caller.batches is not None and self.alarms.count_batch(known, caller.batches):
            count, why = self.alarms.unknown_batches, self.grader.why_unknown()
            self.on_stall(
                f"no reward was known in {count} batches in a row, up to step {caller.step + 1}"
                + (f" ({why})" if why else "")
            )

    def observed_by(self, observer: Observer) -> Self:
        """A copy with an observer."""
        return replace(self, observer=observer)

    def stopped_by(self, on_stall: Callable[[str], None]) -> Self:
        """A copy for a trainer that can be stopped without an error."""
        return replace(self, on_stall=on_stall)

    def prompt_weighting(self, problem: str) -> list[float] | None:
        """The weighting that a problem's prompt states in training; None for methods that state none.

        Prompts are written before training, so it depends on the seed and the problem alone: step 0.
        """
        if not self.method.target_in_prompt:
            return None
        dimensions = self.grader.dimensions({"problem": problem})
        weights_D = self.method.prompt_weighting(dimensions, (self.seed, 0, str(problem)))
        return None if weights_D is None else [float(weight) for weight in weights_D]

    def prompt_target(self, problem: str) -> list[float] | None:
        """w*, as a problem's prompt states it in evaluation; None for methods that state no weighting."""
        if not self.method.target_in_prompt:
            return None
        return list(self.target_of(self.grader.dimensions({"problem": problem})))

    def target_of(self, dimensions: int) -> Floats:
        """w* of a problem with so many objectives."""
        return np.full(dimensions, 1 / dimensions) if self.target is None else self.target

    def _scored(
        self,
        rows: Sequence[Mapping[str, Any]],
        completions: Sequence[Any],
        truncated: Sequence[bool],
    ) -> ScoredRows:
        """The completions of this process, read and scored."""
        texts = [text_of(completion) for completion in completions]
        readings = [self.grader.read(text, self.method.answers) for text in texts]
        if truncated:
            pairs = zip(readings, truncated, strict=True)
            readings = [each.without_unclosed() if cut else each for each, cut in pairs]
        parsed, strict = [each.answers for each in readings], [each.strict for each in readings]
        copies = [self.grader.copies(answers) for answers in parsed] if self.method.reads_copies else []
        vectors = self.grader.score(rows, parsed)
        self.alarms.check_scores(vectors, self.objectives)
        return ScoredRows([dict(row) for row in rows], texts, parsed, strict, copies, vectors, list(truncated))

    def _rewards(
        self, scored: ScoredRows, size: int, step: int
    ) -> tuple[list[float | None], Floats | None, dict[str, Mean]]:
        """The reward of each completion, with `per_answer` the advantage of each answer, (B, M), and own metrics."""
        step = 0 if self.method.target_in_prompt else step  # the prompts were written before the first step
        if not (self.method.whole_group or self.method.per_answer):
            return self._rewards_of_rollouts(scored, step), None, {}
        if self.method.whole_group:
            size = self._whole_groups(len(scored.rows))
        groups = [
            RolloutGroup(indices, key_of(scored.rows[indices[0]]), self._states_target(scored.rows[indices[0]]))
            for indices in group_indices(scored.rows, size)
        ]
        masks = [answer_mask(answers) for answers in scored.parsed]
        grouped = GroupedBatch.of(
            scored.vectors,
            masks,
            groups,
            copies=scored.copies or None,
            size=max(size, self.method.min_group_size),
            target_of=self.target_of,
            seed=self.seed,
            step=step,
        )
        unknown = GroupResult.unknown(len(scored.rows), self.method)
        result = unknown if grouped is None else grouped.compute(self.method)
        if self.method.per_answer:
            means = result.rewards.mean(axis=1).tolist()
            return [None if math.isnan(each) else each for each in means], result.advantages, result.means
        # A trainer that only subtracts the mean takes the advantage as the reward.
        pairs = zip(result.advantages.tolist(), scored.vectors, strict=True)
        return [None if vectors is None else advantage for advantage, vectors in pairs], None, result.means

    def _rewards_of_rollouts(self, scored: ScoredRows, step: int) -> list[float | None]:
        """The reward of each completion, which depends on that completion alone: all of one shape in one call."""
        keys = [key_of(row) if self.method.draws_weightings else "" for row in scored.rows]
        known = [(index, vectors) for index, vectors in enumerate(scored.vectors) if vectors is not None]
        alike = group_by(known, lambda each: (keys[each[0]], self._states_target(scored.rows[each[0]]), each[1].shape))
        rewards: list[float | None] = [None] * len(scored.rows)
        for (key, states_target, (_, dimensions)), members in alike.items():
            indices = [index for index, _ in members]
            rewards_GMD = np.stack([vectors_MD for _, vectors_MD in members])
            mask_GM = np.asarray([answer_mask(scored.parsed[index]) for index in indices])
            copies_GM = np.asarray([scored.copies[index] for index in indices]) if scored.copies else None
            target_D = self.target_of(dimensions)
            stated_D = target_D if states_target else None
            group = Group(rewards_GMD, mask_GM, target_D, (self.seed, step, key), stated_D, copies_GM)
            for index, reward in zip(indices, self.method.rounded_rewards(group).tolist(), strict=True):
                rewards[index] = reward
        return rewards

    def _means(self, scored: ScoredRows, rewards: list[float | None], size: int) -> dict[str, Mean]:
        groups = group_indices(scored.rows, size)
        batch = ScoredBatch(scored.parsed, scored.strict, scored.vectors, rewards, groups)
        means = metrics(batch, self.objectives, self.target_of)
        means[KNOWN] = known_rewards(scored.parsed, scored.vectors)
        return {**means, "truncated": mean(scored.truncated)} if scored.truncated else means

    def _states_target(self, row: Mapping[str, Any]) -> bool:
        """Whether the prompt of a row states w*; to a method that states no weighting the column means nothing."""
        return self.method.target_in_prompt and bool(row.get(DEPLOYED))

    def _whole_groups(self, rollouts: int) -> int:
        """The size of the groups that a `whole_group` method sees, refusing rollouts that do not divide into such."""
        size = self.group
        assert size is not None  # `reward_function` requires it
        if rollouts % size:
            raise InputError(
                f"{self.method.name} needs whole groups of {size}, and got {rollouts} completions: make processes × "
                f"per_device_train_batch_size × steps_per_generation divisible by num_generations, {size}"
            )
        return size
