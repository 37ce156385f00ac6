"""Routes through a maze, as strings of moves: best ones, and demonstrations for a policy to imitate."""

from collections.abc import Iterable
from random import Random

from vpo.core.types import Floats
from vpo.tasks.maze.generator import pick
from vpo.tasks.maze.grid import DIAMOND, GOLD, LAVA, Cell, Maze, distances
from vpo.tasks.maze.oracle import oracle


def best_route(maze: Maze, weights: Floats) -> str:
    """A route with the largest w·r."""
    moves = route_over(maze, oracle(maze).best_order(weights), frozenset(maze.tiles(LAVA)), Random(0))
    assert moves is not None, "the oracle's routes exist"
    return moves


def route_over(maze: Maze, tiles: Iterable[Cell], blocked: frozenset[Cell], random: Random) -> str | None:
    """The moves from S over some tiles, in order, to E, by shortest paths that pass neither a blocked cell nor E.

    Among equally short paths one is picked at random. None where there is no path.
    """
    moves = ""
    cell = maze.start
    blocked |= {maze.end}
    for target in [*tiles, maze.end]:
        away = distances(maze, target, blocked)
        if cell not in away:
            return None
        while cell != target:
            # A blocked cell can be reached but not passed, so it is stepped on only as a target.
            steps = [
                (move, near)
                for move, near in maze.neighbours(cell)
                if away.get(near, -1) == away[cell] - 1 and (near == target or near not in blocked)
            ]
            if not steps:
                return None
            move, cell = pick(steps, random)
            moves += move
    return moves


def demonstration(maze: Maze, random: Random) -> str:
    """A sensible random route: for gold, for diamonds, or straight to E, mostly without lava.

    It goes to the nearest tile of its treasure, again and again, for as long as E stays within the budget.
    """
    kind = pick((GOLD, DIAMOND, GOLD, DIAMOND, ""), random)
    lava = frozenset(maze.tiles(LAVA))
    blocked = lava if random.random() < 0.9 else frozenset()
    home = distances(maze, maze.end, blocked)
    rest = set(maze.tiles(kind)) if kind else set()
    count = pick(range(1, len(rest) + 1), random) if rest and random.random() < 0.3 else len(rest)
    order: list[Cell] = []
    cell, steps = maze.start, 0
    while len(order) < count:
        away = distances(maze, cell, blocked | {maze.end})
        in_time = [tile for tile in sorted(rest & away.keys()) if steps + away[tile] + home[tile] <= maze.budget]
        if not in_time:
            break
        nearest = min(away[tile] for tile in in_time)
        tile = pick([tile for tile in in_time if away[tile] == nearest], random)
        rest.remove(tile)
        order.append(tile)
        cell, steps = tile, steps + away[tile]
    moves = route_over(maze, order, blocked, random)
    assert moves is not None, "every tile of the order can be reached, and E from it"
    return moves
