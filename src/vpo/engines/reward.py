"""What a trainer calls to pay completions: it reads the answers, scores each as a vector, and pays as a method says.

It is written for `trl.GRPOTrainer`; the engines of other trainers call the same function.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from vpo.core.arrays import as_array
from vpo.core.checks import as_integer, check_weights
from vpo.core.types import Floats
from vpo.engines.fitting import check, check_trainer
from vpo.engines.grading import Answers, Grader, OwnGrader, Scorer, TaskGrader
from vpo.engines.metrics import Mean, Scored, given, mean, merged, metrics
from vpo.engines.prompts import DEPLOYED
from vpo.engines.rows import Slice, key_of, rows_of, text_of
from vpo.methods import Method, advantages, drawn_weighting, get, warn_alone
from vpo.methods.goal_conditioned import GoalConditioned
from vpo.methods.group import Group
from vpo.methods.grpo import Grpo
from vpo.tasks import Task
from vpo.util.errors import InputError
from vpo.util.processes import gathered, together

# What is shown every scored batch of this process: the steps done before it, the rows of the data set, the completions,
# their scores.
Observer: TypeAlias = Callable[[int, Sequence[Mapping[str, Any]], Sequence[str], Scored], None]

# A parse rate below this, in so many calls on end, is worth an alarm.
LOW_PARSE_RATE, ALARM_AFTER = 0.5, 5


def reward_function(
    task: Task[Any] | None = None,
    method: str | Method = "vpo",
    *,
    problems: Sequence[Any] | None = None,
    score: Scorer | None = None,
    objectives: Sequence[str] | None = None,
    answers: int | None = None,
    target: Sequence[float] | None = None,
    group: int | None = None,
    seed: int = 0,
) -> "RewardFunction":
    """Return a reward function: one number per completion, and the vectors in the log.

    Give a task with its problems, or a scorer with the names of its objectives.

    Args:
        task: scores the answers; rows of the data set name their problem in a column `problem` (see `task_dataset`).
        method: a name, or a method with settings from `vpo.methods.get`.
        problems: the task's problems that the data set was made of.
        score: ``score(answer, …)`` returns a number per objective, in order or by name, or None where the reward
            cannot be known. Its further parameters are columns of the data set, and `prompt`.
        objectives: their names.
        answers: m, how many answers a completion holds; the method's default otherwise.
        target: w*, the deployed weighting; the task's, or uniform, otherwise. Where problems differ in their objectives
            it is uniform.
        group: G, the rollouts per problem: needed by the methods that look at the whole group.
        seed: for the methods that draw weightings.
    """
    chosen = get(method) if isinstance(method, str) else method
    if answers is not None:
        chosen = get(chosen.name, **{**vars(chosen), "answers": answers})
    if chosen.whole_group and group is None:
        raise InputError(f"{chosen.name} looks at the whole group: give group, the num_generations of the trainer")
    if group is not None:
        chosen.check_group(as_integer(group, "group", 1))
    if (task is None) == (score is None):
        raise InputError("give a task or a score, and not both")
    if isinstance(task, str):
        raise InputError(f"task must be a task, not its name: vpo.tasks.get({task!r})")
    warn_alone(chosen, chosen.answers)
    if task is not None:
        if problems is None:
            raise InputError("problems must be given with a task: those that the data set was made of")
        grader: Grader = TaskGrader(task, problems)
        if task.ragged:
            if target is not None:
                raise InputError(f"the problems of task {task.name} differ in their objectives: target must be uniform")
            return RewardFunction(grader, chosen, (), None, group, seed)
        names, weights = task.names, task.weights
    else:
        assert score is not None
        if chosen.target_in_prompt:
            raise InputError(f"{chosen.name} states a weighting in each prompt: give a task, which writes the prompts")
        if not objectives:
            raise InputError("objectives must be given with score: the names of the numbers that it returns")
        names = tuple(objectives)
        grader, weights = OwnGrader(score, names), (1 / len(names),) * len(names)
    deployed = np.asarray(weights if target is None else as_array(target, "target"), dtype=np.float64)
    if deployed.shape != (len(names),):
        raise InputError(f"target must hold one weight for each of {len(names)} objectives, not shape {deployed.shape}")
    check_weights(deployed, "target")
    return RewardFunction(grader, chosen, names, deployed, group, seed)


class RewardFunction:
    """What a trainer calls: parses completions, scores each answer, returns what the method delivers for each."""

    def __init__(
        self,
        grader: Grader,
        method: Method,
        objectives: tuple[str, ...],
        target: Floats | None,
        group: int | None,
        seed: int,
    ) -> None:
        """See `reward_function`. Without names and a target, problems differ in their objectives, all alike to w*."""
        self.grader, self.method, self.objectives = grader, method, objectives
        self.target, self.group, self.seed = target, group, seed
        self.low_calls = 0
        self.below_zero = False  # whether it was said that scores are
        self.checked: Any = None  # the arguments of the trainer that called last
        self.evaluating = False  # as it did
        self.longest: int | None = None  # max_completion_length, known once a config was checked
        self.by_answer: Floats = np.zeros((0, method.answers))  # of the last batch, where each answer earns by itself
        self.observer: Observer | None = None
        self.__name__ = method.name  # TRL logs rewards under it

    def __call__(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        completion_ids: Sequence[Sequence[int]] = (),
        *,
        trainer_state: Any = None,
        log_metric: Callable[[str, float], None] | None = None,
        **columns: Any,
    ) -> list[float | None]:
        """Return one number per completion; None where a reward is not known."""
        trainer = getattr(log_metric, "__self__", None)  # log_metric is the trainer's method
        # Trainers of TRL score in all processes, each its slice of the batch; others may score in one, for itself.
        accelerator = getattr(trainer, "accelerator", None)
        several = getattr(accelerator, "num_processes", 1) > 1
        place = accelerator.process_index if accelerator is not None and several else 0
        waiting = together if several else nullcontext
        with waiting():
            self._check(trainer)
            own = self._score(prompts, completions, completion_ids, columns)
        # Groups that no other process has a part of are paid by themselves.
        apart = not several or (self._in_groups(own.rows) and not self.method.whole_batch)
        slices = [own] if apart else gathered(own.without_texts())
        step = getattr(trainer_state, "global_step", 0)
        with waiting():
            paid, found = self._pay(slices, step)
            start = 0 if apart else sum(len(each.rows) for each in slices[:place])
            mine = slice(start, start + len(own.rows))
            self.by_answer, rewards = self.by_answer[mine], paid[mine]
            if self.observer is not None:
                batch = Scored(own.parsed, own.scored, rewards, self._groups(own.rows))
                self.observer(step, own.rows, own.texts, batch)
        found = merged(gathered(found)) if several and apart else found
        counted = {name: Mean(*each) for name, each in self.grader.counted().items()}
        found |= merged(gathered(counted)) if several else counted
        if log_metric is not None:
            for name, each in found.items():
                log_metric(f"vpo/{name}", each.value)
        if place == 0:
            self._watch(found["parse_rate"].value)
        return rewards

    def _check(self, trainer: Any) -> None:
        """Refuse a trainer that does not fit, once, and note whether it trains or evaluates."""
        args = getattr(trainer, "args", None)
        self.evaluating = args is not None and not trainer.model.training
        if args is not None and self.checked is not args:
            check(self, args)
            check_trainer(self, trainer)
            self.checked = args

    def _score(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        completion_ids: Sequence[Sequence[int]],
        columns: Mapping[str, Any],
    ) -> Slice:
        """Return what the completions of one process are paid for."""
        texts = [text_of(completion) for completion in completions]
        parsed = [self.grader.parse(text, self.method.answers) for text in texts]
        rows = rows_of(prompts, columns)
        scored = self.grader.score(rows, parsed)
        self._look_below_zero(scored)
        cut = [] if self.longest is None else [len(ids) >= self.longest for ids in completion_ids]
        return Slice(rows, texts, parsed, scored, cut)

    def _pay(self, slices: Sequence[Slice], step: int) -> tuple[list[float | None], dict[str, Mean]]:
        """Return what each completion of some slices of a batch is paid, and what is worth watching of them."""
        rows, _, parsed, scored, cut = (list(chain.from_iterable(each)) for each in zip(*slices, strict=True))
        rewards = self._deliver(rows, parsed, scored, step)
        found = metrics(Scored(parsed, scored, rewards, self._groups(rows)), self.objectives, self.target_of)
        return rewards, {**found, "truncated": mean(cut)} if cut else found

    def weighting_in_prompt(self, problem: str) -> list[float] | None:
        """Return the weighting that a problem's prompt must state; None for methods that state none.

        Prompts are written before training, so the weighting is drawn from the seed and the problem alone: step 0.
        """
        if not isinstance(self.method, GoalConditioned):
            return None
        dimensions = self.grader.dimensions({"problem": problem})
        drawn_D = drawn_weighting(dimensions, self.method.concentration, key=(self.seed, 0, str(problem)))
        return [float(weight) for weight in drawn_D]

    def deployed(self, problem: str) -> list[float] | None:
        """Return w*, as a problem's prompt states it in evaluation; None for methods that state none."""
        if not self.method.target_in_prompt:
            return None
        return list(self.target_of(self.grader.dimensions({"problem": problem})))

    def _deliver(
        self, rows: list[dict[str, Any]], parsed: list[Answers], scored: list[Floats | None], step: int
    ) -> list[float | None]:
        if self.method.whole_group:
            return self._advantages(rows, scored)
        if self.method.per_answer:
            self.by_answer = np.full((len(rows), self.method.answers), np.nan)
        step = 0 if self.method.target_in_prompt else step
        rewards: list[float | None] = [None] * len(rows)
        keys = [key_of(row) if self.method.keyed else "" for row in rows]
        buckets: dict[tuple[str, bool, tuple[int, ...]], list[int]] = {}
        for place, matrix in enumerate(scored):
            if matrix is not None:
                deployed = self.method.target_in_prompt and bool(rows[place].get(DEPLOYED))
                buckets.setdefault((keys[place], deployed, matrix.shape), []).append(place)
        for (key, deployed, (_, dimensions)), places in buckets.items():
            mask_GM = np.asarray([given(parsed[place]) for place in places])
            rewards_GMD = np.stack([matrix for place in places if (matrix := scored[place]) is not None])
            group = Group(rewards_GMD, mask_GM, self.target_of(dimensions), (self.seed, step, key))
            method = Grpo() if deployed else self.method  # a prompt that states w* is paid for w*
            paid = method.reward(group)
            if method.per_answer:
                self.by_answer[places] = paid
                paid = paid.mean(axis=1)
            for place, reward in zip(places, paid.tolist(), strict=True):
                rewards[place] = reward
        return rewards

    def _advantages(self, rows: list[dict[str, Any]], scored: list[Floats | None]) -> list[float | None]:
        size = self.group
        assert size is not None
        if len(scored) % size:
            raise InputError(
                f"{self.method.name} needs whole groups of {size}, and got {len(scored)} completions: make processes × "
                f"per_device_train_batch_size × steps_per_generation divisible by num_generations, {size}"
            )
        groups = []
        for start in range(0, len(scored), size):
            empty = np.zeros((self.method.answers, self.grader.dimensions(rows[start])))
            groups.append(np.stack([empty if matrix is None else matrix for matrix in scored[start : start + size]]))
        valid_PG = np.asarray([matrix is not None for matrix in scored]).reshape(-1, size)
        found_PG = advantages(self.method, groups, target=self.target, valid=valid_PG)
        return [
            advantage if known else None
            for advantage, known in zip(found_PG.ravel().tolist(), valid_PG.ravel(), strict=True)
        ]

    def target_of(self, dimensions: int) -> Floats:
        """Return w* of a problem with so many objectives."""
        return np.full(dimensions, 1 / dimensions) if self.target is None else self.target

    def _in_groups(self, rows: list[dict[str, Any]]) -> bool:
        """Return whether rows are whole groups, as far as the size of one is known."""
        return bool(self._size) and len(rows) % self._size == 0

    @property
    def _size(self) -> int:
        """Of a group: the trainer's, if it is known; 0 if not."""
        evaluated = getattr(self.checked, "num_generations_eval", None) if self.evaluating else None
        return evaluated or getattr(self.checked, "num_generations", self.group) or 0

    def _groups(self, rows: list[dict[str, Any]]) -> list[list[int]]:
        """Return the places of each group: by its size where that is known, else by problem."""
        if self._in_groups(rows):
            size = self._size
            return [list(range(start, start + size)) for start in range(0, len(rows), size)]
        by_problem: dict[str, list[int]] = {}
        for place, row in enumerate(rows):
            by_problem.setdefault(key_of(row), []).append(place)
        return list(by_problem.values())

    def _look_below_zero(self, scored: Sequence[Floats | None]) -> None:
        """Warn, once, of scores that it is better to have no answer than to have."""
        if self.below_zero:
            return
        known = [matrix.ravel() for matrix in scored if matrix is not None]
        if not known or np.concatenate(known).min() >= 0:
            return
        self.below_zero = True
        warnings.warn(
            "some scores are below 0, and an answer that is missing or cannot be read counts 0: it would pay to give "
            "none; shift the scores until the worst answer has 0 or more",
            stacklevel=4,
        )

    def _watch(self, rate: float) -> None:
        """Raise an alarm, once, where answers cannot be read call after call."""
        self.low_calls = self.low_calls + 1 if rate < LOW_PARSE_RATE else 0
        if self.low_calls == ALARM_AFTER:
            warnings.warn(
                f"only {rate:.0%} of the answers could be read, and few in the last {ALARM_AFTER} batches: check that "
                "the prompts ask for them (ask_for, task_dataset), raise max_completion_length if completions are cut "
                "off, or teach the model the format first: vpo warmup",
                stacklevel=2,
            )
