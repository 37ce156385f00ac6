"""From a policy and problems to a pool: sample completions, score their answers, measure the pool, write it."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from vpo.core.targets import weights_for
from vpo.evaluation.compare import Comparison, compare
from vpo.evaluation.comparison_text import comparison_data
from vpo.evaluation.eval_folder import Evaluation, check_free, new_pool_path, oracle_of, write_facts
from vpo.evaluation.eval_log import EvalLog
from vpo.evaluation.eval_plan import EvalConfig, EvalPlan, check_pool_size, planned
from vpo.evaluation.fingerprints import requested_with, sampled_with, scored_with
from vpo.evaluation.pools import read_pool
from vpo.evaluation.score import UnscoredCompletion, score_completions
from vpo.evaluation.scored import ScoreCounts, ScoredCompletion, write_scored
from vpo.models.forced_tags import ForcedTags
from vpo.models.generate import Completion, Sampling, complete_batches
from vpo.models.policy import Policy, load
from vpo.models.remote import RemoteModel, request_batches, served_name
from vpo.models.vllm_model import VllmModel, forced_opening, vllm_batches
from vpo.tasks import Message, Task
from vpo.tasks.batches import in_batches
from vpo.tasks.task import scoring_note
from vpo.util.errors import InputError
from vpo.util.files import disk_full, locked

CONTINUE = "repeat the command to continue"


def evaluate_into(folder: Path, config: EvalConfig, *, overwrite: bool = False) -> tuple[Comparison, ScoreCounts]:
    """Evaluate a model, and write the pool and its measures into a folder.

    An evaluation that was interrupted there is continued: it ends with the pool of one that was not. One with other
    settings is refused, or with `overwrite` replaced.
    """
    check_free(folder, overwrite=overwrite)
    plan = planned(config)
    task, problems, sampling = plan.model.task, plan.problems, plan.sampling
    log = EvalLog(folder)
    if not overwrite:
        log.check(plan.settings())  # before the model is loaded
    policy = _load(plan)
    prompts = problem_prompts(task, problems, **plan.prompted)
    if isinstance(policy, RemoteModel):
        sampled = requested_with(prompts)
    else:
        sampled = sampled_with(policy, prompts, thinking=sampling.thinking)
    forced = plan.model.forced_tags(policy.tokenizer) if isinstance(policy, Policy) else None
    with disk_full(folder, hint=f"free some space, then {CONTINUE}"), _locked(folder):
        check_free(folder, overwrite=overwrite)  # another process may have written one meanwhile
        scoring = scoring_note(task) | scored_with(plan.located.task, problems)
        log.start(plan.settings() | sampled, scoring, overwrite=overwrite)
        try:
            how: dict[str, Any] = {**plan.prompted, "pool": config.pool, "sampling": sampling, "forced": forced}
            scored = list(evaluate(policy, task, problems, **how, log=log))
        except KeyboardInterrupt:
            print(f"\nvpo: {CONTINUE}", file=sys.stderr)
            raise
        return _write(folder, plan, scored, log)


def _load(plan: EvalPlan) -> Policy | VllmModel | RemoteModel:
    """What samples the completions."""
    config = plan.config
    if config.endpoint is not None:
        reached: dict[str, Any] = {"timeout": config.limit, "concurrent": config.concurrent}
        return RemoteModel(config.endpoint, served_name(config.model), plan.sampling, **reached)
    if config.generator == "vllm":
        return VllmModel(plan.model.path, plan.sampling, forced_opening(plan.model))
    return load(plan.model.path, precision=config.precision, base=config.base)


def _write(
    folder: Path, plan: EvalPlan, scored: Sequence[ScoredCompletion], log: EvalLog
) -> tuple[Comparison, ScoreCounts]:
    """Write the pool and its measures, which completes the evaluation."""
    if not any(each.rows for each in scored):
        log.forget_scores()  # write_scored refuses them: the scorer must be fixed, and all scored again
    path = new_pool_path(folder)
    counts = write_scored(path, scored)
    pool = read_pool(path)
    facts = {**plan.facts, **counts.data(), "target": plan.target}
    oracle = oracle_of([Evaluation(pool, facts)], plan.target)
    comparison = compare([pool], target=plan.target, oracle=oracle)
    write_facts(folder, {**facts, **comparison_data(comparison)})
    log.discard()
    return comparison, counts


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Make the folder, and lock it."""
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder, "evaluating into this folder"):
        yield


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
