"""Evaluation while training: the model as it stands answers held-out problems, and the training does not notice.

A row of the log has what `vpo eval` would measure: ``best@K`` and ``pass@K`` of K answers, ``first`` and ``set`` of one
completion under the target, ``set_reward`` under uniform weightings, ``parse_rate`` and ``read_rate`` as in training.
"""

import random
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vpo.core.set_reward import set_reward
from vpo.evaluation.budgets import DEFAULT_KS, fit_budgets
from vpo.evaluation.eval_plan import check_pool_size
from vpo.evaluation.evaluate import problem_prompts, unscored_completions
from vpo.evaluation.measure import measure_pool
from vpo.evaluation.metrics import AT_K, BEST, FIRST, PASS, SET, Budget
from vpo.evaluation.pools import Pool, pool_of_rows
from vpo.evaluation.score import score_completions
from vpo.evaluation.scored import ScoreCounts, ScoredCompletion
from vpo.models.forced_tags import ForcedTags
from vpo.models.generate import Completion, Sampling, complete_batches
from vpo.models.policy import Policy
from vpo.models.trials import evaluating
from vpo.tasks import Task
from vpo.tasks.registry import BUILT_IN
from vpo.training.config import TrainConfig
from vpo.util import processes
from vpo.util.errors import InputError, one_line
from vpo.util.processes import gathered, is_main, together

POOL = 8  # answers for each problem, or the first multiple of m above
TEMPERATURE = 0.7  # as in `vpo eval`
NONE = "none"  # as `keep_best`: keep no model
SET_REWARD = "set_reward"
MEASURES = (SET, SET_REWARD, FIRST)  # beside best@K and pass@K


def eval_settings(config: TrainConfig, task: Task[Any], answers: int) -> dict[str, Any]:
    """The settings of evaluations with their defaults, checked; nothing where a run has none."""
    if config.eval_every is None:
        return {}
    pool = config.eval_pool or -(-POOL // answers) * answers
    try:
        check_pool_size(pool, answers)
    except InputError as error:
        raise InputError(f"eval_{error}") from None
    keep_best = config.keep_best or f"best@{min(POOL, pool)}"
    _check_measure(keep_best, pool)
    return {
        "eval_split": config.eval_split or task.validation or config.split,
        "eval_pool": pool,
        "eval_temperature": TEMPERATURE if config.eval_temperature is None else config.eval_temperature,
        "keep_best": keep_best,
    }


def _check_measure(name: str, pool: int) -> None:
    match = AT_K.fullmatch(name)
    if match is None and name not in (*MEASURES, NONE):
        raise InputError(f"keep_best must be best@K, pass@K, {', '.join(MEASURES)} or {NONE}, not {name!r}")
    if match and int(match[2]) > pool:
        raise InputError(f"keep_best must be at a K of at most eval_pool, {pool}, not {name!r}")


@dataclass(frozen=True)
class HeldOutEvaluation:
    """Samples answers to held-out problems, and measures them.

    Attributes:
        policy: that is trained.
        task: of the problems.
        problems: that are not trained on.
        config: of the run, with every setting chosen.
        answers: m, how many answers a prompt asks for.
        target_in_prompt: whether prompts state the target.
        forced: the tags that are forced into completions; None without prefill.
        autocast: what the trainer computes in.
    """

    policy: Policy
    task: Task[Any]
    problems: Sequence[Any]
    config: TrainConfig
    answers: int
    target_in_prompt: bool
    forced: ForcedTags | None
    autocast: Callable[[], AbstractContextManager[Any]]

    def measure(self, step: int) -> dict[str, Any] | None:
        """The row of the log after a step; None where no score is known, with a warning. All processes call it.

        The row is that of the main process; the others return None.
        """
        began = time.perf_counter()
        row: dict[str, Any] | None = None
        with undisturbed(self.policy.model):
            completions = self._completions()
            with together():
                if is_main():
                    row = self._measured(step, completions)
        return None if row is None else {"step": step, **row, "seconds": round(time.perf_counter() - began, 3)}

    def _completions(self) -> list[Completion]:
        """The completions of each problem; the processes share the batches, and sample what one would sample."""
        assert self.config.eval_pool is not None
        assert self.config.eval_temperature is not None
        assert self.config.max_tokens is not None
        sampling = Sampling(
            temperature=self.config.eval_temperature,
            max_new_tokens=self.config.max_tokens * self.answers,
            seed=self.config.seed,
        )
        prompts = problem_prompts(
            self.task,
            self.problems,
            answers=self.answers,
            target=self.config.target,
            target_in_prompt=self.target_in_prompt,
        )
        generations = [prompt for prompt in prompts for _ in range(self.config.eval_pool // self.answers)]
        share: dict[str, Any] = {"first": processes.index(), "every": processes.count()}
        own: dict[int, Completion] = {}
        with together(), self.autocast():
            for batch in complete_batches(self.policy, generations, sampling, forced=self.forced, **share):
                own.update(batch)
        completions = {index: each for part in gathered(own) for index, each in part.items()}
        return [completions[index] for index in range(len(generations))]

    def _measured(self, step: int, completions: Sequence[Completion]) -> dict[str, Any] | None:
        unscored = unscored_completions(self.problems, completions, self.answers)
        try:
            scored = list(score_completions(self.task, unscored, target=self.config.target))
        except InputError:
            raise
        except Exception as error:
            if self.task.name in BUILT_IN:  # a bug of this library
                raise
            reason = one_line(f"{type(error).__name__}: {error}")
            warnings.warn(f"no evaluation after step {step}: task {self.task.name} raised {reason}", stacklevel=2)
            return None
        # Counts of a reward belong to this row, not to the next step's.
        counts = {name: total / count if count else total for name, (total, count) in self.task.counted().items()}
        if not any(each.rows for each in scored):
            warnings.warn(f"no evaluation after step {step}: no score of a held-out problem is known", stacklevel=2)
            return None
        return {**measures(scored, self.config), **counts}


def measures(scored: Sequence[ScoredCompletion], config: TrainConfig) -> dict[str, float]:
    """The means over problems of what is logged, by name."""
    counts = ScoreCounts()
    for each in scored:
        counts.add(each)
    pool = pool_of_rows(Path("held-out"), enumerate((row for each in scored for row in each.rows), start=1))
    shares, generations = counts.data(), [each.rows[0] for each in scored if each.rows]
    return {
        **_at_budgets(pool, config),
        SET_REWARD: _set_reward(pool),
        "parse_rate": shares["in_form"],
        "read_rate": shares["given"],
        "tokens": float(np.mean([row["tokens"] for row in generations])),
        "problems": len(pool.problems),
        "unknown": counts.unknown,
    }


def eval_text(row: Mapping[str, Any], config: TrainConfig) -> str:
    """The most important measures of a row, in words."""
    ks = [int(name.removeprefix("best@")) for name in row if name.startswith("best@")]
    chosen = f"best@{max(ks)}" if config.keep_best in (None, NONE) else str(config.keep_best)
    names = dict.fromkeys(["best@1", chosen, SET])
    values = [f"{name.replace('_', ' ')} {row[name]:.3f}" for name in names if name in row]
    return ", ".join(["held-out " + values[0], *values[1:], f"in form {row['parse_rate']:.0%}"])


def _at_budgets(pool: Pool, config: TrainConfig) -> dict[str, float]:
    """best@K and pass@K by answers, and what one completion has."""
    assert config.eval_pool is not None
    match = AT_K.fullmatch(config.keep_best or "")
    # Where scores are unknown a problem has fewer answers: those that have all are measured, if there are any.
    whole = [name for name, problem in pool.problems.items() if len(problem.scores_nD) >= config.eval_pool]
    names = whole or list(pool.problems)
    problems = [pool.problems[name] for name in names]
    fewest = min(len(problem.scores_nD) for problem in problems)
    wanted = {*DEFAULT_KS, config.eval_pool, *([int(match[2])] if match else [])}
    budgets = fit_budgets([problems], sorted(k for k in wanted if k <= fewest))
    table = measure_pool(pool, names, config.target, budgets, texts=False)
    return {
        metric.label: float(column_P.mean())
        for metric, column_P in table.items()
        if metric.name in (FIRST, SET) or (metric.name in (BEST, PASS) and metric.budget == Budget.ANSWERS)
    }


def _set_reward(pool: Pool) -> float:
    """The mean set reward of a completion, over uniform weightings."""
    means = []
    for problem in pool.problems.values():
        scores_NMD = problem.scores_nD.reshape(len(problem.set_sizes_N), -1, len(problem.objectives))
        means.append(float(np.mean(np.asarray(set_reward(scores_NMD)))))
    return float(np.mean(means))


@contextmanager
def undisturbed(model: Any) -> Iterator[None]:
    """Sample from a model in training, and leave no trace: random numbers, mode and `generate` are as before.

    A trainer's `generate` forces tags and masks them in the loss, so the model's own is used meanwhile.
    """
    import torch

    # A task of the user's may draw from numpy's shared state, as trainers do.
    states = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    on_gpus = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    generate = vars(model).pop("generate", None)
    try:
        with evaluating(model):
            yield
    finally:
        if generate is not None:
            model.generate = generate
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
        torch.set_rng_state(states[2])
        if on_gpus:
            torch.cuda.set_rng_state_all(on_gpus)
