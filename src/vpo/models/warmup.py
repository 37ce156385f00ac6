"""Warm-up: supervised fine-tuning that teaches a model the format of sets, before RL teaches it to write good ones.

A model that cannot do the task yet learns single gold answers first (`single_steps`). Then it learns sets and as many
single answers, so that it does not forget how to write one: gold ones, and with `--source own` good ones of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import numpy as np

from vpo.core.targets import weights_for
from vpo.models.generate import Sampling, complete
from vpo.models.locate import locate
from vpo.models.policy import Policy, load
from vpo.models.sft import Example, Schedule, encode, fine_tune
from vpo.tasks import Task
from vpo.tasks.answers import duplicates, write
from vpo.util.errors import InputError
from vpo.util.files import check_new, disk_full, new_folder
from vpo.util.settings import SEEDS, check_settings, setting

SOURCES = DEMONSTRATIONS, OWN = "demonstrations", "own"
PROBED = 32  # problems on which the format is tried, before and after

SetOfAnswers: TypeAlias = tuple[Any, list[str]]  # a problem, and a set of answers to learn
Single: TypeAlias = tuple[Any, str]  # a problem, and a completion with one answer to learn


@dataclass(frozen=True, kw_only=True)
class WarmupConfig:
    """Settings of a warm-up: steps on single gold answers, then steps on sets of answers."""

    answers: int = setting(3, "answers of a set", metavar="M")
    source: str = setting(
        DEMONSTRATIONS,
        "where the answers of sets come from: the task's demonstrations, or the best of the model's own single answers",
        choices=SOURCES,
    )
    split: str = setting("train", "split to learn from", metavar="SPLIT")
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


def warm_up(
    model: str, task_name: str, settings: dict[str, Any], out: str | Path, warmup: WarmupConfig
) -> dict[str, Any]:
    """Fine-tune a model on sets, and save it in a new folder.

    The result has `sets` (how many were made), `left_out` (examples over the token budget), `sets_that_repeat` (the
    share of sets with an answer twice), `loss` (as training logged it), and `readable_before` and `readable_after`.

    Args:
        model: "embedded", a run, a folder, or a name on the hub.
        task_name: a task's name or file.
        settings: of the task.
        out: the new folder.
        warmup: what to learn, and for how long.
    """
    from transformers import set_seed

    start = locate(model, task_name, settings).resolve(answers=warmup.answers, max_tokens=warmup.max_tokens)
    task, out = start.task, Path(out)
    check_new(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    problems = _sample_problems(task, warmup.split, warmup.set_problems, warmup.seed)
    demonstrated = _demonstrated_sets(task, problems, warmup)  # before the model is loaded: there may be none
    gold_answers = _gold_answers(task, warmup.split) if warmup.single_steps else []
    policy = load(start.path, precision="float32")
    set_seed(warmup.seed)
    before = readable_share(policy, task, warmup)
    golds = _gold_examples(policy, task, gold_answers)
    singles = _within_budget(golds, warmup.max_tokens)
    with disk_full(out.parent, hint="free disk space, and warm up again"), new_folder(out) as folder:
        losses = _learn(policy, singles, folder, warmup, warmup.single_steps) if singles else []
        sets, own_singles = demonstrated, list[Single]()
        if warmup.set_steps > 0 and warmup.source == OWN:
            sets, own_singles = _own_sets(policy, task, problems, warmup)
        examples = _set_examples(policy, task, sets, warmup)
        own = [encode(policy.tokenizer, task.ask(problem, 1), text) for problem, text in own_singles]
        kept = Random(f"kept singles {warmup.seed}").sample(singles + own, min(len(examples), len(singles + own)))
        losses += _learn(policy, examples + kept, folder, warmup, warmup.set_steps) if warmup.set_steps else []
        after = readable_share(policy, task, warmup)
        policy.model.save_pretrained(folder)
        policy.tokenizer.save_pretrained(folder)
        start.trained_format(task.ask(problems[0], warmup.answers)).save(folder)
    repeating = sum(any(duplicates(answers, task.normal_form)) for _, answers in sets)
    return {
        "sets": len(sets),
        "left_out": len(golds) - len(singles) + len(sets) - len(examples),
        "sets_that_repeat": repeating / max(1, len(sets)),
        "loss": losses,
        "readable_before": before,
        "readable_after": after,
    }


def readable_share(policy: Policy, task: Task[Any], warmup: WarmupConfig) -> float:
    """The share of answers that can be parsed, when prompts ask for sets."""
    problems = _sample_problems(task, warmup.split, PROBED, warmup.seed)
    prompts = [task.ask(problem, warmup.answers) for problem in problems]
    sampling = Sampling(temperature=1.0, max_new_tokens=warmup.max_tokens * warmup.answers, seed=warmup.seed)
    sets = [task.parse(each.text, warmup.answers) for each in complete(policy, prompts, sampling)]
    parsed = [answer is not None and task.normal_form(answer) is not None for answers in sets for answer in answers]
    return sum(parsed) / len(parsed)


def _learn(policy: Policy, examples: Sequence[Example], folder: Path, warmup: WarmupConfig, steps: int) -> list[float]:
    """Fine-tune a policy in place; the result is the loss, as it was logged."""
    if len(examples) < warmup.batch:
        raise InputError(f"batch must be at most {len(examples)}, the number of examples, not {warmup.batch}")
    schedule = Schedule(
        steps=steps,
        batch=warmup.batch,
        micro_batch=warmup.micro_batch,
        learning_rate=warmup.warmup_learning_rate,
        seed=warmup.seed,
    )
    policy.model.train()
    losses = fine_tune(policy.model, policy.tokenizer, examples, folder, schedule)
    policy.model.eval()
    return losses


def _gold_answers(task: Task[Any], split: str) -> list[tuple[Any, str]]:
    """A single gold answer of each problem."""
    random = Random("single demonstrations")
    try:
        return [(problem, task.demonstrations(problem, 1, random)[0]) for problem in task.problems(split)]
    except InputError as error:
        raise InputError(f"single_steps needs gold answers, and {error}: set it to 0") from None


def _gold_examples(policy: Policy, task: Task[Any], golds: Sequence[tuple[Any, str]]) -> list[Example]:
    return [
        encode(policy.tokenizer, task.ask(problem, 1), write([gold]) if task.wraps_single else gold)
        for problem, gold in golds
    ]


def _set_examples(policy: Policy, task: Task[Any], sets: Sequence[SetOfAnswers], warmup: WarmupConfig) -> list[Example]:
    """Sets as examples, less demonstrations over the token budget; the model's own answers were sampled within it."""
    examples = [
        encode(policy.tokenizer, task.ask(problem, warmup.answers), task.form.write(answers))
        for problem, answers in sets
    ]
    return examples if warmup.source == OWN else _within_budget(examples, warmup.answers * warmup.max_tokens)


def _within_budget(examples: list[Example], max_tokens: int) -> list[Example]:
    """The examples within a token budget: a model that learns longer ones would be cut off when it is sampled."""
    kept = [example for example in examples if example.completion_length <= max_tokens]
    if examples and not kept:
        shortest = min(example.completion_length for example in examples)
        raise InputError(f"no gold answer fits into {max_tokens} tokens, the shortest has {shortest}: raise max_tokens")
    return kept


def _demonstrated_sets(task: Task[Any], problems: Sequence[Any], warmup: WarmupConfig) -> list[SetOfAnswers]:
    """Sets of the task's demonstrations, where the sets to learn are those; none otherwise."""
    if not warmup.set_steps or warmup.source != DEMONSTRATIONS:
        return []
    random = Random(f"warm-up {warmup.seed}")
    try:
        return [(problem, task.demonstrations(problem, warmup.answers, random)) for problem in problems]
    except InputError as error:
        others = " or ".join(source for source in SOURCES if source != DEMONSTRATIONS)
        raise InputError(f"{error}: learn from another source, with --source {others}") from None


def _own_sets(
    policy: Policy, task: Task[Any], problems: Sequence[Any], warmup: WarmupConfig
) -> tuple[list[SetOfAnswers], list[Single]]:
    """Sets and single answers of the model's own, out of 2m single answers to each problem.

    A set has the best different ones in random order; problems with fewer than m are left out. A single answer is a
    best one, as the model wrote it.
    """
    samples = 2 * warmup.answers
    repeated = [problem for problem in problems for _ in range(samples)]
    sampling = Sampling(temperature=1.0, max_new_tokens=warmup.max_tokens, seed=warmup.seed)
    completions = complete(policy, [task.ask(problem, 1) for problem in repeated], sampling)
    answers = [task.parse(each.text, 1)[0] for each in completions]
    vectors = task.score_all(repeated, answers)
    random = Random(f"own answers {warmup.seed}")
    sets, singles, read = list[SetOfAnswers](), list[Single](), 0
    for index, problem in enumerate(problems):
        here = range(index * samples, (index + 1) * samples)
        weights_D = weights_for(task.target, task.names_of(problem))
        scores: dict[str, float] = {}
        texts: dict[str, str] = {}  # the completions that were not cut off, by their answers
        for each in here:
            answer, vector = answers[each], vectors[each]
            # Text that is no answer would count as a different one, and be learned.
            if answer is None or vector is None or task.normal_form(answer) is None:
                continue
            read += 1
            scores[answer] = float(weights_D @ np.asarray(vector))
            if (completions[each].tokens or 0) < warmup.max_tokens:
                texts[answer] = completions[each].text
        ordered = sorted(scores, key=scores.__getitem__, reverse=True)
        members = [task.in_set(problem, answer) for answer in ordered]
        repeats = duplicates(members, task.normal_form)
        different = [member for member, repeat in zip(members, repeats, strict=True) if not repeat]
        if len(different) >= warmup.answers:
            sets.append((problem, random.sample(different[: warmup.answers], warmup.answers)))
        best = next((answer for answer in ordered if answer in texts and scores[answer] > 0), None)
        if best is not None:
            singles.append((problem, texts[best]))
    if not sets:
        raise InputError(
            f"no problem has {warmup.answers} different answers of the model's own, {read / len(answers):.0%} of "
            f"whose single answers could be read: learn from the task's {DEMONSTRATIONS}, or raise max_tokens"
        )
    return sets, singles


def _sample_problems(task: Task[Any], split: str, count: int, seed: int) -> Sequence[Any]:
    """A random sample of the problems of a split; all of them if it has fewer, and no more can be made."""
    problems = list(task.problems(split))
    if count < len(problems):
        return Random(f"problems {seed}").sample(problems, count)
    try:
        return task.problems(split, count=count)  # a task that makes its problems has more
    except InputError:
        return problems
