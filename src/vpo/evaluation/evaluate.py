"""From a policy and problems to a pool: sample completions, score their answers, measure the pool, write it."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from vpo.core.checks import as_integer
from vpo.core.targets import weights_for
from vpo.evaluation.compare import Comparison, compare
from vpo.evaluation.comparison_text import comparison_data
from vpo.evaluation.eval_folder import Evaluation, check_free, new_pool_path, oracle_of, write_facts
from vpo.evaluation.eval_log import EvalLog
from vpo.evaluation.fingerprints import requested_with, sampled_with, scored_with
from vpo.evaluation.pools import read_pool
from vpo.evaluation.score import UnscoredCompletion, score_completions
from vpo.evaluation.scored import ScoreCounts, ScoredCompletion, write_scored
from vpo.models.forced_tags import ForcedTags, check_thinking
from vpo.models.generate import Completion, Sampling, complete_batches
from vpo.models.locate import locate
from vpo.models.policy import Policy, load
from vpo.models.precision import PRECISIONS, check_precision
from vpo.models.remote import (
    CONCURRENT,
    GENERATORS,
    RemoteModel,
    check_remote,
    chosen_generator,
    locate_remote,
    request_batches,
    served_name,
)
from vpo.models.vllm_model import VllmModel, forced_opening, vllm_batches
from vpo.tasks import Message, Task
from vpo.tasks.batches import in_batches
from vpo.tasks.task import scoring_note
from vpo.util.errors import InputError
from vpo.util.files import disk_full, locked
from vpo.util.records import command_line
from vpo.util.settings import check_settings, setting

CONTINUE = "repeat the command to continue"


@dataclass(frozen=True, kw_only=True)
class EvalConfig:
    """An evaluation of a model on the problems of a task. What is None is as the model was trained."""

    model: str  # a run, a folder, a name on the hub, or "embedded"
    base: str | None = setting(
        None, "of a LoRA adapter: its base model", metavar="MODEL", shown="where it was when the adapter was trained"
    )
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
        None, "token budget of an answer", shown="as the model was trained; else as the task needs"
    )
    prefill: bool | None = setting(
        None,
        "begin each completion with the tag of its first answer, and force the next tag where an answer closes",
        shown="as the model was trained; else off",
    )
    sampling: dict[str, Any] = field(default_factory=dict)  # fields of `Sampling` but for max_new_tokens
    generator: str = setting(
        "",
        "what samples the completions",
        choices=GENERATORS,
        shown="endpoint where --endpoint is given, else transformers",
    )
    precision: str | None = setting(
        None,
        "of the weights, with transformers",
        choices=PRECISIONS,
        shown="bfloat16 on a GPU, else float32",
    )
    endpoint: str | None = setting(None, "address of an OpenAI-compatible server that has the models", metavar="URL")
    limit: float = setting(120.0, "seconds for an endpoint to answer", metavar="SECONDS", above=0)
    concurrent: int = setting(CONCURRENT, "requests in flight at an endpoint, within a batch", least=1)

    def __post_init__(self) -> None:
        """Choose the default generator; refuse wrong types, values out of bounds, and what an endpoint cannot do."""
        check_settings(self)
        object.__setattr__(self, "generator", chosen_generator(self.generator, self.endpoint))
        if self.endpoint is not None:
            check_remote(thinking=bool(self.sampling.get("thinking")), prefill=self.prefill)
        if self.base is not None and self.generator != "transformers":
            raise InputError(f"base is for adapters, which generator {self.generator} cannot load")
        check_precision(self.precision, self.generator)


def evaluate_into(folder: Path, config: EvalConfig, *, overwrite: bool = False) -> tuple[Comparison, ScoreCounts]:
    """Evaluate a model, and write the pool and its measures into a folder.

    An evaluation that was interrupted there is continued: it ends with the pool of one that was not. One with other
    settings is refused, or with `overwrite` replaced.
    """
    check_free(folder, overwrite=overwrite)
    located = (locate if config.endpoint is None else locate_remote)(config.model, config.task, config.task_settings)
    model = located.resolve(answers=config.answers, max_tokens=config.max_tokens, prefill=config.prefill)
    task = model.task
    check_pool_size(config.pool, model.answers)
    problems = task.problems(config.split, count=config.problems)
    task.prepare(problems)
    sampling = Sampling(max_new_tokens=model.max_tokens * model.answers, **config.sampling)
    check_thinking(prefill=model.prefill, thinking=sampling.thinking)
    if config.endpoint is not None:
        check_remote(thinking=sampling.thinking, prefill=model.prefill)  # as the model was trained
    opening = forced_opening(model) if config.generator == "vllm" else ""
    target = config.target or model.format.target or task.target
    for problem in problems:
        weights_for(target, task.names_of(problem), f"problem {problem.id!r}")  # refuses objectives that it lacks
    facts = {
        "command": command_line(),
        "model": config.model,
        "task": located.task,
        "task_settings": located.settings,
        "split": config.split,
        "problems": len(problems),
        "answers_per_generation": model.answers,
        "prefill": model.prefill,
        "sampling": asdict(sampling),
        **({} if config.generator == "transformers" else {"generator": config.generator}),
        **({} if config.precision is None else {"precision": config.precision}),
        **scoring_note(task),
    }
    settings = {
        **{name: facts[name] for name in ("task", "task_settings", "split", "problems")},
        **{"model": model.path, "answers": model.answers, "pool": config.pool, "target": target},
        **asdict(sampling),
        # As where they are not noted. An endpoint may have another address when the evaluation continues.
        "prefill": model.prefill or None,
        "generator": facts.get("generator"),
    }
    log = EvalLog(folder)
    if not overwrite:
        log.check(settings)  # before the model is loaded
    policy: Policy | VllmModel | RemoteModel
    if config.endpoint is not None:
        reached: dict[str, Any] = {"timeout": config.limit, "concurrent": config.concurrent}
        policy = RemoteModel(config.endpoint, served_name(config.model), sampling, **reached)
    elif config.generator == "vllm":
        policy = VllmModel(model.path, sampling, opening)
    else:
        policy = load(model.path, precision=config.precision, base=config.base)
    prompted: dict[str, Any] = {
        "answers": model.answers,
        "target": target,
        "target_in_prompt": model.format.target_in_prompt,
    }
    prompts = problem_prompts(task, problems, **prompted)
    forced, sampled = None, requested_with(prompts)
    if isinstance(policy, Policy):
        forced = model.forced_tags(policy.tokenizer)
    if not isinstance(policy, RemoteModel):
        sampled = sampled_with(policy, prompts, thinking=sampling.thinking)
    with disk_full(folder, hint=f"free some space, then {CONTINUE}"), _locked(folder):
        check_free(folder, overwrite=overwrite)  # another process may have written one meanwhile
        log.start(
            settings | sampled,
            scoring_note(task) | scored_with(located.task, problems),
            overwrite=overwrite,
        )
        try:
            how: dict[str, Any] = {**prompted, "pool": config.pool, "sampling": sampling, "forced": forced}
            scored = list(evaluate(policy, task, problems, **how, log=log))
        except KeyboardInterrupt:
            print(f"\nvpo: {CONTINUE}", file=sys.stderr)
            raise
        if not any(each.rows for each in scored):
            log.forget_scores()  # write_scored refuses them: the scorer must be fixed, and all scored again
        path = new_pool_path(folder)
        counts = write_scored(path, scored)
        pool = read_pool(path)
        facts |= {**counts.data(), "target": target}
        comparison = compare([pool], target=target, oracle=oracle_of([Evaluation(pool, facts)], target))
        write_facts(folder, {**facts, **comparison_data(comparison)})
        log.discard()
    return comparison, counts


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Make the folder, and lock it."""
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder, "evaluating into this folder"):
        yield


def check_pool_size(pool: int, answers: int) -> None:
    """Refuse a pool that does not consist of whole generations."""
    as_integer(answers, "answers", 1)
    if as_integer(pool, "pool", 1) % answers:
        raise InputError(f"pool must be a multiple of the {answers} answers of a generation, not {pool}")


def evaluate(
    policy: Policy | VllmModel | RemoteModel,
    task: Task[Any],
    problems: Sequence[Any],
    *,
    answers: int,
    pool: int,
    sampling: Sampling,
    target: Mapping[str, float] | None = None,
    target_in_prompt: bool = False,
    forced: ForcedTags | None = None,
    log: EvalLog | None = None,
) -> Iterator[ScoredCompletion]:
    """Sample completions, then score them, problem by problem, while they are read.

    Args:
        policy: to sample from; a remote one, or one of vLLM, has a sampling of its own.
        task: of the problems.
        problems: of the task.
        answers: m, how many answers a prompt asks for.
        pool: answers per problem, a multiple of m.
        sampling: of the completions.
        target: w*, objective → weight.
        target_in_prompt: whether prompts state the target, for a policy that was trained with it in its prompts.
        forced: the tags that open the answers, where the policy does not write them.
        log: what it holds is neither sampled nor scored again; what is new is added to it.
    """
    check_pool_size(pool, answers)
    prompts = problem_prompts(task, problems, answers=answers, target=target, target_in_prompt=target_in_prompt)
    generations = [prompt for prompt in prompts for _ in range(pool // answers)]
    completions = _sample(policy, generations, sampling, forced, log)
    return _score(task, unscored_completions(problems, completions, answers), target, log)


def unscored_completions(
    problems: Sequence[Any], completions: Sequence[Completion], answers: int
) -> list[UnscoredCompletion]:
    """Completions of some problems, as many of each, problem by problem, as they are scored."""
    counted = all(each.tokens is not None for each in completions)  # a pool has the tokens of all or of none
    generations = len(completions) // len(problems)
    return [
        UnscoredCompletion(
            problems[index // generations],
            each.text,
            answers,
            {"generation": index % generations, **({"tokens": each.tokens} if counted else {})},
        )
        for index, each in enumerate(completions)
    ]


def problem_prompts(
    task: Task[Any],
    problems: Sequence[Any],
    *,
    answers: int,
    target: Mapping[str, float] | None,
    target_in_prompt: bool,
) -> list[list[Message]]:
    """The prompt of each problem; `target_in_prompt` is for a policy that was trained with the target in it."""

    def stated(problem: Any) -> list[float] | None:
        return weights_for(target, task.names_of(problem)).tolist() if target_in_prompt else None

    return [task.ask(problem, answers, stated(problem)) for problem in problems]


def _sample(
    policy: Policy | VllmModel | RemoteModel,
    prompts: Sequence[Sequence[Message]],
    sampling: Sampling,
    forced: ForcedTags | None,
    log: EvalLog | None,
) -> list[Completion]:
    """A completion for each prompt; logged, batch by batch."""
    batches = log.completions() if log else []
    known = {index for batch in batches for index in batch}
    if isinstance(policy, RemoteModel):
        new = request_batches(policy, prompts, known)
    elif isinstance(policy, VllmModel):
        new = vllm_batches(policy, prompts, known)
    else:
        new = complete_batches(policy, prompts, sampling, forced=forced, first=len(batches))
    for batch in new:
        if log:
            log.add_completions(batch)
        batches.append(batch)
    completions = {index: each for batch in batches for index, each in batch.items()}
    if completions.keys() != set(range(len(prompts))):
        raise InputError(f"{log and log.folder} holds completions of other prompts: discard them with --overwrite")
    return [completions[index] for index in range(len(prompts))]


def _score(
    task: Task[Any],
    completions: Sequence[UnscoredCompletion],
    target: Mapping[str, float] | None,
    log: EvalLog | None,
) -> Iterator[ScoredCompletion]:
    """Completions with their scores, in order; logged, batch by batch."""
    logged = list(chain.from_iterable(log.scored())) if log else []
    yield from logged
    for batch in in_batches(score_completions(task, completions[len(logged) :], target=target)):
        if log:
            log.add_scored(batch)
        yield from batch
