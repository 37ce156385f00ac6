"""A task of your own, in a few dozen lines: choose some of the numbers to reach a goal, in different ways.

    vpo tasks show --task-file examples/own_task.py --answers 3
    vpo tasks validate --task-file examples/own_task.py
    vpo score completions.jsonl --task-file examples/own_task.py --answers 3 --out pool.jsonl

A package registers its task under [project.entry-points."vpo.tasks"] instead: reach = "my_package:Reach".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from vpo.tasks import Message, Objective, Task, Vector


@dataclass(frozen=True)
class Numbers:
    """Numbers to choose from, and the sum to reach."""

    id: str
    numbers: tuple[int, ...]
    goal: int


class Reach(Task[Numbers]):
    """Choose some of the numbers. The objectives conflict: fewer numbers are less close."""

    name = "reach"
    summary = "choose numbers whose sum comes close to a goal, and choose few"
    objectives = (
        Objective("close", "1 less the distance to the goal, as a share of it"),
        Objective("few", "share of the numbers that are not chosen"),
    )
    weights = (0.5, 0.5)

    def __init__(self, *, count: int = 6) -> None:
        """Set how many numbers a problem has."""
        self.count = count

    def problems(self, split: str = "test", *, count: int | None = None) -> Sequence[Numbers]:
        """50 problems, or `count` of them; those of a split are always the same."""
        problems = []
        for index in range(50 if count is None else count):
            random = Random(f"{split} {index}")
            numbers = tuple(random.randrange(1, 50) for _ in range(self.count))
            problems.append(Numbers(f"{split}-{index}", numbers, sum(numbers)))
        return problems

    def question(self, problem: Numbers) -> list[Message]:
        """The numbers and the goal."""
        listed = ", ".join(map(str, problem.numbers))
        content = f"Choose some of {listed} so that their sum comes close to {problem.goal}. List those you choose."
        return [{"role": "user", "content": content}]

    def score(self, problem: Numbers, answer: str) -> Vector:
        """close and few of a list of numbers, zeros for anything else."""
        rest = list(problem.numbers)
        words = answer.replace(",", " ").split()
        for word in words:
            if not (word.isdecimal() and len(word) < 4 and int(word) in rest):
                return 0.0, 0.0
            rest.remove(int(word))
        if not words:
            return 0.0, 0.0
        return (problem.goal - sum(rest)) / problem.goal, len(rest) / len(problem.numbers)

    def normal_form(self, answer: str) -> tuple[str, ...]:
        """The numbers in order: the same choice is a duplicate."""
        return tuple(sorted(answer.replace(",", " ").split()))

    def gold(self, problem: Numbers) -> str:
        """All the numbers, which reach the goal."""
        return ", ".join(map(str, problem.numbers))

    def expected(self, problem: Numbers) -> Vector:
        """The scores of the gold answer: close, and not few."""
        return 1.0, 0.0
