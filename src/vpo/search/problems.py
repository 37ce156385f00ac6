"""Which problems are searched, each for each goal: those of a split, or what others left unsolved."""

from collections.abc import Sequence
from typing import Any

from vpo.evaluation.eval_folder import read_all
from vpo.search.candidates import SearchProblem
from vpo.search.config import SearchConfig
from vpo.search.goals import Goal
from vpo.tasks import Task
from vpo.util.errors import InputError


def search_problems(config: SearchConfig, task: Task[Any], goals: list[Goal]) -> tuple[SearchProblem, ...]:
    """Each problem with each goal; raises for an objective that a problem does not have."""
    problems = list(task.problems(config.split, count=config.problems))
    if not problems:
        raise InputError(f"there are no problems in split {config.split!r}")
    if config.unsolved_by:
        problems = _unsolved(problems, config.unsolved_by)
    task.prepare(problems)
    for problem in problems:
        names = task.names_of(problem)
        for feature in config.features:
            if feature not in names:
                raise InputError(f"features names {feature!r}, and the objectives are {', '.join(names)}")
        for goal in goals:
            goal.check(problem)
    for goal in goals:
        goal.check_reachable(problems)
    return tuple(SearchProblem(problem, goal) for problem in problems for goal in goals)


def _unsolved(problems: Sequence[Any], paths: Sequence[str]) -> list[Any]:
    """The problems of some evaluations or pools that no answer in any of them solves."""
    pools = [each.pool for each in read_all(paths)]
    names = {problem.id for problem in problems}.intersection(*(pool.problems for pool in pools))
    if not names:
        raise InputError(f"unsolved_by: {', '.join(paths)} and the task have no problem in common")
    for pool in pools:
        for name in names.copy():
            solved_n = pool.problems[name].solved_n
            if solved_n is None:
                raise InputError(f"unsolved_by: {pool.path} does not say which answers solve their problems")
            if solved_n.any():
                names.remove(name)
    if not names:
        raise InputError(f"unsolved_by: every problem is solved by an answer of {', '.join(paths)}")
    return [problem for problem in problems if problem.id in names]
