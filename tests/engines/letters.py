"""A task that a random model earns something on."""

from dataclasses import dataclass

from vpo.engines.trl import reward_function
from vpo.tasks import Objective, Task


@dataclass(frozen=True)
class Word:
    """A problem of the task below."""

    id: str


class LettersTask(Task):
    """A task that a random model earns something on: a completion is cut into m answers, and letters are counted."""

    name = "letters"
    summary = "letters"
    objectives = tuple(Objective(name, name) for name in ("vowels", "consonants", "rest"))
    weights = (1 / 3, 1 / 3, 1 / 3)

    def problems(self, split="test", *, count=None):
        return [Word(name) for name in ("one", "two", "three", "four")]

    def question(self, problem):
        return [{"role": "user", "content": problem.id}]

    def parse(self, completion, answers):
        size = max(1, len(completion) // answers)
        return [completion[place * size : (place + 1) * size] for place in range(answers)]

    def parts(self, completion, answers):
        size = max(1, len(completion) // answers)
        return [(len(completion) if place + 1 == answers else (place + 1) * size, place) for place in range(answers)]

    def score(self, problem, answer):
        return tuple(letters(answer))


def letters(answer):
    """Three objectives that a random text meets in part."""
    return [min(1.0, sum(sign in group for sign in answer) / 3) for group in ("aeiou0123", "bcdfg4567", "XYZ89!?")]


def own_reward(method, **settings):
    return reward_function(LettersTask(), method, problems=LettersTask().problems(), **settings)
