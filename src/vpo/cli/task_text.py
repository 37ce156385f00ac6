"""Tasks and their problems as text for a terminal, and as plain data for JSON."""

from collections.abc import Sequence
from typing import Any

from vpo.tasks import Flaw, Message, Task, settings_of
from vpo.tasks.task import P
from vpo.util.text import aligned


def task_data(task: type[Task[Any]]) -> dict[str, Any]:
    """A task as plain data."""
    return {
        "name": task.name,
        "summary": task.summary,
        "settings": settings_of(task),
        "objectives": [
            {"name": objective.name, "meaning": objective.meaning, "weight": weight}
            for objective, weight in zip(task.objectives, task.weights, strict=True)
        ],
    }


def task_text(task: type[Task[Any]]) -> str:
    """A task in some lines: its objectives with their weights, and its settings."""
    rows = [
        [f"  {objective.name}", f"{weight:.3f}", objective.meaning]
        for objective, weight in zip(task.objectives, task.weights, strict=True)
    ]
    if task.ragged:
        first, last = task.objectives[0], task.objectives[-1]
        rows = [[f"  {first.name}", "alike", first.meaning], [f"  … {last.name}", "", "as many as the problem has"]]
    if not task.objectives:
        rows = [["  your own", "", "as the settings say"]]
    settings = ", ".join(f"{name}={default}" for name, default in settings_of(task).items())
    return "\n".join([f"{task.name}: {task.summary}", *aligned(rows), f"  settings: {settings or 'none'}"])


def problem_data(task: Task[P], problem: P, prompt: Sequence[Message]) -> dict[str, Any]:
    """A problem, its prompt and its gold answer as plain data."""
    gold = task.gold(problem)
    vector = None if gold is None else task.score(problem, gold)
    scores = None if vector is None else dict(zip(task.names_of(problem), vector, strict=True))
    return {"id": problem.id, "prompt": list(prompt), "gold": gold, "scores": scores}


def problem_text(task: Task[P], problem: P, prompt: Sequence[Message], *, colour: bool) -> str:
    """A problem for people: the prompt, the gold answer and its scores, the picture."""
    data = problem_data(task, problem, prompt)
    parts = [f"{task.name} {problem.id}"]
    parts += [f"── {message['role']} ──\n{message['content']}" for message in prompt]
    if data["gold"] is not None:
        scores = ", ".join(f"{name} {score:.3g}" for name, score in (data["scores"] or {}).items())
        parts.append(f"── gold answer ──\n{data['gold']}\n{scores}")
    picture = task.picture(problem, [data["gold"]] if data["gold"] else [], colour=colour)
    return "\n\n".join([*parts, *([picture] if picture else [])])


def flaws_text(task: str, graded: int, flaws: Sequence[Flaw]) -> str:
    """How many gold answers score as they should, and those that do not."""
    lines = [f"{task}: {graded - len(flaws)} of {graded} gold answers score as they should"]
    for flaw in flaws:
        lines.append(f"  {flaw.problem}: {flaw.reason}")
        lines += [f"    {line}" for line in (flaw.answer or "").splitlines()]
    return "\n".join(lines)
