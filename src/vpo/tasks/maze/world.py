"""Mazes: what one is, how they are made, and how a walk through one goes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from random import Random
from typing import TypeAlias, TypeVar

from vpo.util.errors import InputError

Cell: TypeAlias = int  # row · size + column
T = TypeVar("T")

MOVES = "UDLR"
STEPS = {"U": (-1, 0), "D": (1, 0), "L": (0, -1), "R": (0, 1)}
WALL, OPEN, START, END, GOLD, DIAMOND, LAVA, BONUS = "#.SEGDLB"
SLACK = 7  # steps of the budget beyond the longer of the two ways over a treasure corner


@dataclass(frozen=True)
class Maze:
    """A maze: `cells` row by row, and the number of steps that may be taken.

    A move into a wall or off the grid does nothing and costs a step. The walk ends on E.
    """

    id: str
    size: int
    budget: int
    cells: str

    @cached_property
    def start(self) -> Cell:
        """The cell of S."""
        return self.cells.index(START)

    @cached_property
    def end(self) -> Cell:
        """The cell of E."""
        return self.cells.index(END)

    def tiles(self, kind: str) -> list[Cell]:
        """Return the cells of a kind, such as GOLD."""
        return [cell for cell, tile in enumerate(self.cells) if tile == kind]

    @cached_property
    def next_cell(self) -> dict[str, list[Cell]]:
        """Where each move leads from each cell: for each move, a list over the cells."""
        cells = self.cells
        return {
            move: [cell if cells[target] == WALL else target for cell, target in enumerate(targets)]
            for move, targets in _without_walls(self.size).items()
        }

    @cached_property
    def next_cells(self) -> list[tuple[Cell, ...]]:
        """Where the moves lead from each cell, in the order of MOVES: the cell itself for those that do nothing."""
        return list(zip(*(self.next_cell[move] for move in MOVES), strict=True))

    def neighbours(self, cell: Cell) -> list[tuple[str, Cell]]:
        """Return the moves that lead out of a cell, and where to."""
        ways = zip(MOVES, self.next_cells[cell], strict=True)
        return [(move, target) for move, target in ways if target != cell]

    def walk(self, moves: Iterable[str]) -> list[Cell]:
        """Return the cells after each step, up to E or the end of the budget, the start first."""
        cell, end, table = self.start, self.end, self.next_cell
        path = [cell]
        for move, _ in zip(moves, range(self.budget), strict=False):
            cell = table[move][cell]
            path.append(cell)
            if cell == end:
                break
        return path

    @cached_property
    def totals(self) -> dict[str, int]:
        """How many tiles of each scored kind there are."""
        return {kind: self.cells.count(kind) for kind in (GOLD, DIAMOND, LAVA)}

    def rows(self) -> list[str]:
        """Return the grid, a text a row."""
        return [self.cells[start : start + self.size] for start in range(0, len(self.cells), self.size)]


def distances(maze: Maze, source: Cell, blocked: frozenset[Cell] = frozenset()) -> dict[Cell, int]:
    """Return the steps from a cell to each cell within reach. Blocked cells can be reached, not passed."""
    next_cells = maze.next_cells
    found = {source: 0}
    queue = [source]
    for cell in queue:  # it grows on the way
        steps = found[cell] + 1
        for target in next_cells[cell]:
            if target not in found:
                found[target] = steps
                if target not in blocked:
                    queue.append(target)
    return found


@lru_cache(maxsize=16)
def _without_walls(size: int) -> dict[str, list[Cell]]:
    """Return where each move leads from each cell of a grid without walls."""

    def after(cell: Cell, down: int, right: int) -> Cell:
        row, column = cell // size + down, cell % size + right
        return row * size + column if 0 <= row < size and 0 <= column < size else cell

    return {move: [after(cell, *step) for cell in range(size * size)] for move, step in STEPS.items()}


def make_maze(size: int, seed: int, index: int) -> Maze:
    """Return maze number `index` of a seed. It depends on nothing else, so mazes can be made in any order."""
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
    """Return one item. `Random.random` alone is promised to give the same numbers in every version of Python."""
    return items[int(random.random() * len(items))]


def sample(items: Sequence[T], count: int, random: Random) -> list[T]:
    """Return `count` different items."""
    left = list(items)
    return [left.pop(int(random.random() * len(left))) for _ in range(count)]


def _try_maze(name: str, size: int, random: Random) -> Maze | None:
    """Lay out a maze; None if it does not meet the conditions of the task."""
    opened = _prim(size, random)
    walls = [cell for cell in range(size * size) if cell not in opened]
    # 18 to 28 of the 32 walls that remain at size 9, and the same share at other sizes.
    fewest, most = len(walls) * 18 // 32, len(walls) * 28 // 32
    count = pick(range(fewest, most + 1), random)
    centre = (size * size) // 2
    if centre in walls:  # where there is no room in the centre, B opens a wall
        walls.remove(centre)
        opened.add(centre)
        count -= 1
    opened.update(sample(walls, count, random))

    last = size - 1
    corners = [0, last, last * size + last, last * size]  # in a circle
    turn = pick(range(4), random)
    start, one, end, other = corners[turn:] + corners[:turn]
    gold_corner, diamond_corner = (one, other) if random.random() < 0.5 else (other, one)
    tiles = dict.fromkeys(opened, OPEN) | {start: START, end: END, centre: BONUS}
    for corner, kind in ((gold_corner, GOLD), (diamond_corner, DIAMOND)):
        near = [cell for cell in _zone(corner, size) if cell in opened]
        count = pick((3, 4, 5), random)
        if len(near) < count:
            return None
        tiles |= dict.fromkeys(sample(near, count, random), kind)
    inside = [
        cell for cell in sorted(opened) if tiles[cell] == OPEN and 0 < cell // size < last and 0 < cell % size < last
    ]
    count = pick((3, 4, 5), random)
    if len(inside) < count:
        return None
    tiles |= dict.fromkeys(sample(inside, count, random), LAVA)

    cells = "".join(tiles.get(cell, WALL) for cell in range(size * size))
    maze = Maze(name, size, 0, cells)
    from_start, from_gold, from_diamond = (distances(maze, cell) for cell in (start, gold_corner, diamond_corner))
    if not {gold_corner, diamond_corner, end} <= from_start.keys():
        return None
    over_gold = from_start[gold_corner] + from_gold[end]
    over_diamond = from_start[diamond_corner] + from_diamond[end]
    over_both = from_gold[diamond_corner] + min(
        from_start[gold_corner] + from_diamond[end], from_start[diamond_corner] + from_gold[end]
    )
    budget = max(over_gold, over_diamond) + SLACK
    without_lava = distances(maze, start, frozenset(maze.tiles(LAVA))).get(end)
    if without_lava is None or without_lava > budget or over_both <= budget:
        return None
    return Maze(name, size, budget, cells)


def _prim(size: int, random: Random) -> set[Cell]:
    """Return the open cells of a random spanning tree over the rooms, the cells of even row and column."""
    first = (0, 0)
    opened = {first}
    frontier = [(first, step) for step in STEPS.values()]
    while frontier:
        place = int(random.random() * len(frontier))
        frontier[place], frontier[-1] = frontier[-1], frontier[place]
        (row, column), (down, right) = frontier.pop()
        room = row + 2 * down, column + 2 * right
        if room in opened or not (0 <= room[0] < size and 0 <= room[1] < size):
            continue
        opened |= {room, (row + down, column + right)}
        frontier += [(room, step) for step in STEPS.values()]
    return {row * size + column for row, column in opened}


@lru_cache(maxsize=64)
def _zone(corner: Cell, size: int) -> list[Cell]:
    """Return the cells at most two steps from a corner, if no wall were in the way, in order."""
    row, column = divmod(corner, size)
    return [cell for cell in range(size * size) if abs(cell // size - row) + abs(cell % size - column) <= 2]
