"""The reward function of `trl.GRPOTrainer`: a `RewardScorer` that is called as TRL calls reward functions."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from vpo.core.arrays import as_array
from vpo.core.checks import as_integer, check_weights
from vpo.engines.caller import Caller, caller_of, trainer_of
from vpo.engines.compatibility import check, check_stock_trainer, check_trainer
from vpo.engines.grading import FunctionGrader, Grader, ScoreFunction, TaskGrader
from vpo.engines.rows import rows_of
from vpo.engines.scorer import RewardScorer
from vpo.methods import Method, get
from vpo.methods.compute import warn_single_answer
from vpo.tasks import Task
from vpo.util.errors import InputError


class RewardFunction(RewardScorer):
    """A reward function as `trl.GRPOTrainer` calls it: one number per completion. Made by `reward_function`.

    At its first call it refuses a trainer whose settings would change the advantages of the method. `score` returns all
    that is known of a batch: rewards, advantages by answer, vectors and metrics.
    """

    @property
    def __name__(self) -> str:
        """TRL logs rewards under it."""
        return self.method.name

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
        """One number per completion, as `trl.GRPOTrainer` calls it; None where a reward is not known."""
        trainer = trainer_of(log_metric)
        caller = Caller(step=getattr(trainer_state, "global_step", 0))
        if trainer is not None:
            check(self, trainer.args)
            check_stock_trainer(self.method)
            check_trainer(self, trainer)
            caller = caller_of(trainer)
        result = self.score(rows_of(prompts, columns), completions, caller.truncated(completion_ids), caller)
        self.check_known(result.known, caller)
        if log_metric is not None:
            for name, value in result.metrics.items():
                log_metric(name, value)
        return result.rewards


def reward_function(
    task: Task[Any] | None = None,
    method: str | Method = "vpo",
    *,
    problems: Sequence[Any] | None = None,
    score: ScoreFunction | None = None,
    objectives: Sequence[str] | None = None,
    answers: int | None = None,
    target: Sequence[float] | None = None,
    group: int | None = None,
    seed: int = 0,
) -> RewardFunction:
    """A reward function for a trainer: it reads the answers of each completion, scores each as a vector, and rewards.

    Pass a task with its problems, or a score function with the names of its objectives. Every objective, the set
    reward, the diversity and the share of answers that could be read are logged under `vpo/…`.

    Args:
        task: scores the answers; rows of the data set name their problem in a column `problem` (see `task_dataset`).
        method: a name, or a method: one with settings from `vpo.methods.get`, or one of your own.
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
    chosen = get(method)
    if answers is not None:
        chosen = replace(chosen, answers=answers)
    if chosen.whole_group and group is None:
        raise InputError(f"{chosen.name} looks at the whole group: give group, the num_generations of the trainer")
    if group is not None:
        chosen.check_group_size(as_integer(group, "group", 1))
    if (task is None) == (score is None):
        raise InputError("give a task or a score, and not both")
    warn_single_answer(chosen, chosen.answers)
    if task is not None:
        grader: Grader = _task_grader(task, problems, target)
        if task.ragged:
            return RewardFunction(grader, chosen, (), None, group, seed)
        names, weights = task.names, task.weights
    else:
        assert score is not None
        if chosen.target_in_prompt:
            raise InputError(f"{chosen.name} states a weighting in each prompt: give a task, which writes the prompts")
        if not objectives:
            raise InputError("objectives must be given with score: the names of the numbers that it returns")
        names = _distinct(objectives)
        grader, weights = FunctionGrader(score, names), (1 / len(names),) * len(names)
    target_D = np.asarray(weights if target is None else as_array(target, "target"), dtype=np.float64)
    if target_D.shape != (len(names),):
        raise InputError(f"target must hold one weight for each of {len(names)} objectives, not shape {target_D.shape}")
    check_weights(target_D, "target")
    return RewardFunction(grader, chosen, names, target_D, group, seed)


def _distinct(objectives: Sequence[str]) -> tuple[str, ...]:
    """The names of objectives; refuses one text, whose letters would be names, and a name that is there twice."""
    if isinstance(objectives, str):
        raise InputError(f"objectives must be a list of names, not {objectives!r}")
    if len(set(objectives)) < len(objectives):
        raise InputError(f"objectives must be different names, not {', '.join(objectives)}")
    return tuple(objectives)


def _task_grader(task: Any, problems: Sequence[Any] | None, target: Any) -> TaskGrader:
    if isinstance(task, str):
        raise InputError(f"task must be a task, not its name: vpo.tasks.get({task!r})")
    if problems is None:
        raise InputError("problems must be given with a task: those that the data set was made of")
    if task.ragged and target is not None:
        raise InputError(f"the problems of task {task.name} differ in their objectives: target must be uniform")
    return TaskGrader(task, problems)
