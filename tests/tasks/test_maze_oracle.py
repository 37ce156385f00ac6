"""The oracle against brute force, and routes against the oracle."""

from collections import deque
from random import Random

import numpy as np
import pytest

from vpo.tasks.maze import MazeTask
from vpo.tasks.maze.generator import make_maze
from vpo.tasks.maze.grid import DIAMOND, GOLD, LAVA, Maze, distances
from vpo.tasks.maze.oracle import oracle
from vpo.tasks.maze.routes import best_route, demonstration, route_over

TASK = MazeTask()


def brute_force(maze):
    """Every score vector of every walk, by breadth-first search over (cell, tiles stepped on)."""
    tiles = {cell: index for index, cell in enumerate(maze.tiles(GOLD) + maze.tiles(DIAMOND) + maze.tiles(LAVA))}
    vectors = set()
    seen = {(maze.start, 0)}
    queue = deque([(maze.start, 0, 0)])
    kinds = [maze.cells[cell] for cell in tiles]
    while queue:
        cell, stepped, steps = queue.popleft()
        if cell == maze.end:
            on = [kind for index, kind in enumerate(kinds) if stepped >> index & 1]
            shares = [on.count(kind) / maze.cells.count(kind) for kind in (GOLD, DIAMOND, LAVA)]
            vectors.add((1.0, shares[0], shares[1], 1 - shares[2]))
            continue
        if steps == maze.budget:
            continue
        for _, target in maze.neighbours(cell):
            state = target, stepped | (1 << tiles[target] if target in tiles else 0)
            if state not in seen:
                seen.add(state)
                queue.append((*state, steps + 1))
    return vectors


def harder(index):
    """A small maze with as many lava tiles as it takes to block the way, and any budget."""
    random = Random(index)
    tiles = [*"SEGGDDLLL", *random.choices("..#L", k=16)]
    random.shuffle(tiles)
    return Maze(f"harder-{index}", 5, random.randrange(6, 20), "".join(tiles).replace("LLLLL", "....."))


MAZES = [make_maze(7, 1, index) for index in range(8)] + [
    maze for maze in map(harder, range(80)) if maze.cells.count(LAVA) <= 7 and maze.end in distances(maze, maze.start)
]


@pytest.mark.parametrize("index", range(len(MAZES)))
def test_the_oracle_equals_brute_force(index):
    maze = MAZES[index]
    every = np.asarray(sorted(brute_force(maze)))
    best = oracle(maze)
    if not len(every):
        assert not len(best.vectors)
        return
    rng = np.random.default_rng(index)
    for weights in [*np.eye(4), np.full(4, 0.25), *rng.dirichlet(np.ones(4), 30)]:
        assert best.best(weights) == pytest.approx((every @ weights).max())
    assert {tuple(vector) for vector in best.vectors.round(9)} <= {tuple(vector) for vector in every.round(9)}
    for weights in rng.dirichlet(np.ones(4), 5):
        route = best_route(maze, weights)
        assert np.dot(TASK.score(maze, route), weights) == pytest.approx(best.best(weights))


def test_the_oracle_walks_over_lava_where_that_is_best():
    # The only way to the gold is over lava: worth it for gold alone, not where lava weighs more.
    maze = Maze("lava", 3, 10, "SLG" + "D.#" + "E##")
    gold_alone, careful = np.array([0, 1, 0, 0]), np.array([0, 0.2, 0, 0.8])
    assert oracle(maze).best(gold_alone) == 1
    assert TASK.score(maze, best_route(maze, gold_alone))[1] == 1
    assert oracle(maze).best(careful) == pytest.approx(0.8)
    assert TASK.score(maze, best_route(maze, careful)) == (1, 0, 1, 1)


def test_the_best_route_scores_what_the_oracle_says():
    rng = np.random.default_rng(0)
    for maze in TASK.problems(count=40):
        for weights in [np.full(4, 0.25), *rng.dirichlet(np.ones(4), 5)]:
            assert np.dot(TASK.score(maze, best_route(maze, weights)), weights) == pytest.approx(
                oracle(maze).best(weights)
            )


def test_no_route_beats_the_oracle():
    """On 200 mazes, under five weightings: demonstrations, random walks, and tours over tiles in any order."""
    random = Random(0)
    weightings = np.vstack([np.full(4, 0.25), np.random.default_rng(0).dirichlet(np.ones(4), 4)])
    for maze in TASK.problems(count=200):
        routes = [demonstration(maze, random) for _ in range(8)]
        routes += ["".join(random.choice("UDLR") for _ in range(maze.budget)) for _ in range(4)]
        tiles = maze.tiles(GOLD) + maze.tiles(DIAMOND) + maze.tiles(LAVA)
        tours = [random.sample(tiles, random.randrange(1, 6)) for _ in range(8)]
        routes += [route for tour in tours if (route := route_over(maze, tour, frozenset(), random))]
        values = np.asarray(TASK.score_all([maze] * len(routes), routes)) @ weightings.T
        best = [oracle(maze).best(weights) for weights in weightings]
        assert (values <= np.asarray(best) + 1e-12).all()


def test_the_uniform_best_is_three_quarters_nearly_everywhere():
    values = [TASK.best(maze) for maze in TASK.problems(count=100)]
    assert min(values) >= 0.75 - 1e-9
    assert np.mean([value == pytest.approx(0.75) for value in values]) > 0.85
