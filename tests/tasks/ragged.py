"""A task whose problems differ in their number of objectives, and whose scores may be unknown."""

from dataclasses import dataclass

from vpo.tasks import Objective, Task


@dataclass(frozen=True)
class Bits:
    """A number of bits to set."""

    id: str
    count: int


class BitsTask(Task):
    """An answer is a text of bits, such as 101, one bit an objective. The score of one with a ? is unknown.

    Solved is what is all ones and has a ! at its end, which is no objective: a hidden test.
    """

    name = "bits"
    summary = "bits to set"
    objectives = tuple(Objective(f"bit_{number}", f"bit {number} is set") for number in range(1, 5))
    weights = (0.25,) * 4
    ragged = True

    def problems(self, split="test", *, count=None):
        return [Bits(f"b{count}", count) for count in (2, 4, 1, 3)][:count]

    def names_of(self, problem):
        return self.names[: problem.count]

    def question(self, problem):
        return [{"role": "user", "content": f"{problem.count} bits"}]

    def score(self, problem, answer):
        if "?" in answer:
            return None
        return tuple(float(answer[index : index + 1] == "1") for index in range(problem.count))

    def solved_all(self, problems, answers, vectors):
        solved_all = super().solved_all(problems, answers, vectors)
        return [
            None if solved is None else solved and answers[index][-1] == "!" for index, solved in enumerate(solved_all)
        ]

    def gold(self, problem):
        return "1" * problem.count + "!"
