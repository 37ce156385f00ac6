"""Two groups of four completions, scored by a function: for the tests of every trainer that is given a plugin."""

from pathlib import Path
from textwrap import dedent

import numpy as np

from vpo import advantages
from vpo.engines.reward import reward_function
from vpo.methods import METHODS, get
from vpo.tasks.answers import duplicates, write

OBJECTIVES = ["correct", "short"]
SOLUTIONS = {"first": "4", "second": "8"}
ANSWERS = {
    "first": [["4", "44"], ["5", "4444"], ["5", "5"], ["4", "4"]],
    "second": [["7", "88"], ["8", "8888"], ["999", "999"], ["999", "7"]],
}


def score(answer, solution):
    """Whether an answer is right, and whether it is short; unknown for a question mark."""
    return None if answer == "?" else [float(answer == solution), float(len(answer) < 3)]


def method_of(name):
    """A method with two answers where it takes so many, and one reward for both; with one where each has its own."""
    if name == "vpo_anchored":
        return get(name, answers=2, anchor=0.5)
    if name == "vpo_marginal":
        return get(name, answers=1)
    return get(name, answers=2) if METHODS[name].takes_sets else get(name)


def reward_by(name, **settings):
    return reward_function(None, method_of(name), score=score, objectives=OBJECTIVES, group=4, **settings)


def completions(prompt, count):
    """The completions of a group, each with as many of its answers as the method asks for."""
    return [write(answers[:count]) for answers in ANSWERS[prompt]]


def expected(name, *, step=0, problems=None):
    """The advantages of both groups, (2, 4)."""
    count = method_of(name).answers
    rewards = [[[score(each, SOLUTIONS[p]) for each in answers[:count]] for answers in ANSWERS[p]] for p in ANSWERS]
    copies = [[duplicates(answers[:count], lambda text: text) for answers in ANSWERS[p]] for p in ANSWERS]
    return advantages(method_of(name), np.asarray(rewards), copies=copies, step=step, problems=problems)


def plugin(folder: Path, name: str, last_lines: str) -> Path:
    """Write the file that a user would: a reward function, and the lines that give it to a trainer."""
    file = folder / f"user_{name}.py"
    first = f"from tests.engines.plugged import reward_by\nreward_of_vpo = reward_by({name!r})\n"
    file.write_text(first + dedent(last_lines))
    return file
