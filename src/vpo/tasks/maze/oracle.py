"""The oracle: every score vector that any route through a maze can earn, exactly.

A route matters by the treasure and lava tiles it steps on. So the state is (tiles stepped on so far, the tile it is
on), and the dynamic program over these finds the fewest steps to each: ways from tile to tile are shortest paths that
pass no lava and not E, and lava that was stepped on already may be stepped on again. Such a way may pass treasure; that
is then found under another state, with more treasure in the same number of steps, and never worse.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from vpo.core.types import Floats
from vpo.tasks.maze.world import DIAMOND, GOLD, LAVA, Cell, Maze, distances

Integers: TypeAlias = np.ndarray[Any, Any]

FAR = 10_000  # more steps than any budget


@dataclass(frozen=True)
class Oracle:
    """What can be had in one maze within its budget.

    Attributes:
        vectors: different score vectors of routes that reach E in time, (n, 4), none of which another beats.
        orders: for each, the tiles that a route with that score steps on, in order.
    """

    vectors: Floats
    orders: tuple[tuple[Cell, ...], ...]

    def best(self, weights: Floats) -> float:
        """Return the largest w·r of any route."""
        return float((self.vectors @ weights).max())

    def best_order(self, weights: Floats) -> tuple[Cell, ...]:
        """Return the tiles of a route with the largest w·r."""
        return self.orders[int((self.vectors @ weights).argmax())]


@lru_cache(maxsize=4096)
def oracle(maze: Maze) -> Oracle:
    """Return the best score vectors of a maze."""
    import moocore  # slow to import

    kinds = [(kind, cell) for kind in (GOLD, DIAMOND, LAVA) for cell in maze.tiles(kind)]
    ways = _Ways.of(maze, [cell for _, cell in kinds])
    steps_SL = _fewest_steps(ways)
    total_S = (steps_SL + ways.to_end_L).min(axis=1)
    total_S[0] = ways.straight
    possible = np.flatnonzero(total_S <= maze.budget)
    vectors = _vectors([kind for kind, _ in kinds], possible)
    kept = np.flatnonzero(moocore.is_nondominated(vectors, maximise=True, keep_weakly=False))
    return Oracle(vectors[kept], tuple(_order(int(possible[place]), steps_SL, ways) for place in kept))


@dataclass(frozen=True)
class _Ways:
    """Steps between the tiles that matter, without passing lava or E; FAR where there is no way."""

    tiles: list[Cell]
    from_start_L: Integers
    between_LL: Integers
    to_end_L: Integers
    straight: int

    @classmethod
    def of(cls, maze: Maze, tiles: list[Cell]) -> "_Ways":
        barred = frozenset([*maze.tiles(LAVA), maze.end])
        from_start = distances(maze, maze.start, barred)
        from_tiles = [distances(maze, tile, barred) for tile in tiles]

        def steps(found: dict[Cell, int]) -> list[int]:
            return [found.get(tile, FAR) for tile in tiles]

        return cls(
            tiles=tiles,
            from_start_L=np.asarray(steps(from_start), dtype=np.int32),
            between_LL=np.asarray([steps(found) for found in from_tiles], dtype=np.int32).reshape(len(tiles), -1),
            to_end_L=np.asarray([found.get(maze.end, FAR) for found in from_tiles], dtype=np.int32),
            straight=from_start.get(maze.end, FAR),
        )


def _fewest_steps(ways: _Ways) -> Integers:
    """Return the fewest steps to have stepped on a set of tiles, bit by bit, and be on one of them: (sets, tiles)."""
    count = len(ways.tiles)
    steps_SL = np.full((1 << count, count), FAR, dtype=np.int32)
    steps_SL[1 << np.arange(count), np.arange(count)] = ways.from_start_L
    sets = np.arange(1 << count)
    sizes = np.bitwise_count(sets)
    for size in range(1, count + 1):
        layer = sets[sizes == size]
        changed = True
        while changed:  # back over tiles of the same set, until nothing gets shorter
            changed = False
            for place in range(count):
                within = layer[(layer >> place) & 1 == 1]
                shorter = (steps_SL[within] + ways.between_LL[:, place]).min(axis=1)
                changed |= bool((shorter < steps_SL[within, place]).any())
                steps_SL[within, place] = np.minimum(shorter, steps_SL[within, place])
        for place in range(count):
            without = layer[(layer >> place) & 1 == 0]
            steps_SL[without | 1 << place, place] = (steps_SL[without] + ways.between_LL[:, place]).min(axis=1)
    return steps_SL


def _vectors(kinds: list[str], sets: Integers) -> Floats:
    """Return the score of routes that step on these sets of tiles, (sets, 4)."""
    on_SL = (sets[:, None] >> np.arange(len(kinds))) & 1
    shares = [on_SL[:, [each == kind for each in kinds]].mean(axis=1) for kind in (GOLD, DIAMOND, LAVA)]
    return np.column_stack([np.ones(len(sets)), shares[0], shares[1], 1 - shares[2]])


def _order(chosen: int, steps_SL: Integers, ways: _Ways) -> tuple[Cell, ...]:
    """Return the tiles of a shortest route over a set of tiles, in order, found by going back from E."""
    if chosen == 0:
        return ()
    place = int((steps_SL[chosen] + ways.to_end_L).argmin())
    order = [ways.tiles[place]]
    while not (chosen == 1 << place and steps_SL[chosen, place] == ways.from_start_L[place]):
        # The tile before: with this one new to the set, or on it already.
        earlier = [chosen & ~(1 << place), chosen]
        fits = steps_SL[earlier] + ways.between_LL[:, place] == steps_SL[chosen, place]
        fits[1, place] = False
        which, before = np.argwhere(fits)[0]
        chosen, place = earlier[which], int(before)
        order.append(ways.tiles[place])
    return tuple(reversed(order))
