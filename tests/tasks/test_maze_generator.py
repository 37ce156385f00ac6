"""Mazes: what the generator guarantees, and that they never change."""

import pytest

from vpo.tasks.maze import MazeTask
from vpo.tasks.maze.generator import make_maze
from vpo.tasks.maze.grid import BONUS, DIAMOND, END, GOLD, LAVA, OPEN, START, WALL, distances

TASK = MazeTask()


@pytest.mark.parametrize("size", [7, 9, 13])
def test_mazes_are_as_specified(size):
    for index in range(60):
        maze = make_maze(size, 42, index)
        last = size - 1
        corners = {0, last, last * size, size * size - 1}
        assert {maze.start, maze.end} <= corners
        assert maze.start + maze.end == size * size - 1  # opposite
        assert maze.cells[size * size // 2] == BONUS
        zones = {}
        for kind in (GOLD, DIAMOND):
            tiles = maze.tiles(kind)
            assert 3 <= len(tiles) <= 5
            near = [
                corner
                for corner in corners - {maze.start, maze.end}
                if all(abs(t // size - corner // size) + abs(t % size - corner % size) <= 2 for t in tiles)
            ]
            assert len(near) == 1
            zones[kind] = near[0]
        assert zones[GOLD] != zones[DIAMOND]
        lava = maze.tiles(LAVA)
        assert 3 <= len(lava) <= 5
        assert all(0 < tile // size < last and 0 < tile % size < last for tile in lava)

        from_start = distances(maze, maze.start)
        over = {kind: from_start[zones[kind]] + distances(maze, zones[kind])[maze.end] for kind in zones}
        assert maze.budget == max(over.values()) + 7
        assert distances(maze, maze.start, frozenset(lava))[maze.end] <= maze.budget
        gold, diamond = zones[GOLD], zones[DIAMOND]
        between = distances(maze, gold)[diamond]
        to_end = distances(maze, maze.end)
        assert min(from_start[gold] + to_end[diamond], from_start[diamond] + to_end[gold]) + between > maze.budget


def test_the_number_of_walls_is_as_published():
    # At size 9 Prim's maze leaves 32 walls, of which 18 to 28 are opened: 4 to 14 remain.
    counts = {make_maze(9, 42, index).cells.count(WALL) for index in range(200)}
    assert counts == set(range(4, 15))
    # At 13 it leaves 169 − 49 − 48 = 72, of which 40 to 63 are opened.
    assert all(9 <= make_maze(13, 42, index).cells.count(WALL) <= 32 for index in range(50))
    # At 7 it leaves 49 − 16 − 15 = 18, of which 10 to 15 are opened, the one under B among them.
    assert {make_maze(7, 42, index).cells.count(WALL) for index in range(200)} == set(range(3, 9))


def test_mazes_are_the_same_on_every_machine():
    assert make_maze(9, 4242, 0).rows() == MazeTask().problems("test", count=1)[0].rows()
    assert make_maze(9, 42, 7) == make_maze(9, 42, 7)
    # Written down once; a change here is a change of the benchmark.
    assert (make_maze(9, 4242, 0).cells, make_maze(9, 4242, 0).budget) == FIRST_TEST_MAZE


FIRST_TEST_MAZE = (
    "E.....DD....#.............D..L..#....#..B.......#L....G.L..#.#.GG.......GG.#...#S",
    25,
)


def test_splits_do_not_share_mazes():
    mazes = [maze.cells for split in ("train", "validation", "test") for maze in TASK.problems(split, count=100)]
    assert len(set(mazes)) == 300
    assert len(TASK.problems("test")) == 100


@pytest.mark.parametrize("size", [5, 8, 0, -9])
def test_bad_sizes_are_named(size):
    for call in (lambda: MazeTask(size=size), lambda: make_maze(size, 1, 1)):
        with pytest.raises(ValueError, match=f"size must be odd and 7 or more, not {size}"):
            call()


def test_bad_splits_and_counts_are_named():
    with pytest.raises(ValueError, match="no split 'dev' in maze: there are train, validation, test"):
        TASK.problems("dev")
    with pytest.raises(ValueError, match="count must be 1 or more, not 0"):
        TASK.problems(count=0)


def test_tiles_differ():
    assert len({WALL, OPEN, START, END, GOLD, DIAMOND, LAVA, BONUS}) == 8
