"""The gallery of the page: some problems with the answers of each pool, drawn where the task can draw them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

from vpo.core.targets import weights_for
from vpo.evaluation.compare import Comparison
from vpo.evaluation.eval_folder import Evaluation, task_of
from vpo.evaluation.pools import ProblemPool
from vpo.rewards.prompts import PromptTask, read_prompts
from vpo.tasks import Task, find
from vpo.util.errors import InputError

PROBLEMS_SHOWN = 8
TEXT_SHOWN = 8_000  # characters of a question or an answer


@dataclass(frozen=True)
class Sources:
    """What is known of the problems themselves, by id.

    Attributes:
        task: that made them, where it is needed to draw them.
        problems: of the task.
        questions: their texts.
        golds: their gold answers.
    """

    task: Task[Any] | None = None
    problems: Mapping[str, Any] = field(default_factory=dict)
    questions: Mapping[str, str] = field(default_factory=dict)
    golds: Mapping[str, str | None] = field(default_factory=dict)


def gallery_of(comparison: Comparison, evaluations: Sequence[Evaluation]) -> list[dict[str, Any]]:
    """The first problems with the answers of the first pool of each group; empty where the pools have no texts."""
    names = comparison.problems[:PROBLEMS_SHOWN]
    pools = [[pool.problems[name] for name in names] for pool in comparison.pools]
    if all(problem.answers is None for problems in pools for problem in problems):
        return []
    known = _sources(evaluations, names)
    scenes = []
    for index, name in enumerate(names):
        task, problem = known.task, known.problems.get(name)
        svg = task.scene(problem) if task and problem is not None else None
        trace = partial(task.trace, problem) if task and svg else None
        objectives = pools[0][index].objectives
        scenes.append(
            {
                "problem": name,
                "question": _cut(known.questions.get(name)),
                "gold": _cut(known.golds.get(name)),
                "svg": svg,
                "objectives": list(objectives),
                "runs": [sets_of(problems[index], objectives, comparison.target, trace) for problems in pools],
            }
        )
    return scenes


def _sources(evaluations: Sequence[Evaluation], names: Sequence[str]) -> Sources:
    """What the first task that can be made says of some problems."""
    for each in evaluations:
        try:
            if known := _source(each, set(names)):
                return known
        except InputError:  # its data is no longer there, or the task is no longer installed
            continue
    return Sources()


def _source(evaluation: Evaluation, names: set[str]) -> Sources | None:
    facts = evaluation.facts
    if "task" not in facts:
        return None
    if issubclass(find(facts["task"]), PromptTask):  # to make it would load the models of its rewards
        return Sources(questions=_prompts(facts["task_settings"]))
    if (task := task_of(evaluation)) is None:
        return None
    problems = {each.id: each for each in task.problems(facts["split"], count=facts["problems"]) if each.id in names}
    questions = {name: task.question(problem)[-1]["content"] for name, problem in problems.items()}
    return Sources(task, problems, questions, {name: task.gold(problem) for name, problem in problems.items()})


def _prompts(settings: Mapping[str, Any]) -> dict[str, str]:
    """The prompts of the task `chat`, by id."""
    prompts = [*read_prompts(settings["prompts"])] if settings.get("prompts") else []
    if settings.get("test"):
        prompts += read_prompts(settings["test"], id_prefix="test-")
    return {prompt.id: prompt.messages[-1]["content"] for prompt in prompts}


def sets_of(
    problem: ProblemPool,
    objectives: Sequence[str],
    target: Mapping[str, float] | None,
    trace: Callable[[str], str] | None,
) -> list[list[dict[str, Any]]]:
    """The answers to a problem by generation, with their scores and their paths over its picture."""
    answers = _answers_of(problem, objectives, target, trace)
    ends = accumulate(problem.set_sizes_N, initial=0)
    return [answers[start:end] for start, end in pairwise(ends)]


def _answers_of(
    problem: ProblemPool,
    objectives: Sequence[str],
    target: Mapping[str, float] | None,
    trace: Callable[[str], str] | None,
) -> list[dict[str, Any]]:
    scores_nD = problem.scores_of(objectives)
    values_n = scores_nD @ weights_for(target, objectives)
    texts = problem.answers or (None,) * len(values_n)
    solved = [False] * len(values_n) if problem.solved_n is None else problem.solved_n.tolist()
    return [
        {
            "text": _cut(text),
            "value": round(value, 5),
            "scores": [round(score, 5) for score in scores],
            "solved": each_solved,
            "path": trace(text) if trace and text is not None else "",
        }
        for text, value, scores, each_solved in zip(texts, values_n.tolist(), scores_nD.tolist(), solved, strict=True)
    ]


def _cut(text: str | None) -> str | None:
    """A text of a length that a page can show."""
    if text is None or len(text) <= TEXT_SHOWN:
        return text
    return f"{text[:TEXT_SHOWN]}\n… {len(text) - TEXT_SHOWN:,} more characters"
