"""Warm-up: teaches a model to write sets in their tags, before it is trained to write good ones.

A model that cannot do the task yet learns single gold answers first (`single_steps`), and goes on beside the sets.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from vpo.core.targets import weights_for
from vpo.models.generate import Sampling, complete
from vpo.models.locate import locate
from vpo.models.policy import Policy, load
from vpo.models.sft import Example, Schedule, encode, fine_tune
from vpo.tasks import Task
from vpo.tasks.answers import duplicates, write
from vpo.util.errors import InputError
from vpo.util.files import disk_full, new_folder
from vpo.util.settings import SEEDS, check_settings, setting

DEMONSTRATIONS, OWN = "demonstrations", "own"  # sources
PROBED = 32  # problems on which the format is tried, before and after


@dataclass(frozen=True, kw_only=True)
class Warmup:
    """Settings of a warm-up: steps on single gold answers, then steps on sets of answers."""

    answers: int = setting(3, "answers of a set", metavar="M")
    source: str = setting(
        DEMONSTRATIONS,
        "where the answers of sets come from: the task's demonstrations, or the best of the model's own single answers",
        choices=(DEMONSTRATIONS, OWN),
    )
    single_steps: int = setting(
        0, "optimiser steps on single gold answers first, for a model that cannot do the task yet", least=0
    )
    set_problems: int = setting(500, "problems to make sets for", least=1)
    set_steps: int = setting(100, "optimiser steps on sets; 0 for single answers alone", least=0)
    batch: int = setting(16, "examples in a step", least=1)
    micro_batch: int = setting(4, "examples in one backward pass", shown="4, or what of it divides --batch", least=1)
    warmup_learning_rate: float = setting(1e-5, "learning rate of the warm-up, at its peak", metavar="RATE", above=0)
    max_tokens: int = setting(256, "token budget of an answer; longer gold answers are left out", least=1)
    seed: int = setting(0, "random seed", least=0, most=SEEDS - 1)

    def __post_init__(self) -> None:
        """Refuse values out of bounds, and a batch that cannot be split."""
        check_settings(self)
        if not self.set_steps and not self.single_steps:
            raise InputError("set_steps must be 1 or more, not 0")
        if self.answers < 2:
            raise InputError(f"answers must be 2 or more, a set, not {self.answers}")
        if self.batch % self.micro_batch:
            raise InputError(f"micro_batch must divide the batch of {self.batch}, and {self.micro_batch} does not")


def warm_up(model: str, task_name: str, settings: dict[str, Any], out: str | Path, warmup: Warmup) -> dict[str, Any]:
    """Fine-tune a model on sets, save it in a new folder, and return what was done."""
    from transformers import set_seed

    start = locate(model, task_name, settings).resolve(answers=warmup.answers, max_tokens=warmup.max_tokens)
    task = start.task
    if Path(out).exists():
        raise InputError(f"{out}: there is something already, and nothing is overwritten")
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    problems = _some(task, "train", warmup.set_problems, warmup.seed)
    policy = load(start.path, precision="float32")
    set_seed(warmup.seed)
    before = readable(policy, task, warmup)
    golds = _singles(policy, task) if warmup.single_steps else []
    singles = _fitting(golds, warmup.max_tokens)
    with disk_full(Path(out).parent, hint="make room, and warm up again"), new_folder(Path(out)) as folder:
        losses = _learn(policy, singles, folder, warmup, warmup.single_steps) if singles else []
        sets = _sets(policy, task, problems, warmup) if warmup.set_steps else []
        asked = [
            encode(policy.tokenizer, task.ask(problem, warmup.answers), write(answers)) for problem, answers in sets
        ]
        # The model's own were written in that room.
        rows = asked if warmup.source == OWN else _fitting(asked, warmup.answers * warmup.max_tokens)
        taught = len(rows)
        rows += Random(f"kept singles {warmup.seed}").sample(singles, min(len(rows), len(singles)))
        repeated = [any(duplicates(answers, task.normal_form)) for _, answers in sets]
        losses += _learn(policy, rows, folder, warmup, warmup.set_steps) if warmup.set_steps else []
        after = readable(policy, task, warmup)
        policy.model.save_pretrained(folder)
        policy.tokenizer.save_pretrained(folder)
        start.trained_format(task.ask(problems[0], warmup.answers)).save(folder)
    return {
        "sets": len(sets),
        "left_out": len(golds) - len(singles) + len(sets) - taught,
        "sets_that_repeat": sum(repeated) / max(1, len(repeated)),
        "loss": losses,
        "readable_before": before,
        "readable_after": after,
    }


def _learn(policy: Policy, rows: Sequence[Example], folder: Path, warmup: Warmup, steps: int) -> list[float]:
    """Train a model on examples, and return the loss as it went down."""
    if len(rows) < warmup.batch:
        raise InputError(f"batch must be at most {len(rows)}, the examples that there are, not {warmup.batch}")
    schedule = Schedule(
        steps=steps,
        batch=warmup.batch,
        micro_batch=warmup.micro_batch,
        learning_rate=warmup.warmup_learning_rate,
        seed=warmup.seed,
    )
    policy.model.train()
    losses = fine_tune(policy.model, policy.tokenizer, rows, folder, schedule)
    policy.model.eval()
    return losses


def _singles(policy: Policy, task: Task[Any]) -> list[Example]:
    """Return the gold answers of all problems, as single ones."""
    random = Random("single demonstrations")
    rows = []
    for problem in task.problems("train"):
        (gold,) = task.demonstrations(problem, 1, random)
        rows.append(encode(policy.tokenizer, task.ask(problem, 1), write([gold]) if task.wraps_single else gold))
    return rows


def _fitting(rows: list[Example], room: int) -> list[Example]:
    """Return the examples whose completions fit: what is learned and does not would be cut off whenever it is drawn."""
    fitting = [row for row in rows if len(row[0]) - row[1] <= room]
    if rows and not fitting:
        shortest = min(len(tokens) - prompt for tokens, prompt in rows)
        raise InputError(f"no gold answer fits into {room} tokens, the shortest has {shortest}: raise max_tokens")
    return fitting


def readable(policy: Policy, task: Task[Any], warmup: Warmup) -> float:
    """Return the share of the answers, asked for as sets, that can be read."""
    prompts = [task.ask(problem, warmup.answers) for problem in _some(task, "train", PROBED, warmup.seed)]
    sampling = Sampling(temperature=1.0, max_new_tokens=warmup.max_tokens * warmup.answers, seed=warmup.seed)
    found = [task.parse(each.text, warmup.answers) for each in complete(policy, prompts, sampling)]
    read = [answer is not None and task.normal_form(answer) is not None for answers in found for answer in answers]
    return sum(read) / len(read)


def _sets(policy: Policy, task: Task[Any], problems: Sequence[Any], warmup: Warmup) -> list[tuple[Any, list[str]]]:
    """Return problems, each with a set of answers to learn."""
    if warmup.source == DEMONSTRATIONS:
        return _demonstrated(task, problems, warmup)
    return _own(policy, task, problems, warmup)


def _demonstrated(task: Task[Any], problems: Sequence[Any], warmup: Warmup) -> list[tuple[Any, list[str]]]:
    random = Random(f"warm-up {warmup.seed}")
    return [(problem, task.demonstrations(problem, warmup.answers, random)) for problem in problems]


def _own(policy: Policy, task: Task[Any], problems: Sequence[Any], warmup: Warmup) -> list[tuple[Any, list[str]]]:
    """Return sets of the best different answers that the model gave one at a time, in any order.

    Problems with too few are left out.
    """
    draws = 2 * warmup.answers
    prompts = [task.ask(problem, 1) for problem in problems for _ in range(draws)]
    sampling = Sampling(temperature=1.0, max_new_tokens=warmup.max_tokens, seed=warmup.seed)
    found = [task.parse(each.text, 1)[0] for each in complete(policy, prompts, sampling)]
    vectors = task.score_all([problem for problem in problems for _ in range(draws)], found)
    drawn = list(zip(found, vectors, strict=True))
    random = Random(f"own answers {warmup.seed}")
    sets, read = [], 0
    for place, problem in enumerate(problems):
        its_own = drawn[place * draws : (place + 1) * draws]
        weights_D = weights_for(task.target, task.names_of(problem))
        # Text that is no answer would count as a different one, and be learned.
        worth = {
            answer: float(weights_D @ np.asarray(vector))
            for answer, vector in its_own
            if answer is not None and vector is not None and task.normal_form(answer) is not None
        }
        read += sum(answer in worth for answer, _ in its_own)
        ordered = sorted(worth, key=worth.__getitem__, reverse=True)
        repeated = duplicates(ordered, task.normal_form)
        different = [answer for answer, again in zip(ordered, repeated, strict=True) if not again]
        if len(different) >= warmup.answers:
            sets.append((problem, random.sample(different[: warmup.answers], warmup.answers)))
    if not sets:
        raise InputError(
            f"no problem has {warmup.answers} different answers of the model's own, {read / len(found):.0%} of whose "
            f"single answers could be read: learn from the task's {DEMONSTRATIONS}, or raise max_tokens"
        )
    return sets


def _some(task: Task[Any], split: str, count: int, seed: int) -> Sequence[Any]:
    """Return problems drawn from a split; where it has no more, as many as there can be."""
    problems = list(task.problems(split))
    if count < len(problems):
        return Random(f"problems {seed}").sample(problems, count)
    try:
        return task.problems(split, count=count)  # a task that makes its problems has more
    except InputError:
        return problems
