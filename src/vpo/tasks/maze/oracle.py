"""The oracle: the best score vectors of all routes through a maze, exactly.

The score of a route depends on the treasure and lava tiles that it steps on. So the state is (set of tiles stepped on,
current tile), and a dynamic program computes the fewest steps to each state. Paths between tiles are shortest paths
that pass neither lava nor E; lava that was stepped on before may be stepped on again. Such a path may pass treasure:
that route is another state, with more treasure in the same number of steps, and never worse.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from vpo.core.types import Floats
from vpo.tasks.maze.grid import DIAMOND, GOLD, LAVA, Cell, Maze, distances

Integers: TypeAlias = np.ndarray[Any, Any]

FAR = 10_000  # more steps than any budget


@dataclass(frozen=True)
class Oracle:
    """The best scores in one maze within its budget.

    Attributes:
        vectors: the different non-dominated score vectors of routes that reach E in time, (n, 4).
        orders: for each, the tiles that a route with that score steps on, in order.
    """

    vectors: Floats
    orders: tuple[tuple[Cell, ...], ...]

    def best(self, weights: Floats) -> float:
        """The largest w·r of any route."""
        return float((self.vectors @ weights).max())

    def best_order(self, weights: Floats) -> tuple[Cell, ...]:
        """The tiles of a route with the largest w·r, in order."""
        return self.orders[int((self.vectors @ weights).argmax())]


@lru_cache(maxsize=4096)
def oracle(maze: Maze) -> Oracle:
    """The best score vectors of a maze."""
    import moocore  # slow to import

    kinds = [(kind, cell) for kind in (GOLD, DIAMOND, LAVA) for cell in maze.tiles(kind)]
    paths = _PathLengths.of(maze, [cell for _, cell in kinds])
    steps_SL = _fewest_steps(paths)
    total_S = (steps_SL + paths.to_end_L).min(axis=1)
    total_S[0] = paths.straight
    possible = np.flatnonzero(total_S <= maze.budget)
    vectors = _vectors([kind for kind, _ in kinds], possible)
    kept = np.flatnonzero(moocore.is_nondominated(vectors, maximise=True, keep_weakly=False))
    return Oracle(vectors[kept], tuple(_order(int(possible[index]), steps_SL, paths) for index in kept))


@dataclass(frozen=True)
class _PathLengths:
    """Steps between the scored tiles, L of them, without passing lava or E; FAR where there is no path."""

    tiles: list[Cell]
    from_start_L: Integers
    between_LL: Integers
    to_end_L: Integers
    straight: int

    @classmethod
    def of(cls, maze: Maze, tiles: list[Cell]) -> "_PathLengths":
        blocked = frozenset([*maze.tiles(LAVA), maze.end])
        from_start = distances(maze, maze.start, blocked)
        from_tiles = [distances(maze, tile, blocked) for tile in tiles]

        def to_tiles(steps_to: dict[Cell, int]) -> list[int]:
            return [steps_to.get(tile, FAR) for tile in tiles]

        return cls(
            tiles=tiles,
            from_start_L=np.asarray(to_tiles(from_start), dtype=np.int32),
            between_LL=np.asarray([to_tiles(steps) for steps in from_tiles], dtype=np.int32).reshape(len(tiles), -1),
            to_end_L=np.asarray([steps.get(maze.end, FAR) for steps in from_tiles], dtype=np.int32),
            straight=from_start.get(maze.end, FAR),
        )


def _fewest_steps(paths: _PathLengths) -> Integers:
    """Fewest steps to have stepped on a set of tiles, a bit mask, and be on one of them: (sets S, tiles L)."""
    count = len(paths.tiles)
    steps_SL = np.full((1 << count, count), FAR, dtype=np.int32)
    steps_SL[1 << np.arange(count), np.arange(count)] = paths.from_start_L
    sets = np.arange(1 << count)
    sizes = np.bitwise_count(sets)
    for size in range(1, count + 1):
        layer = sets[sizes == size]
        changed = True
        while changed:  # return over tiles of the same set, until nothing gets shorter
            changed = False
            for tile in range(count):
                within = layer[(layer >> tile) & 1 == 1]
                shorter = (steps_SL[within] + paths.between_LL[:, tile]).min(axis=1)
                changed |= bool((shorter < steps_SL[within, tile]).any())
                steps_SL[within, tile] = np.minimum(shorter, steps_SL[within, tile])
        for tile in range(count):
            without = layer[(layer >> tile) & 1 == 0]
            steps_SL[without | 1 << tile, tile] = (steps_SL[without] + paths.between_LL[:, tile]).min(axis=1)
    return steps_SL


def _vectors(kinds: list[str], sets: Integers) -> Floats:
    """The scores of routes that step on these sets of tiles, (sets, 4)."""
    on_SL = (sets[:, None] >> np.arange(len(kinds))) & 1
    shares = [on_SL[:, [each == kind for each in kinds]].mean(axis=1) for kind in (GOLD, DIAMOND, LAVA)]
    return np.column_stack([np.ones(len(sets)), shares[0], shares[1], 1 - shares[2]])


def _order(chosen: int, steps_SL: Integers, paths: _PathLengths) -> tuple[Cell, ...]:
    """The tiles of a shortest route over a set of tiles, in order, traced back from E."""
    if chosen == 0:
        return ()
    tile = int((steps_SL[chosen] + paths.to_end_L).argmin())
    order = [paths.tiles[tile]]
    while not (chosen == 1 << tile and steps_SL[chosen, tile] == paths.from_start_L[tile]):
        # The tile before: either this one was added to the set by this step, or it was in the set already.
        earlier = [chosen & ~(1 << tile), chosen]
        fits = steps_SL[earlier] + paths.between_LL[:, tile] == steps_SL[chosen, tile]
        fits[1, tile] = False
        which, before = np.argwhere(fits)[0]
        chosen, tile = earlier[which], int(before)
        order.append(paths.tiles[tile])
    return tuple(reversed(order))
