"""The task maze."""

import re
from collections.abc import Hashable, Sequence
from random import Random
from string import ascii_lowercase, ascii_uppercase
from typing import ClassVar

import numpy as np

from vpo.tasks.data import check_split
from vpo.tasks.forms import Example
from vpo.tasks.lines import bare_line, begins_turn, lines_of
from vpo.tasks.maze import picture
from vpo.tasks.maze.generator import check_size, make_maze
from vpo.tasks.maze.grid import DIAMOND, GOLD, LAVA, MOVES, Maze, distances
from vpo.tasks.maze.oracle import FAR, oracle
from vpo.tasks.maze.routes import best_route, demonstration
from vpo.tasks.reading import Native
from vpo.tasks.task import Message, Objective, Task, Vector
from vpo.util.errors import InputError

SEEDS = {"train": 42, "validation": 424, "test": 4242}
COUNTS = {"train": 1000, "validation": 100, "test": 100}
LONGEST = 10_000  # characters of an answer; a longer one is not parsed, and no budget comes near it
_WORDS = {"UP": "U", "DOWN": "D", "LEFT": "L", "RIGHT": "R"}
_SEPARATORS = " \t\r\n,;\"'`“”‘’→"
_CLEAN = str.maketrans(ascii_lowercase + _SEPARATORS, ascii_uppercase + " " * len(_SEPARATORS))
_WORD = re.compile(r"(?i:up|down|left|right)")
_LETTER = re.compile(r"[UDLRudlr]")
_NO_MOVES = str.maketrans("", "", MOVES)

RULES = """\
Find a route through this maze, from S to E.

{grid}

# wall, . open, S start, E end, G gold, D diamond, L lava, B bonus
Moves: U up, D down, L left, R right. A move into a wall or off the grid does nothing, but costs a step.
You have {budget} steps. The walk ends on E; a route that does not reach E in time scores 0.
Collect gold, collect diamonds and keep off lava on your way: there is no time for both treasures in full.
Write a route as its moves in a row, such as UURRD."""


class MazeTask(Task[Maze]):
    """Routes from S to E within a budget of steps.

    The vector is zero unless E is reached in time; else completion is 1, gold and diamond are the shares collected
    before E, and avoid_lava is 1 less the share of lava tiles stepped on. Stepping on a tile twice counts once.
    """

    name: ClassVar[str] = "maze"
    summary: ClassVar[str] = "routes through a grid with two treasures, and time for the corner of one"
    objectives: ClassVar[tuple[Objective, ...]] = (
        Objective("completion", "E is reached within the budget"),
        Objective("gold", "share of the gold tiles collected"),
        Objective("diamond", "share of the diamond tiles collected"),
        Objective("avoid_lava", "1 less the share of the lava tiles stepped on"),
    )
    weights: ClassVar[Vector] = (0.25, 0.25, 0.25, 0.25)
    validation: ClassVar[str | None] = "validation"
    example: ClassVar[Example | None] = Example("another maze", ("UURRRRDDRR", "RRRRUURRDD", "URURRDRRRD"))

    def __init__(self, *, size: int = 9, compact: bool = False) -> None:
        """Make the task.

        Args:
            size: rows and columns, odd, 7 or more. 9 as published; 13 leaves headroom.
            compact: a prompt of fewer than 100 characters at size 9, for small policies with a vocabulary of their own.
        """
        check_size(size)
        self.size = size
        self.compact = compact

    @property
    def longest_answer(self) -> int:
        """Tokens of the longest answer, its tags included, for a policy with a token for each move."""
        return self.size**2 // 2 + 5

    def problems(self, split: str = "test", *, count: int | None = None) -> Sequence[Maze]:
        """Mazes of a split: 1000 for training and 100 for testing, as published, or `count` of them."""
        check_split(split, list(SEEDS), self.name)
        count = COUNTS[split] if count is None else count
        if count < 1:
            raise InputError(f"count must be 1 or more, not {count}")
        return [make_maze(self.size, SEEDS[split], index) for index in range(count)]

    def question(self, problem: Maze) -> list[Message]:
        """The maze and its rules; in the compact form, the cells and the budget alone."""
        if self.compact:
            return [{"role": "user", "content": f"{problem.cells} {problem.budget}"}]
        content = RULES.format(grid="\n".join(problem.rows()), budget=problem.budget)
        return [{"role": "user", "content": content}]

    def ask(
        self, problem: Maze, answers: int = 1, target: Sequence[float] | None = None, *, review: str = ""
    ) -> list[Message]:
        """The prompt. The compact one ends in the number of answers and the target's weights in tenths."""
        checked = super().ask(problem, answers, target, review=review)
        if not self.compact:
            return checked
        (message,) = self.question(problem)
        tenths = "" if target is None else " " + "".join("0123456789X"[round(10 * weight)] for weight in target)
        return [{**message, "content": f"{message['content']} {answers}{tenths}"}]

    def score(self, problem: Maze, answer: str) -> Vector:
        """(1, gold, diamond, 1 − lava) of a route that reaches E in time, else zeros."""
        moves = parse_moves(answer)
        path = problem.walk(moves or "")
        if path[-1] != problem.end:
            return 0.0, 0.0, 0.0, 0.0
        cells, totals = problem.cells, problem.totals
        stepped = [cells[cell] for cell in set(path)]
        gold, diamond, lava = (stepped.count(kind) / totals[kind] for kind in (GOLD, DIAMOND, LAVA))
        return 1.0, gold, diamond, 1.0 - lava

    def steps(self, problem: Maze, answer: str) -> list[int]:
        """Where each move ends, up to E and to the end of the budget."""
        path = problem.walk(parse_moves(answer) or "")
        return [end for end, cell in zip(_move_ends(answer), path[1:], strict=False) if cell != problem.end]

    def score_partial(self, problem: Maze, prefix: str) -> Vector | None:
        """A bound: zeros where E is too far; else the tiles so far, with each treasure that E can be reached over."""
        moves = parse_moves(prefix) if prefix.strip() else ""
        if moves is None:
            return None
        path = problem.walk(moves)
        cell, end, left = path[-1], problem.end, problem.budget - len(moves)
        if cell == end:
            return self.score(problem, prefix)
        ahead, home = distances(problem, cell, frozenset([end])), distances(problem, end)
        if ahead.get(end, FAR) > left:
            return 0.0, 0.0, 0.0, 0.0
        in_time = {cell for cell, steps in ahead.items() if steps + home[cell] <= left}.union(path)
        gold, diamond = (
            sum(tile in in_time for tile in problem.tiles(kind)) / problem.totals[kind] for kind in (GOLD, DIAMOND)
        )
        return 1.0, gold, diamond, 1.0 - sum(tile in path for tile in problem.tiles(LAVA)) / problem.totals[LAVA]

    def native(self, text: str, answers: int) -> Sequence[Native]:
        """Lines that are routes of two moves or more, or end in one after a colon; none for small policies."""
        natives: list[Native] = []
        for start, end, line in [] if self.compact else lines_of(text):
            if answers == 1 and natives and begins_turn(line):
                break
            candidates = (bare_line(line), bare_line(line.rpartition(":")[2]))
            route = next((each for each in candidates if len(parse_moves(each) or "") > 1), None)
            natives += [] if route is None else [Native(start, end, route)]
        return natives

    def bare(self, answer: str) -> str:
        """The only route of an answer, without what is around it.

        An answer with none, or another line that ends in moves, is returned as it is: the route may go on there.
        """
        if parse_moves(answer) is not None:
            return answer
        routes = [native.text for native in self.native(answer, 1)]
        in_moves = sum(parse_moves(bare_line(line).rpartition(" ")[2]) is not None for *_, line in lines_of(answer))
        return routes[0] if len(routes) == in_moves == 1 else answer

    def normal_form(self, answer: str) -> Hashable:
        """The moves of a route, None for a text that is not one."""
        return parse_moves(answer)

    def solved(self, vector: Sequence[float]) -> bool:
        """Whether all of one treasure was collected without lava: the best that most mazes allow."""
        completion, gold, diamond, avoid_lava = vector
        return bool(completion == 1 and avoid_lava == 1 and (gold == 1 or diamond == 1))

    def gold(self, problem: Maze) -> str:
        """A best route under the uniform weighting."""
        return best_route(problem, np.asarray(self.weights))

    def expected(self, problem: Maze) -> Vector:
        """The scores of the best route: no route scores 1 on every objective."""
        vectors = oracle(problem).vectors
        return tuple(vectors[(vectors @ np.asarray(self.weights)).argmax()].tolist())

    def demonstrations(self, problem: Maze, count: int, random: Random) -> list[str]:
        """Sensible routes of different kinds."""
        return [demonstration(problem, random) for _ in range(count)]

    def picture(self, problem: Maze, answers: Sequence[str], *, colour: bool) -> str:
        """The maze with routes, as text."""
        return picture.text(problem, [parse_moves(answer) or "" for answer in answers], colour=colour)

    def draw(self, problem: Maze, answers: Sequence[str], path: str) -> None:
        """Draw the maze with routes into a .png or .svg file."""
        routes = [parse_moves(answer) for answer in answers]
        labels = [route[:24] if route else "not a route" for route in routes]
        picture.draw(problem, [route or "" for route in routes], path, labels=labels)

    def scene(self, problem: Maze) -> str:
        """The maze as an SVG drawing, one unit a cell."""
        return picture.svg(problem)

    def trace(self, problem: Maze, answer: str) -> str:
        """A route as the points of a line."""
        return picture.points(problem, parse_moves(answer) or "")

    def best(self, problem: Maze, target: Sequence[float] | None = None) -> float:
        """The largest w·r of any route, by the oracle."""
        return oracle(problem).best(np.asarray(self.weights if target is None else target))


def parse_moves(answer: str) -> str | None:
    """The moves of a route as letters in capitals; None for a text that is not a route.

    A route is written in the letters U, D, L, R, with or without separators, or in the words up, down, left, right,
    with separators; never in both. Case does not count. Separators are spaces, tabs, line ends, commas, semicolons,
    quotes, backticks and arrows (→ and ->), and one full stop may end it. No word is made of these letters, so no route
    can be read in two ways.
    """
    if len(answer) > LONGEST:
        return None
    text = answer.replace("->", "→").translate(_CLEAN).rstrip(" ").removesuffix(".")
    moves = text.replace(" ", "")
    if not moves.translate(_NO_MOVES):
        return moves or None
    words = [word for word in text.split(" ") if word]
    return "".join(_WORDS[word] for word in words) if all(word in _WORDS for word in words) else None


def _move_ends(answer: str) -> list[int]:
    """Where each move of a route ends in its text."""
    word = _WORD if _WORD.search(answer) else _LETTER
    return [match.end() for match in word.finditer(answer)]
