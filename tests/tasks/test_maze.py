"""The task maze: scores by hand, demonstrations, prompts, pictures."""

import itertools
import time
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpo.tasks.maze import MazeTask
from vpo.tasks.maze.grid import Maze
from vpo.tasks.maze.oracle import oracle
from vpo.tasks.maze.picture import draw, text
from vpo.tasks.maze.routes import demonstration
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
        ("right right right right", (1, 1, 0, 1)),  # words
        ("RIGHT,Right;\nright 'right'.", (1, 1, 0, 1)),
        ("`RRRR`", (1, 1, 0, 1)),
        ('"R R R R".', (1, 1, 0, 1)),
        ("“RRRR.”", (1, 1, 0, 1)),
        ("R right R R", (0, 0, 0, 0)),  # letters and words
        ("rightright right right", (0, 0, 0, 0)),  # words without separators
        ("right right right righ", (0, 0, 0, 0)),
        ("R.R.R.R", (0, 0, 0, 0)),
        ("RRRR..", (0, 0, 0, 0)),
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


def moves_slowly(text):
    """The grammar, token by token: letters or words, separators, and one full stop at the end."""
    tokens, word = [], ""
    text = text.replace("->", "→").rstrip(SEPARATORS)
    for character in (text[:-1] if text.endswith(".") else text) + " ":
        if character in SEPARATORS:
            tokens += [word.upper()] if word and word.isascii() else [word] if word else []
            word = ""
        else:
            word += character
    if tokens and all(token in ("UP", "DOWN", "LEFT", "RIGHT") for token in tokens):
        return "".join(token[0] for token in tokens)
    return "".join(tokens) if tokens and all(letter in "UDLR" for token in tokens for letter in token) else None


SEPARATORS = " \t\r\n,;\"'`“”‘’→"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *((text, "UURR") for text in ("Route: UURR", "**UURR**", "`UURR`", "The route:\nUURR\nIt is short.")),
        *((text, "UURR") for text in ("U → U → R → R", "U->U->R->R", "up -> up -> right -> right")),
        *(
            (text, None)
            for text in (
                "- UURR\n- RRUU",
                "1. UURR\n2. RRUU",
                "Either UURR or RRUU",
                "UURR is my route",
                "Path:\nRR\nD",
                "right, right\nthen down",
                "The route is: RRDD\nor DDRR",
                "Step 1: RR\nStep 2: RR",
                "Route: UURR\nin words:\nup up right right",
                "",
                "Route: X",
            )
        ),
    ],
)
def test_the_only_route_in_tags_is_read(text, expected):
    for completion, answers in ((f"<answer>{text}</answer>", 1), (f"<answer_1>{text}</answer_1>", 2)):
        answer = TASK.read(completion, answers).answers[0]
        assert parse_moves(answer) == expected
        assert expected or answer == text


def test_an_unclosed_answer_and_the_compact_form_are_read_as_they_are():
    assert TASK.read("<answer>Route: UURR", 1).answers == ["Route: UURR"]
    assert MazeTask(compact=True).read("<answer>Route: UURR</answer>", 1).answers == ["Route: UURR"]


@pytest.mark.parametrize("piece", ["U->", "->", "Route: UU\n", "UU:", "U\n"])
def test_routes_are_read_in_linear_time(piece):
    begin = time.process_time()
    TASK.read(f"<answer>{piece * (200_000 // len(piece))}</answer>", 1)
    TASK.read(piece * (200_000 // len(piece)), 1)
    assert time.process_time() - begin < 3


def test_the_parser_agrees_with_the_grammar():
    random = Random(0)
    pieces = ["U", "d", "L", "r", "UP", "Down", "left", "RIGHT", "u p", ".", "!", "ı", "r\u0131ght", "\u00a0", "\x0b"]
    read = 0
    for _ in range(20_000):
        kinds = random.choice([pieces[:4], pieces[4:8], pieces])
        size = random.randint(0, 6)
        text = "".join(random.choice(kinds) + random.choice(["", " ", ", ", "->", *SEPARATORS]) for _ in range(size))
        text = random.choice(["", "'", '"', "`"]) + text + random.choice(["", ".", "'.", ".`", "..", ". "])
        assert parse_moves(text) == moves_slowly(text), text
        read += parse_moves(text) is not None
    assert read > 5000


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


# Steps and partial scores


@pytest.mark.parametrize(
    ("route", "prefixes"),
    [
        ("RRRR", ["R", "RR", "RRR"]),  # the last move is to E
        ("RRRRDD", ["R", "RR", "RRR"]),  # and what follows is not walked
        ("RRR", ["R", "RR", "RRR"]),  # E is not reached, so it may go on
        ("r, R r", ["r", "r, R", "r, R r"]),
        ("up, DOWN", ["up", "up, DOWN"]),
        ("RRXR", []),
        ("", []),
    ],
)
def test_steps_of_a_route_are_its_moves(route, prefixes):
    assert [route[:end] for end in TASK.steps(hand_made(), route)] == prefixes


def test_steps_end_with_the_budget():
    assert TASK.steps(hand_made(budget=2), "RLRLR") == [1, 2]


@pytest.mark.parametrize(
    ("prefix", "budget", "expected"),
    [
        ("", 20, (1, 1, 1, 1)),
        ("", 4, (1, 1, 0, 1)),  # four steps to E, over the gold
        ("", 3, (0, 0, 0, 0)),  # too far
        ("D", 6, (1, 1, 0, 1)),  # back, and over the gold to E: five steps
        ("D", 12, (1, 1, 1, 1)),  # over both diamonds to E: eleven
        ("DDRR", 20, (1, 1, 1, 0)),  # over both lava tiles
        ("RRRR", 20, (1, 1, 0, 1)),  # at E: the scores themselves
        ("RX", 20, None),
    ],
)
def test_partial_scores_by_hand(prefix, budget, expected):
    assert TASK.score_partial(hand_made(budget), prefix) == expected


@pytest.mark.parametrize("seed", range(20))
def test_a_partial_score_bounds_what_follows(seed):
    """Of every prefix of a random route, against all completions of up to six moves."""
    random = Random(seed)
    maze = MazeTask(size=7).problems("validation", count=seed + 1)[seed]
    task = MazeTask(size=7)
    route = demonstration(maze, random) if seed % 2 else "".join(random.choices("UDLR", k=maze.budget))
    for end in [0, *task.steps(maze, route)]:
        left = maze.budget - end
        if left > 6:
            continue
        bound = np.asarray(task.score_partial(maze, route[:end]))
        completions = ("".join(moves) for moves in itertools.product("UDLR", repeat=left))
        scores = np.asarray([task.score(maze, route[:end] + moves) for moves in completions])
        assert (scores <= bound + 1e-9).all()
        assert bound[0] == scores[:, 0].max()


@pytest.mark.parametrize("seed", range(20))
def test_partial_scores_fall_to_the_score(seed):
    task = MazeTask(size=7)
    maze = task.problems("validation", count=seed + 1)[seed]
    route = demonstration(maze, Random(seed))
    bounds = np.asarray([task.score_partial(maze, route[:end]) for end in [0, *task.steps(maze, route), len(route)]])
    assert (np.diff(bounds, axis=0) <= 1e-9).all()
    assert tuple(bounds[-1]) == task.score(maze, route)
    assert (oracle(maze).vectors <= bounds[0] + 1e-9).all()
