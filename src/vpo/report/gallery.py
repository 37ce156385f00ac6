"""The gallery of the page: some problems with the answers of each pool, drawn where the task can draw them."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from vpo.core.targets import weights_for
from vpo.evaluation.compare import Comparison
from vpo.evaluation.eval_folder import Evaluation, has_own, task_of
from vpo.evaluation.pools import ProblemPool
from vpo.tasks import Task
from vpo.util.errors import InputError

PROBLEMS_SHOWN = 8


def gallery_of(
    comparison: Comparison, evaluations: Sequence[Evaluation], objectives: Sequence[str]
) -> list[dict[str, Any]]:
    """The first problems with the answers of the first pool of each group; empty where the pools have no texts."""
    pools = [[pool.problems[name] for name in comparison.problems[:PROBLEMS_SHOWN]] for pool in comparison.pools]
    if all(problem.answers is None for problems in pools for problem in problems):
        return []
    task, known = _drawable(evaluations)
    scenes = []
    for index, name in enumerate(comparison.problems[:PROBLEMS_SHOWN]):
        problem = known.get(name)
        svg = task.scene(problem) if task and problem is not None else None
        trace = partial(task.trace, problem) if task and svg else None
        runs = [answers_of(problems[index], objectives, comparison.target, trace) for problems in pools]
        scenes.append({"problem": name, "svg": svg, "runs": runs})
    return scenes


def _drawable(evaluations: Sequence[Evaluation]) -> tuple[Task[Any] | None, dict[str, Any]]:
    """The task of the first evaluation whose problems can be drawn, and its problems by id."""
    for each in evaluations:
        task = task_of(each) if has_own(each, "scene") else None
        if task is not None:
            try:
                problems = task.problems(each.facts["split"], count=each.facts["problems"])
            except InputError:  # its data is no longer there
                continue
            return task, {problem.id: problem for problem in problems}
    return None, {}


def answers_of(
    problem: ProblemPool,
    objectives: Sequence[str],
    target: Mapping[str, float] | None,
    trace: Callable[[str], str] | None,
) -> list[dict[str, Any]]:
    """The answers to a problem with their scores and their paths over its picture."""
    scores_nD = problem.scores_of(objectives)
    values_n = scores_nD @ weights_for(target, objectives)
    texts = problem.answers or (None,) * len(values_n)
    return [
        {
            "text": text,
            "value": round(value, 5),
            "scores": [round(score, 5) for score in scores],
            "path": trace(text) if trace and text is not None else "",
        }
        for text, value, scores in zip(texts, values_n.tolist(), scores_nD.tolist(), strict=True)
    ]
