"""Routes: ways through a maze, as moves, and the demonstrations that a policy can learn from."""

from collections.abc import Iterable
from random import Random

from vpo.core.types import Floats
from vpo.tasks.maze.oracle import oracle
from vpo.tasks.maze.world import DIAMOND, GOLD, LAVA, Cell, Maze, distances, pick


def best_route(maze: Maze, weights: Floats) -> str:
    """Return the moves of a route that no other beats under a weighting of the objectives."""
    moves = route_over(maze, oracle(maze).best_order(weights), frozenset(maze.tiles(LAVA)), Random(0))
    assert moves is not None, "the oracle's routes exist"
    return moves


def route_over(maze: Maze, tiles: Iterable[Cell], barred: frozenset[Cell], random: Random) -> str | None:
    """Return the moves from S over some tiles, in order, to E, by shortest ways that pass no barred cell, nor E.

    Of equally short ways one is picked at random. None where there is no way.
    """
    moves = ""
    cell = maze.start
    barred |= {maze.end}
    for target in [*tiles, maze.end]:
        away = distances(maze, target, barred)
        if cell not in away:
            return None
        while cell != target:
            # A barred cell is in reach but leads nowhere, so it is only stepped on as a target.
            ways = [
                (move, near)
                for move, near in maze.neighbours(cell)
                if away.get(near, -1) == away[cell] - 1 and (near == target or near not in barred)
            ]
            if not ways:
                return None
            move, cell = pick(ways, random)
            moves += move
    return moves


def demonstration(maze: Maze, random: Random) -> str:
    """Return a sensible route, picked at random: for gold, for diamonds, or straight to E, mostly without lava.

    It takes the nearest tile of its treasure, again and again, for as long as E stays within the budget.
    """
    kind = pick((GOLD, DIAMOND, GOLD, DIAMOND, ""), random)
    lava = frozenset(maze.tiles(LAVA))
    barred = lava if random.random() < 0.9 else frozenset()
    home = distances(maze, maze.end, barred)
    left = set(maze.tiles(kind)) if kind else set()
    wanted = pick(range(1, len(left) + 1), random) if left and random.random() < 0.3 else len(left)
    order: list[Cell] = []
    cell, steps = maze.start, 0
    while len(order) < wanted:
        away = distances(maze, cell, barred | {maze.end})
        in_time = [tile for tile in sorted(left & away.keys()) if steps + away[tile] + home[tile] <= maze.budget]
        if not in_time:
            break
        nearest = min(away[tile] for tile in in_time)
        tile = pick([tile for tile in in_time if away[tile] == nearest], random)
        left.remove(tile)
        order.append(tile)
        cell, steps = tile, steps + away[tile]
    moves = route_over(maze, order, barred, random)
    assert moves is not None, "every tile of the order was in reach, and E from it"
    return moves
