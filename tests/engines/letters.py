"""A task on which a random model has rewards above 0."""

from dataclasses import dataclass

from vpo.engines.trl import reward_function
from vpo.tasks import Objective, Reading, Task


@dataclass(frozen=True)
class Word:
    """A problem of the task below."""

    id: str


class LettersTask(Task):
    """A random model has rewards above 0: a completion is cut into m answers, and letters are counted."""

    name = "letters"
    summary = "letters"
    objectives = tuple(Objective(name, name) for name in ("vowels", "consonants", "rest"))
    weights = (1 / 3, 1 / 3, 1 / 3)

    def problems(self, split="test", *, count=None):
        return [Word(name) for name in ("one", "two", "three", "four")]

    def question(self, problem):
        return [{"role": "user", "content": problem.id}]

    def read(self, completion, answers):
        size = max(1, len(completion) // answers)
        texts = [completion[index * size : (index + 1) * size] for index in range(answers)]
        ends = [len(completion) if index + 1 == answers else (index + 1) * size for index in range(answers)]
        return Reading(texts, [True] * answers, list(zip(ends, range(answers), strict=True)))

    def score(self, problem, answer):
        return tuple(letters(answer))


def letters(answer):
    """Three objectives that a random text meets in part."""
    return [min(1.0, sum(letter in group for letter in answer) / 3) for group in ("aeiou0123", "bcdfg4567", "XYZ89!?")]


def own_reward(method, **settings):
    return reward_function(LettersTask(), method, problems=LettersTask().problems(), **settings)
