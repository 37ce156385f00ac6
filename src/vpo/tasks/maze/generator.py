"""Makes random mazes, reproducibly: mazes depend on size, seed and index alone."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from random import Random
from typing import TypeVar

from vpo.tasks.maze.grid import BONUS, DIAMOND, END, GOLD, LAVA, OPEN, START, STEPS, WALL, Cell, Maze, distances
from vpo.util.errors import InputError

T = TypeVar("T")

SLACK = 7  # steps of the budget beyond the longer of the two routes over a treasure corner


def make_maze(size: int, seed: int, index: int) -> Maze:
    """Maze number `index` of a seed. It depends on nothing else, so mazes can be made in any order."""
    check_size(size)
    random = Random(f"maze {size} {seed} {index}")
    while True:
        maze = _try_maze(f"{size}-{seed}-{index}", size, random)
        if maze is not None:
            return maze


def check_size(size: int) -> None:
    """Refuse a size that no maze has."""
    if size < 7 or size % 2 == 0:
        raise InputError(f"size must be odd and 7 or more, not {size}")


def pick(items: Sequence[T], random: Random) -> T:
    """One item. It uses `Random.random` alone, which gives the same numbers in every version of Python."""
    return items[int(random.random() * len(items))]


def sample(items: Sequence[T], count: int, random: Random) -> list[T]:
    """`count` different items."""
    rest = list(items)
    return [rest.pop(int(random.random() * len(rest))) for _ in range(count)]


def _try_maze(name: str, size: int, random: Random) -> Maze | None:
    """A random maze; None if it does not meet the conditions of the task."""
    opened = _opened(size, random)
    start, gold, end, diamond = _corners(size, random)
    tiles = dict.fromkeys(opened, OPEN) | {start: START, end: END, size * size // 2: BONUS}
    for corner, kind in ((gold, GOLD), (diamond, DIAMOND)):
        if not _scatter(tiles, kind, [cell for cell in _zone(corner, size) if cell in opened], random):
            return None
    inside = [cell for cell in sorted(opened) if tiles[cell] == OPEN and _is_inside(cell, size)]
    if not _scatter(tiles, LAVA, inside, random):
        return None
    maze = Maze(name, size, 0, "".join(tiles.get(cell, WALL) for cell in range(size * size)))
    budget = _budget(maze, gold, diamond)
    return None if budget is None else replace(maze, budget=budget)


def _opened(size: int, random: Random) -> set[Cell]:
    """The cells without a wall: a spanning tree, some of the remaining walls, and the centre."""
    opened = _prim(size, random)
    walls = [cell for cell in range(size * size) if cell not in opened]
    # 18 to 28 of the 32 walls that remain at size 9, and the same share at other sizes.
    fewest, most = len(walls) * 18 // 32, len(walls) * 28 // 32
    count = pick(range(fewest, most + 1), random)
    centre = (size * size) // 2
    if centre in walls:  # B is in the centre, so a wall there is opened
        walls.remove(centre)
        opened.add(centre)
        count -= 1
    opened.update(sample(walls, count, random))
    return opened


def _corners(size: int, random: Random) -> tuple[Cell, Cell, Cell, Cell]:
    """The corners of the start, the gold, the end and the diamonds; start and end are opposite."""
    last = size - 1
    corners = [0, last, last * size + last, last * size]  # in a circle
    turn = pick(range(4), random)
    start, one, end, other = corners[turn:] + corners[:turn]
    gold, diamond = (one, other) if random.random() < 0.5 else (other, one)
    return start, gold, end, diamond


def _scatter(tiles: dict[Cell, str], kind: str, cells: Sequence[Cell], random: Random) -> bool:
    """Put 3 to 5 tiles of a kind on some of the cells; False where there are too few cells."""
    count = pick((3, 4, 5), random)
    if len(cells) < count:
        return False
    tiles.update(dict.fromkeys(sample(cells, count, random), kind))
    return True


def _is_inside(cell: Cell, size: int) -> bool:
    """Whether a cell is not on the border."""
    return 0 < cell // size < size - 1 and 0 < cell % size < size - 1


def _budget(maze: Maze, gold: Cell, diamond: Cell) -> int | None:
    """The steps that suffice for the corner of either treasure and not of both, and for a way without lava.

    None where there are no such steps.
    """
    start, end = maze.start, maze.end
    from_start, from_gold, from_diamond = (distances(maze, cell) for cell in (start, gold, diamond))
    if not {gold, diamond, end} <= from_start.keys():
        return None
    over_gold, over_diamond = from_start[gold] + from_gold[end], from_start[diamond] + from_diamond[end]
    over_both = from_gold[diamond] + min(from_start[gold] + from_diamond[end], from_start[diamond] + from_gold[end])
    budget = max(over_gold, over_diamond) + SLACK
    without_lava = distances(maze, start, frozenset(maze.tiles(LAVA))).get(end)
    if without_lava is None or without_lava > budget or over_both <= budget:
        return None
    return budget


def _prim(size: int, random: Random) -> set[Cell]:
    """The open cells of a random spanning tree over the nodes, the cells of even row and column (Prim's algorithm)."""
    first = (0, 0)
    opened = {first}
    frontier = [(first, step) for step in STEPS.values()]
    while frontier:
        index = int(random.random() * len(frontier))
        frontier[index], frontier[-1] = frontier[-1], frontier[index]
        (row, column), (down, right) = frontier.pop()
        node = row + 2 * down, column + 2 * right
        if node in opened or not (0 <= node[0] < size and 0 <= node[1] < size):
            continue
        opened |= {node, (row + down, column + right)}
        frontier += [(node, step) for step in STEPS.values()]
    return {row * size + column for row, column in opened}


@lru_cache(maxsize=64)
def _zone(corner: Cell, size: int) -> list[Cell]:
    """The cells at most two steps from a corner in a grid without walls, in order."""
    row, column = divmod(corner, size)
    return [cell for cell in range(size * size) if abs(cell // size - row) + abs(cell % size - column) <= 2]
