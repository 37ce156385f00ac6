"""Rates of parsing and scoring on one core, each with its bound.

python benchmarks/tasks.py [--json]
"""

from copy import deepcopy
from random import Random

from timing import seconds, show
from vpo.tasks.answers import parse
from vpo.tasks.maze import MazeTask
from vpo.tasks.maze.generator import make_maze
from vpo.tasks.maze.oracle import oracle
from vpo.tasks.toolrl import ToolrlTask
from vpo.tasks.toolrl.data import from_prepared
from vpo.tasks.toolrl.matching import canonical

TAGS = ("<answer_1>", "<answer_2>", "<answer_", "</answer_1>", "<think>", "</think>", "<answer_1><", "<", "a")
PAIRS = ("<answer_1></answer_1>", "<answer_1><think>", "</think><answer_1>")


def maze_answers_per_second() -> float:
    task = MazeTask()
    mazes = task.problems("train", count=50)
    pairs = [(maze, route) for maze in mazes for route in task.demonstrations(maze, 40, Random(maze.id))]
    fresh = [(make_maze(9, 42, index // 40), route) for index, (_, route) in enumerate(pairs)]
    return len(pairs) / seconds(lambda: task.score_all(*zip(*fresh, strict=True)))


def tool_answers_per_second() -> float:
    """Answers with two calls of four arguments each, one of them wrong."""
    task = ToolrlTask()
    calls = [
        {"name": name, "parameters": {"city": "New York City", "days": 3, "units": ["C", "mm"], "verbose": True}}
        for name in ("weather", "forecast")
    ]
    row = {"gold_calls": deepcopy(calls), "system": "tools", "user": "question"}
    problem = from_prepared(row, "b", "here")
    calls[1]["parameters"]["city"] = "York"
    lines = "\n".join(canonical(call) for call in calls)
    answer = f"<think>Two calls will do.</think>\n<tool_call>\n{lines}\n</tool_call>"
    answers = [answer] * 2000
    assert task.score(problem, answer) == (1, 1, 1, (1 + (3 + 0.5) / 4) / 2)
    return len(answers) / seconds(lambda: task.score_all([problem] * len(answers), answers))


def hostile_milliseconds() -> float:
    texts = [unit * (1_000_000 // len(unit)) for unit in TAGS + PAIRS]
    return max(seconds(lambda text=text: parse(text, 3)) for text in texts) * 1000


def oracle_milliseconds() -> float:
    mazes = [make_maze(9, 1, index) for index in range(20)]
    oracle(mazes[0])  # imports

    def run() -> None:
        oracle.cache_clear()
        for maze in mazes:
            oracle(maze)

    return seconds(run, repeats=3) / len(mazes) * 1000


def figures() -> list[tuple[str, float, str]]:
    return [
        ("maze answers scored a second", maze_answers_per_second(), "at least 20,000"),
        ("tool answers scored a second", tool_answers_per_second(), "at least 2,000"),
        ("a hostile completion of 1 MB parsed, ms, the slowest of twelve", hostile_milliseconds(), "below 50"),
        ("oracle of a 9×9 maze, ms", oracle_milliseconds(), ""),
    ]


if __name__ == "__main__":
    show(__doc__, figures)
