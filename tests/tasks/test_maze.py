import itertools
from collections import deque
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpo.tasks.maze import MazeTask
from vpo.tasks.maze.generator import make_maze
from vpo.tasks.maze.grid import BONUS, DIAMOND, END, GOLD, LAVA, OPEN, START, WALL, Maze, distances
from vpo.tasks.maze.oracle import oracle
from vpo.tasks.maze.picture import draw, text
from vpo.tasks.maze.routes import best_route, demonstration, route_over
from vpo.tasks.maze.task import parse_moves

TASK = MazeTask()


def hand_made(budget=20):
    """A maze to reason about: gold above, diamonds below, lava in the middle of the short way.

    S G . . E
    . # # # .
    . L L . .
    D # . # .
    D . . . .
    """
    rows = ["SG..E", ".###.", ".LL..", "D#.#.", "D...."]
    return Maze("hand", 5, budget, "".join(rows))


# Scores, by hand


@pytest.mark.parametrize(
    ("route", "expected"),
    [
        ("RRRR", (1, 1, 0, 1)),  # over the gold to E
        ("rrrr", (1, 1, 0, 1)),
        ("R, R R\nR;", (1, 1, 0, 1)),
        ("DDRRRRUU", (1, 0, 0, 0)),  # over both lava tiles
        ("DDDDRRRRUUUU", (1, 0, 1, 1)),  # over both diamonds
        ("RLDDDDRRRRUUUU", (1, 1, 1, 1)),  # gold first, then diamonds
        ("RRR", (0, 0, 0, 0)),  # does not reach E
        ("URRRR", (1, 1, 0, 1)),  # a blocked move only costs a step
        ("RDRRR", (1, 1, 0, 1)),  # a wall blocks
        ("RRRRDD", (1, 1, 0, 1)),  # the walk ends on E
        ("RRRRLLLLDDDDRRRRUUUU", (1, 1, 0, 1)),  # an item after E does not count
        ("RLRLRRRR", (1, 1, 0, 1)),  # a tile counts once
        ("DDRLRRRRUU", (1, 0, 0, 0)),
        ("", (0, 0, 0, 0)),
        ("RRXR", (0, 0, 0, 0)),
        ("right right right right", (0, 0, 0, 0)),
        ("R" * 20_000, (0, 0, 0, 0)),  # longer than any route
    ],
)
def test_hand_worked_routes(route, expected):
    assert TASK.score(hand_made(), route) == expected


def test_the_budget_is_kept():
    assert TASK.score(hand_made(budget=4), "RRRR") == (1, 1, 0, 1)
    assert TASK.score(hand_made(budget=3), "RRRR") == (0, 0, 0, 0)
    # A blocked move costs a step: with one, four steps do not suffice.
    assert TASK.score(hand_made(budget=4), "URRRR") == (0, 0, 0, 0)


def test_one_of_two_lava_tiles_is_a_half():
    # Down, onto the first lava tile, and back.
    assert TASK.score(hand_made(), "DDRLUURRRR") == (1, 1, 0, 0.5)


def test_the_same_route_in_other_letters_is_the_same_answer():
    assert TASK.normal_form("r r,d") == TASK.normal_form("RRD") == "RRD"
    assert parse_moves("RRD!") is None


# The generator


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
    with pytest.raises(ValueError, match="split 'dev' is not one of maze: there are train, validation, test"):
        TASK.problems("dev")
    with pytest.raises(ValueError, match="count must be 1 or more, not 0"):
        TASK.problems(count=0)


# The oracle


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


# Demonstrations and prompts


@pytest.mark.parametrize("size", [7, 9, 13])
def test_demonstrations_are_good_and_varied(size):
    task = MazeTask(size=size)
    kinds = set()
    for maze in task.problems("train", count=30):
        for route in task.demonstrations(maze, 6, Random(maze.id)):
            completion, gold, diamond, _ = task.score(maze, route)
            assert completion == 1
            kinds.add((gold > 0, diamond > 0))
    assert {(True, False), (False, True)} <= kinds


def test_demonstrations_are_mixed():
    """Two in five for each treasure, one in five straight to E; most keep off lava and take all they can."""
    mazes = TASK.problems("train", count=100)
    vectors = np.array(
        [TASK.score(maze, demonstration(maze, Random(f"{maze.id} {i}"))) for maze in mazes for i in range(10)]
    )
    gold, diamond, avoid_lava = vectors[:, 1], vectors[:, 2], vectors[:, 3]
    for_gold, for_diamond = (gold > 0.5) & (diamond < 0.5), (diamond > 0.5) & (gold < 0.5)
    assert 0.3 < for_gold.mean() < 0.45
    assert 0.3 < for_diamond.mean() < 0.45
    assert 0.90 < (avoid_lava == 1).mean() < 0.98
    assert 0.7 < (gold[for_gold] == 1).mean() < 0.9


def test_demonstrations_are_seeded():
    maze = TASK.problems(count=1)[0]
    assert TASK.demonstrations(maze, 5, Random(3)) == TASK.demonstrations(maze, 5, Random(3))


def test_the_prompt_holds_the_maze_and_the_budget():
    maze = TASK.problems(count=1)[0]
    (message,) = TASK.ask(maze, 3)
    assert "\n".join(maze.rows()) in message["content"]
    assert f"You have {maze.budget} steps" in message["content"]
    assert "<answer_3>" in message["content"]


def test_the_compact_prompt_is_short_and_unambiguous():
    task = MazeTask(compact=True)
    maze = task.problems(count=1)[0]
    prompts = {
        task.ask(maze, answers, target)[0]["content"]
        for answers, target in itertools.product((1, 3), (None, [0.1, 0.2, 0.3, 0.4], [1, 0, 0, 0]))
    }
    assert len(prompts) == 6
    with pytest.raises(ValueError, match="answers must be 1 or more, not 0"):
        task.ask(maze, 0)
    with pytest.raises(ValueError, match="target must not be negative"):
        task.ask(maze, 1, [1.3, -0.3, 0, 0])
    assert max(map(len, prompts)) < 100


# Pictures


def test_the_text_picture_shows_routes():
    shown = text(hand_made(), ["RRRR", "DDDDRRRRUUUU"], colour=False).splitlines()
    assert shown[0] == "1S1G1 1 1E"
    assert shown[4].startswith("2D2 ")
    assert "\033[" in text(hand_made(), ["RRRR"], colour=True)
    assert "\033[" not in text(hand_made(), colour=True)


def test_any_answer_can_be_drawn(tmp_path):
    TASK.draw(hand_made(), ["RRRR", "$\\frac$", ""], str(tmp_path / "maze.png"))
    assert (tmp_path / "maze.png").exists()


@pytest.mark.parametrize(("name", "start"), [("maze.png", b"\x89PNG"), ("maze.svg", b"<?xml")])
def test_pictures_are_drawn(tmp_path, name, start):
    maze = TASK.problems(count=1)[0]
    draw(maze, [TASK.gold(maze), "RRR", ""], tmp_path / name, labels=["best", "short", "none"])
    assert (tmp_path / name).read_bytes().startswith(start)


def test_bad_picture_names_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"maze.gif: a picture must end in .png or .svg"):
        draw(hand_made(), [], tmp_path / "maze.gif")


@given(st.text(alphabet="UDLRudlr ,\n", max_size=60))
def test_scores_are_shares_whatever_the_route(route):
    vector = TASK.score(hand_made(), route)
    assert all(0 <= score <= 1 for score in vector)
    assert vector[0] in (0, 1)
    assert any(vector) == (vector[0] == 1)


def test_tiles_differ():
    assert len({WALL, OPEN, START, END, GOLD, DIAMOND, LAVA, BONUS}) == 8
