"""A task of your own, in a few dozen lines: use the given numbers to reach a target, in different ways.

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
    """Choose some of the numbers. Few and close pull against each other."""

    name = "reach"
    summary = "choose numbers whose sum comes close to a goal, and choose few"
    objectives = (
        Objective("close", "1 less the distance to the goal, as a share of it"),
        Objective("few", "share of the numbers left alone"),
    )
    weights = (0.5, 0.5)

    def __init__(self, *, count: int = 6) -> None:
        """Set how many numbers a problem has."""
        self.count = count

    def problems(self, split: str = "test", *, count: int | None = None) -> Sequence[Numbers]:
        """Return 50 problems, or as many as asked for; those of a split are always the same."""
        found = []
        for index in range(50 if count is None else count):
            random = Random(f"{split} {index}")
            numbers = tuple(random.randrange(1, 50) for _ in range(self.count))
            found.append(Numbers(f"{split}-{index}", numbers, sum(numbers)))
        return found

    def question(self, problem: Numbers) -> list[Message]:
        """Return the numbers and the goal."""
        listed = ", ".join(map(str, problem.numbers))
        content = f"Choose some of {listed} so that their sum comes close to {problem.goal}. List those you choose."
        return [{"role": "user", "content": content}]

    def score(self, problem: Numbers, answer: str) -> Vector:
        """Return closeness and thrift of a list of numbers, zeros for anything else."""
        left = list(problem.numbers)
        words = answer.replace(",", " ").split()
        for word in words:
            if not (word.isdecimal() and len(word) < 4 and int(word) in left):
                return 0.0, 0.0
            left.remove(int(word))
        if not words:
            return 0.0, 0.0
        return (problem.goal - sum(left)) / problem.goal, len(left) / len(problem.numbers)

    def normal_form(self, answer: str) -> tuple[str, ...]:
        """Return the numbers in order: the same choice is the same answer."""
        return tuple(sorted(answer.replace(",", " ").split()))

    def gold(self, problem: Numbers) -> str:
        """Return all the numbers, which reach the goal."""
        return ", ".join(map(str, problem.numbers))

    def expected(self, problem: Numbers) -> Vector:
        """Return the scores of that: close, and not few."""
        return 1.0, 0.0
