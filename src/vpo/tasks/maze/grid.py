"""The grid of a maze, walks through it, and distances in it."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeAlias

Cell: TypeAlias = int  # row · size + column
MOVES = "UDLR"
STEPS = {"U": (-1, 0), "D": (1, 0), "L": (0, -1), "R": (0, 1)}
WALL, OPEN, START, END, GOLD, DIAMOND, LAVA, BONUS = "#.SEGDLB"


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
        """The cells of a kind, such as GOLD."""
        return [cell for cell, tile in enumerate(self.cells) if tile == kind]

    @cached_property
    def next_cell(self) -> dict[str, list[Cell]]:
        """Move → for each cell, the cell that the move leads to."""
        cells = self.cells
        return {
            move: [cell if cells[target] == WALL else target for cell, target in enumerate(targets)]
            for move, targets in _without_walls(self.size).items()
        }

    @cached_property
    def next_cells(self) -> list[tuple[Cell, ...]]:
        """For each cell, where the moves lead, in the order of MOVES: the cell itself for moves that do nothing."""
        return list(zip(*(self.next_cell[move] for move in MOVES), strict=True))

    def neighbours(self, cell: Cell) -> list[tuple[str, Cell]]:
        """The moves that lead out of a cell, and where to."""
        moves = zip(MOVES, self.next_cells[cell], strict=True)
        return [(move, target) for move, target in moves if target != cell]

    def walk(self, moves: Iterable[str]) -> list[Cell]:
        """The start, and the cell after each step, up to E or the end of the budget."""
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
        """The number of tiles of each scored kind."""
        return {kind: self.cells.count(kind) for kind in (GOLD, DIAMOND, LAVA)}

    def rows(self) -> list[str]:
        """The grid as text, one item a row."""
        return [self.cells[start : start + self.size] for start in range(0, len(self.cells), self.size)]


def distances(maze: Maze, source: Cell, blocked: frozenset[Cell] = frozenset()) -> dict[Cell, int]:
    """Steps from a cell to each cell that can be reached. Blocked cells can be reached, not passed."""
    next_cells = maze.next_cells
    steps_to = {source: 0}
    queue = [source]
    for cell in queue:  # the queue grows in the loop
        steps = steps_to[cell] + 1
        for target in next_cells[cell]:
            if target not in steps_to:
                steps_to[target] = steps
                if target not in blocked:
                    queue.append(target)
    return steps_to


@lru_cache(maxsize=16)
def _without_walls(size: int) -> dict[str, list[Cell]]:
    """Move → for each cell of a grid without walls, the cell that the move leads to."""

    def after(cell: Cell, down: int, right: int) -> Cell:
        row, column = cell // size + down, cell % size + right
        return row * size + column if 0 <= row < size and 0 <= column < size else cell

    return {move: [after(cell, *step) for cell in range(size * size)] for move, step in STEPS.items()}
