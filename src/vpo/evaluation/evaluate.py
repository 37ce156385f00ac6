"""From a policy and problems to a pool: sample completions, score their answers, measure the pool, write it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from vpo.core.checks import as_integer
from vpo.core.targets import weights_for
from vpo.evaluation.compare import Comparison, compare
from vpo.evaluation.comparison_text import comparison_data
from vpo.evaluation.eval_folder import Evaluation, check_free, new_pool_path, oracle_of, write_facts
from vpo.evaluation.pools import read_pool
from vpo.evaluation.score import UnscoredCompletion, score_completions
from vpo.evaluation.scored import ScoreCounts, ScoredCompletion, write_scored
from vpo.models.generate import Sampling, complete
from vpo.models.locate import locate
from vpo.models.policy import Policy, load
from vpo.models.prompt_format import MAX_TOKENS
from vpo.tasks import Task
from vpo.tasks.task import scoring_note
from vpo.util.errors import InputError
from vpo.util.files import disk_full
from vpo.util.records import command_line
from vpo.util.settings import check_settings, setting


@dataclass(frozen=True, kw_only=True)
class EvalConfig:
    """An evaluation of a model on the problems of a task. What is None is as the model was trained."""

    model: str  # a run, a folder, a name on the hub, or "embedded"
    task: str | None = None  # its name, or the path of a Python file that defines it
    task_settings: dict[str, Any] = field(default_factory=dict)
    split: str = setting("test", "the split of the problems", metavar="SPLIT")
    problems: int | None = setting(None, "how many problems", shown="all of the split", least=1)
    answers: int | None = setting(
        None, "answers that one completion is to hold", metavar="M", shown="as the model was trained; else 1"
    )
    pool: int = setting(30, "answers sampled for each problem, a multiple of M")
    target: dict[str, float] | None = None  # w*, objective → weight
    max_tokens: int | None = setting(
        None, "token budget of an answer", shown=f"as the model was trained; else {MAX_TOKENS}"
    )
    sampling: dict[str, Any] = field(default_factory=dict)  # fields of `Sampling` but for max_new_tokens

    def __post_init__(self) -> None:
        """Refuse wrong types and values out of bounds."""
        check_settings(self)


def evaluate_into(folder: Path, config: EvalConfig, *, overwrite: bool = False) -> tuple[Comparison, ScoreCounts]:
    """Evaluate a model, and write the pool and its measures into a folder."""
    check_free(folder, overwrite=overwrite)
    located = locate(config.model, config.task, config.task_settings)
    model = located.resolve(answers=config.answers, max_tokens=config.max_tokens)
    task = model.task
    problems = task.problems(config.split, count=config.problems)
    sampling = Sampling(max_new_tokens=model.max_tokens * model.answers, **config.sampling)
    target = config.target or model.format.target or task.target
    for problem in problems:
        weights_for(target, task.names_of(problem), f"problem {problem.id!r}")  # refuses objectives that it lacks
    scored = evaluate(
        load(model.path),
        task,
        problems,
        answers=model.answers,
        pool=config.pool,
        sampling=sampling,
        target=target,
        target_in_prompt=model.format.target_in_prompt,
    )
    with disk_full(folder, hint="free disk space, and evaluate again"):
        path = new_pool_path(folder)
        counts = write_scored(path, scored)
    pool = read_pool(path)
    facts = {
        "command": command_line(),
        "model": config.model,
        "task": located.task,
        "task_settings": located.settings,
        "split": config.split,
        "problems": len(problems),
        "answers_per_generation": model.answers,
        "sampling": asdict(sampling),
        **scoring_note(task),
        **counts.data(),
        "target": target,
    }
    oracle = oracle_of([Evaluation(pool, facts)], target)
    comparison = compare([pool], target=target, oracle=oracle)
    write_facts(folder, {**facts, **comparison_data(comparison)})
    return comparison, counts


def evaluate(
    policy: Policy,
    task: Task[Any],
    problems: Sequence[Any],
    *,
    answers: int,
    pool: int,
    sampling: Sampling,
    target: Mapping[str, float] | None = None,
    target_in_prompt: bool = False,
) -> Iterator[ScoredCompletion]:
    """Sample and score completions, problem by problem, while they are read.

    Args:
        policy: to sample from.
        task: of the problems.
        problems: of the task.
        answers: m, how many answers a prompt asks for.
        pool: answers per problem, a multiple of m.
        sampling: of the completions.
        target: w*, objective → weight.
        target_in_prompt: whether prompts state the target, for a policy that was trained with it in its prompts.
    """
    as_integer(answers, "answers", 1)
    if as_integer(pool, "pool", 1) % answers:
        raise InputError(f"pool must be a multiple of the {answers} answers of a generation, not {pool}")
    generations = [(problem, generation) for problem in problems for generation in range(pool // answers)]

    def prompt(problem: Any) -> Any:
        stated = weights_for(target, task.names_of(problem)).tolist() if target_in_prompt else None
        return task.ask(problem, answers, stated)

    completions = complete(policy, [prompt(problem) for problem, _ in generations], sampling)
    return score_completions(
        task,
        (
            UnscoredCompletion(problem, each.text, answers, {"generation": generation, "tokens": each.tokens})
            for (problem, generation), each in zip(generations, completions, strict=True)
        ),
        target=target,
    )
