"""Folders of searches whose programs get better by rules of their own, written by the log of a search."""

from random import Random

from vpo.search.log import Log

OBJECTIVES = ("radii", "legal", "short")
TASK = """
from dataclasses import dataclass

from vpo.tasks import Objective, Task

@dataclass(frozen=True)
class Square:
    id: str

class Packing(Task):
    name, summary = "packing", "circles in a square"
    objectives = tuple(Objective(name, name) for name in ("radii", "legal", "short"))
    weights = (0.5, 0.25, 0.25)

    def problems(self, split="test", *, count=None):
        return [Square(f"square-{number}") for number in range(100 if count is None else count)]

    def question(self, problem):
        return [{"role": "user", "content": "Pack."}]

    def score(self, problem, answer):
        raise AssertionError("a page scores nothing")
"""


def program(numbers):
    """A program of several lines; two that differ in a number differ in a line."""
    lines = [f"    circles.append(({number:.3f}, {number / 2:.3f}))" for number in numbers]
    head = ["import math", "", "", "def pack(n):", '    """Circles in the unit square."""', "    circles = []"]
    return "\n".join([*head, *lines, "    # <b>a sign & another</b>", "    return circles[:n]"])


def write_search(folder, task, *, strategy="evolve", cases=1, iterations=12, per_iteration=3, seed=0, lines=12):
    """Log a search with a start, branches, crosses, failures and feedback, in which nothing is ever solved."""
    names = [(f"square-{number}", "radii=1") for number in range(cases)]
    settings = {"strategy": strategy, "task": str(task), "task_settings": {}, "split": "test", "problems": cases}
    folder.mkdir()
    log = Log(folder, {**settings, "cases": names})
    random = Random(f"{strategy} {seed}")
    known = {" ".join(name): [] for name in names}
    counts = {"generation": 0}
    for iteration in range(-1, iterations):
        for case, members in known.items():
            for _ in range(1 if iteration < 0 else per_iteration):
                _add(log, random, case, members, iteration, counts, lines)
    log.end(iterations, {})


def _add(log, random, case, members, iteration, counts, lines):
    """One generation of one answer, and its candidate."""
    scored = sorted((each for each in members if each["scores"]), key=lambda each: each["value"])[-6:]
    operator = "start" if iteration < 0 else random.choice(("fresh", "refine", "refine", "cross"))
    parents = random.sample(scored, min(len(scored), {"refine": 1, "cross": 2}.get(operator, 0)))
    if operator == "cross" and len(parents) < 2:
        operator, parents = "refine", parents[:1]
    numbers = list(parents[0]["numbers"]) if parents else [random.random() for _ in range(lines)]
    if len(parents) == 2:
        numbers[lines // 2 :] = parents[1]["numbers"][lines // 2 :]
    if parents:
        numbers[random.randrange(lines)] = random.random()
    total = sum(numbers)
    scores = [total - lines, -abs(numbers[0] - numbers[-1]), -float(len(set(numbers)))]
    if operator == "fresh" and random.random() < 0.1:
        scores[0] = -1e6  # a program that leaves the square
    failure = "the program raised: ZeroDivisionError" if iteration >= 0 and random.random() < 0.1 else None
    origin = {"iteration": iteration, "case": case, "operator": operator, "of": 1}
    origin |= {"parent": parents[0]["number"] if parents else None}
    answer = program(numbers)
    generation = {"number": counts["generation"], "known": 0, "answers": 1, "first": len(members), "text": answer}
    log.add_generations(
        [{**origin, **generation, "tokens": 0 if iteration < 0 else 40, "failure": None, "place": 0}],
    )
    candidate = {
        "number": len(members),
        "generation": counts["generation"],
        "position": 1,
        "answer": answer,
        "form": answer,
        "scores": None if failure else scores,
        "value": 0.0 if failure else scores[0],
        "solved": False,
        "failure": failure,
        **({"second": parents[1]["number"]} if len(parents) == 2 else {}),
        **({"feedback": f"circles {len(members)} and 2 overlap"} if operator != "start" and not failure else {}),
    }
    log.add_candidates([{**origin, **candidate}])
    members.append({**candidate, "numbers": numbers})
    counts["generation"] += 1
