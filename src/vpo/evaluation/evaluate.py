"""From a policy and problems to a pool: sample, parse, score; and the whole of an evaluation, measured and written."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from vpo.core.checks import as_integer
from vpo.core.targets import weights_for
from vpo.evaluation.comparison_text import comparison_data
from vpo.evaluation.eval_folder import Evaluation, check_free, oracle_of, write_answers, write_facts
from vpo.evaluation.measure import Comparison, compare
from vpo.evaluation.score import Completion, Tally, scored_rows
from vpo.models.generate import Sampling, complete
from vpo.models.locate import locate
from vpo.models.policy import Policy, load
from vpo.tasks import Task
from vpo.tasks.task import scoring_note
from vpo.util.errors import InputError
from vpo.util.files import command_line, disk_full


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to evaluate, and how. What is None is as the model was trained.

    Attributes:
        model: a run, a folder, a name on the hub, or "embedded".
        task: what to ask.
        settings: of the task.
        split: which problems.
        problems: how many of them; all by default.
        answers: m, how many answers a generation is asked for.
        pool: answers per problem.
        target: w*, objective → weight.
        max_tokens: room for each.
        sampling: temperature, top_p, batch, seed and thinking, by their names in `Sampling`.
    """

    model: str
    task: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    split: str = "test"
    problems: int | None = None
    answers: int | None = None
    pool: int = 30
    target: dict[str, float] | None = None
    max_tokens: int | None = None
    sampling: dict[str, Any] = field(default_factory=dict)


def evaluate_into(folder: Path, request: Request, *, overwrite: bool = False) -> tuple[Comparison, Tally]:
    """Sample, score and measure what a request asks for; write it into a folder as an evaluation."""
    check_free(folder, overwrite=overwrite)
    located = locate(request.model, request.task, request.settings)
    model = located.resolve(answers=request.answers, max_tokens=request.max_tokens)
    task, answers = model.task, model.answers
    problems = task.problems(request.split, count=request.problems)
    sampling = Sampling(max_new_tokens=model.max_tokens * answers, **request.sampling)
    target = request.target or model.format.target or task.target
    tally = Tally(target=target)
    for problem in problems:
        weights_for(target, task.names_of(problem), f"problem {problem.id!r}")  # refuses objectives that it lacks
    told = model.format.target_in_prompt
    rows = evaluate(load(model.path), task, problems, answers, request.pool, sampling, tally, told=told)
    with disk_full(folder, hint="make room, and evaluate again"):
        pool = write_answers(folder, rows)
    facts = {
        "command": command_line(),
        "model": request.model,
        "task": located.task,
        "task_settings": located.settings,
        "split": request.split,
        "problems": len(problems),
        "answers_per_generation": answers,
        "sampling": asdict(sampling),
        **scoring_note(task),
        **tally.data(),
    }
    oracle = oracle_of([Evaluation(pool, facts)], tally.target)
    comparison = compare([pool], target=tally.target, oracle=oracle)
    write_facts(folder, {**facts, **comparison_data(comparison)})
    return comparison, tally


def evaluate(
    policy: Policy,
    task: Task[Any],
    problems: Sequence[Any],
    answers: int,
    pool: int,
    sampling: Sampling,
    tally: Tally | None = None,
    *,
    told: bool = False,
) -> Iterator[dict[str, Any]]:
    """Return the rows of a pool, sampled while they are read.

    Args:
        policy: what writes.
        task: what asks and scores.
        problems: of the task.
        answers: m, how many answers a generation is asked for.
        pool: answers per problem, a multiple of m.
        sampling: how completions are drawn.
        tally: counts what is read; it has the target.
        told: whether the prompts state the target, for a policy that was trained to be told one.
    """
    as_integer(answers, "answers", 1)
    if as_integer(pool, "pool", 1) % answers:
        raise InputError(f"pool must be a multiple of the {answers} answers of a generation, not {pool}")
    tally = Tally(target=task.target) if tally is None else tally
    completions = _sampled(policy, task, problems, answers, pool // answers, sampling, told, tally.target)
    return scored_rows(task, completions, tally)


def _sampled(
    policy: Policy,
    task: Task[Any],
    problems: Sequence[Any],
    answers: int,
    generations: int,
    sampling: Sampling,
    told: bool,
    target: Mapping[str, float] | None,
) -> Iterator[Completion]:
    asked = [(problem, generation) for problem in problems for generation in range(generations)]
    prompts = []
    for problem, _ in asked:
        stated = weights_for(target, task.names_of(problem)).tolist() if told else None
        prompts.append(task.ask(problem, answers, stated))
    for (problem, generation), (text, tokens) in zip(asked, complete(policy, prompts, sampling), strict=True):
        yield Completion(problem, text, answers, {"generation": generation, "tokens": tokens})
