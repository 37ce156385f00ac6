"""Which problems a run trains on, and which it holds out to evaluate the model while it trains."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from vpo.tasks import Task
from vpo.tasks.data import take
from vpo.training.config import TrainConfig
from vpo.util.errors import InputError

PROBLEMS = 100  # held out, unless a run says how many or there are fewer
SHARE = 5  # at most one in so many training problems is held out unless a run says how many


class RunProblems(NamedTuple):
    """The problems of a run: to train on, and held out; of the latter there are none without evaluations."""

    trained: Sequence[Any]
    held_out: Sequence[Any]


def run_problems(task: Task[Any], config: TrainConfig) -> RunProblems:
    """The problems of a run; of the split that is trained on, those held out are not trained on."""
    if config.eval_every is None:
        return RunProblems(task.problems(config.split, count=config.problems), ())
    if config.eval_split != config.split:
        trained = task.problems(config.split, count=config.problems)
        held_out = _other_split(task, config)
        _check_apart(task, trained, held_out, config)
        return RunProblems(trained, held_out)
    everything = task.problems(config.split)
    count = config.eval_problems or max(1, min(PROBLEMS, len(everything) // SHARE))
    if count >= len(everything):
        raise InputError(
            f"eval_problems must be less than the {len(everything)} problems of split {config.split!r}, the rest of "
            f"which is trained on, not {count}"
        )
    names = held_out_names([problem.id for problem in everything], count)
    held_out = [problem for problem in everything if problem.id in names]
    same = {_content(task, problem) for problem in held_out}  # data sets repeat problems under other ids
    rest = [problem for problem in everything if _content(task, problem) not in same]
    if config.problems is not None and config.problems > len(rest):
        raise InputError(
            f"problems must be at most {len(rest)}, the {len(everything)} of split {config.split!r} less {count} held "
            f"out and their copies, not {config.problems}"
        )
    if not rest:
        raise InputError(f"split {config.split!r} has nothing to train on but copies of the {count} problems held out")
    return RunProblems(take(rest, config.problems), held_out)


def held_out_names(names: Sequence[str], count: int) -> set[str]:
    """Those of some problems that are held out: the first by the SHA-256 of their ids, whatever the seed or order.

    So runs of other methods and seeds hold out the same problems, and more of them include fewer.
    """
    return set(sorted(names, key=lambda name: hashlib.sha256(str(name).encode()).digest())[:count])


def _other_split(task: Task[Any], config: TrainConfig) -> Sequence[Any]:
    assert config.eval_split is not None  # `resolve` has chosen it
    if config.eval_problems is not None:
        return task.problems(config.eval_split, count=config.eval_problems)
    return task.problems(config.eval_split)[:PROBLEMS]


def _check_apart(task: Task[Any], trained: Sequence[Any], held_out: Sequence[Any], config: TrainConfig) -> None:
    """Refuse a split that shares problems with the one that is trained on, by their questions: ids can be others."""
    known = {_content(task, problem) for problem in trained}
    for problem in held_out:
        if _content(task, problem) in known:
            raise InputError(
                f"eval_split {config.eval_split!r} has problem {problem.id!r}, which is trained on: name a split of "
                f"other problems, or {config.split!r} to hold some of those out"
            )


def _content(task: Task[Any], problem: Any) -> str:
    """What is asked, which is the same for copies of a problem."""
    return json.dumps(task.question(problem))
