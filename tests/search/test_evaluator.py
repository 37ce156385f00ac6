"""`vpo search --evaluator`: examples of OpenEvolve as they are and our own, hostile programs, kills, and goals."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("openevolve")

from tests.endpoint import endpoint
from tests.tasks.evaluators import PROGRAM, REWRITES, change, fenced, write_project
from vpo.cli.main import main
from vpo.sandbox.wall import wall_problem
from vpo.search.candidates import Candidate, Move, SearchProblem
from vpo.search.goals import goals_of
from vpo.search.log import ARCHIVE, CANDIDATES, GENERATIONS
from vpo.search.operators import request_for_move
from vpo.search.result import read_result
from vpo.tasks import get
from vpo.tasks.answers import write

pytestmark = [
    pytest.mark.skipif(bool(wall_problem()), reason="the wall does not work on this machine (vpo doctor)"),
    pytest.mark.filterwarnings("ignore"),  # those of other packages
]
OURS = Path(__file__).parents[2] / "examples"
OPENEVOLVE = Path(__file__).parents[3] / "shared" / "data" / "evolve" / "openevolve_examples"


def command(evaluator, address, out, *options):
    arguments = ["search", "m", "--evaluator", str(evaluator), "--endpoint", address, "--answers", "3"]
    return [*arguments, "--no-baseline", "--out", str(out), *options]


def search(evaluator, answer, out, *options):
    """Search with a scripted endpoint; the rows of candidates and generations, the archive, and the requests."""
    with endpoint(answer) as (address, seen):
        assert main(command(evaluator, address, out, *options)) == 0
    folder = Path(out) / "m-evolve"
    (archive,) = json.loads((folder / ARCHIVE).read_text()).values()
    return lines(folder, CANDIDATES), lines(folder, GENERATIONS), archive, seen


def lines(folder, name):
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def user_message(request):
    return request["messages"][-1]["content"]


# Examples


@pytest.mark.parametrize("name", ["circle_packing", "function_minimization", "k_module_problem", "signal_processing"])
def test_an_example_of_openevolve_runs_as_it_is(name, tmp_path):
    if not OPENEVOLVE.is_dir():
        pytest.skip("shared/data/evolve/openevolve_examples is not here")
    code = (OPENEVOLVE / name / "initial_program.py").read_text()

    def answer(request, number):
        assert request["messages"][0]["content"].startswith("You are")
        assert "Give 3 different answers" in user_message(request)
        notes = [f"# version {number}.{k}" for k in range(3)]
        if "SEARCH" in user_message(request):
            return write([change("# EVOLVE-BLOCK-END", f"{note}\n# EVOLVE-BLOCK-END") for note in notes])
        return write([f"```python\n{code}\n{note}\n```" for note in notes])

    candidates, generations, archive, seen = search(
        OPENEVOLVE / name, answer, tmp_path / "out", "--iterations", "2", "--seed", "1"
    )
    assert len(seen) == 2
    assert [row["operator"] for row in candidates[:1]] == ["start"]
    assert candidates[0]["answer"] == code
    assert [row["failure"] for row in candidates] == [None] * 7
    assert all("# version" in row["answer"] for row in candidates[1:])
    assert not any(row["solved"] for row in candidates)
    assert archive["best"]["value"] == max(row["value"] for row in candidates)
    assert read_result(tmp_path / "out" / "m-evolve").spent["answers"].tolist() == [6]
    assert sum(row["tokens"] for row in generations) == 14


DENSER = """    circles = [((x + 0.5) / 5, (y + 0.5) / 5, 0.1) for x in range(5) for y in range(5)]
    return [*circles, (0.2, 0.2, 0.1 * (2 ** 0.5 - 1))]"""


def test_circle_packing_ships(tmp_path):
    start = (OURS / "circle_packing" / "initial_program.py").read_text()
    body = start.partition('all of one size."""\n')[2].partition("\n\n\n# EVOLVE")[0]

    def answer(request, number):
        overlapping = DENSER.replace("0.1 * (", "0.2 * (")
        return write([change(body, DENSER), change(body, overlapping), change(body, "    return [(0.5, 0.5, 1)]")])

    candidates, _, archive, _ = search(OURS / "circle_packing", answer, tmp_path / "out", "--iterations", "1")
    values = [row["value"] for row in candidates]
    assert values[:3] == pytest.approx([26 / 12 / 2.63586, (2.5 + 0.1 * (2**0.5 - 1)) / 2.63586, 0])
    assert candidates[2]["scores"][2] < 1  # validity
    assert "and 25 overlap" in candidates[2]["feedback"]
    assert "pack() must return 26 circles" in candidates[3]["failure"]
    assert archive["best"]["number"] == 1
    assert [row["number"] for row in archive["archive"]] == [0, 1]  # even, or large


DESCENT = """```python
from scipy.optimize import minimize

def minimise(function, low, high):
    grid = [(low + 0.2 * i, low + 0.2 * j) for i in range(51) for j in range(51)]
    best = min(grid, key=lambda point: function(*point))
    return minimize(lambda point: function(*point), best, method="Nelder-Mead", options={"xatol": 1e-6}).x
```"""


def test_function_minimization_ships(tmp_path):
    guess = "```python\ndef minimise(function, low, high):\n    function(0.0, 0.0)\n    return 0.0, 0.0\n```"
    silent = guess.replace("    function(0.0, 0.0)\n", "")
    greedy = "```python\ndef minimise(function, low, high):\n    while True:\n        function(low, high)\n```"
    candidates, _, archive, _ = search(
        *(OURS / "function_minimization", lambda *_: write([DESCENT, guess, greedy, silent]), tmp_path / "out"),
        *("--iterations", "1", "--goal", "value>=0.999", "--answers", "4", "--per-iteration", "4"),
    )
    assert [row["solved"] for row in candidates] == [False, True, False, False, False]
    assert candidates[1]["value"] == 1
    assert candidates[3]["failure"].startswith("evaluate raised RuntimeError: more than 100,000 calls")
    assert candidates[4]["failure"] == "evaluate raised ValueError: minimise() must call the function"
    assert {row["number"] for row in archive["archive"]} >= {1, 2}  # precise, or thrifty


# What a search makes of metrics


def test_values_may_be_negative_and_above_1(tmp_path):
    project = write_project(tmp_path / "p", program=PROGRAM.replace("x = 0.5", "x = -7"))
    numbers = iter(range(-6, 99))

    def answer(request, number):
        return write([fenced(f"return {{'x': {next(numbers)}, 'y': 8}}") for _ in range(3)])

    candidates, _, archive, seen = search(project, answer, tmp_path / "out", "--iterations", "3", "--seed", "2")
    assert [row["scores"][0] for row in candidates] == list(range(-7, 3))
    assert [row["value"] for row in candidates] == [0.5 * (x + 8) for x in range(-7, 3)]
    assert archive["best"]["number"] == 9
    assert (tmp_path / "out" / "report.html").is_file()
    assert "Its metrics: x -7, y 8." in user_message(seen[0])


@pytest.mark.parametrize(("goal", "solved"), [("x>=2", True), ("x>=2.5", False), ("x<=-7", False)])
def test_only_a_goal_is_ever_solved(goal, solved, tmp_path):
    project = write_project(tmp_path / "p")
    answers = write([fenced(f"return {{'x': {x}, 'y': 1}}") for x in (-6, 1, 2)])
    candidates, *_ = search(project, lambda *_: answers, tmp_path / "out", "--iterations", "1", "--goal", goal)
    assert any(row["solved"] for row in candidates) == solved
    near = [row["value"] for row in candidates[1:]]
    assert near == sorted(near, reverse=goal == "x<=-7")
    assert all(0 < value <= 1 for value in near)


def test_a_weighting_without_scales_is_never_solved(tmp_path):
    task = get("evaluator", evaluator=write_project(tmp_path / "p"))
    (problem,) = task.problems()
    (goal,) = goals_of(task, ["x=1"])
    assert goal.solved(problem, "", (99.0, 0.0), 99.0) is False
    scaled = get("evaluator", evaluator=write_project(tmp_path / "p"), scale="x=0:9,y=0:9")
    assert goals_of(scaled, ["x=1"])[0].solved(problem, "", (1.0, 0.0), 1.0) is True


def test_hostile_programs_lose_nothing(tmp_path):
    project = write_project(tmp_path / "p")
    bodies = [
        *("return {'x': float('nan'), 'y': 1}", "return {'x': 1e300, 'y': 1}", "return {'x': 1}", "return 3"),
        *("while True: pass", "import os; os._exit(0)", "import os\n    while True: os.fork()", "raise KeyError(1)"),
        "return {'x': 2, 'y': 2}",
    ]

    def answer(request, number):
        return write([fenced(body) for body in bodies[3 * number : 3 * number + 3]])

    options = ("--iterations", "1", "--per-iteration", "9", "--limit", "20")
    candidates, _, archive, _ = search(project, answer, tmp_path / "out", *options)
    reasons = {row["answer"].partition("():\n    ")[2]: row["failure"] for row in candidates[1:]}
    assert [bool(reasons[body]) for body in bodies] == [True] * 8 + [False]
    assert reasons[bodies[0]] == "x is nan, not a number of a usable size"
    assert reasons[bodies[4]] == "evaluate: not done within 2 s"
    assert reasons[bodies[6]] == "evaluate: more than 128 processes"
    assert all(row["scores"] is None for row in candidates[1:] if row["failure"])
    assert archive["best"]["scores"] == [2.0, 2.0]


def test_answers_that_give_no_program_say_why(tmp_path):
    project = write_project(tmp_path / "p", config={**REWRITES, "diff_based_evolution": True})
    texts = ["no change", change("nowhere", "x"), change("    x = 0.5", "    x = 2")]
    candidates, *_ = search(project, lambda *_: write(texts), tmp_path / "out", "--iterations", "1")
    assert [row["failure"] for row in candidates[1:]] == [
        "the answer has no SEARCH/REPLACE block",
        "no SEARCH block matches the parent program",
        None,
    ]


def test_killed_and_resumed_it_ends_the_same(tmp_path):
    """Answers follow from the seed of a request, and evaluations from programs."""
    evaluator = write_project(
        tmp_path / "p", program=PROGRAM.replace("x = 0.5", "import time; time.sleep(0.1); x = 0.5")
    )

    def answer(request, number):
        seed = request["seed"]
        return write([fenced(f"return {{'x': {(seed + k) % 97}, 'y': {(seed + k) % 89}}}") for k in range(3)])

    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    with endpoint(answer) as (address, seen):
        program = [
            sys.executable,
            "-W",
            "ignore",
            "-m",
            "vpo",
            *command(evaluator, address, "killed", "--iterations", "12"),
        ]
        process = subprocess.Popen(program, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL)
        log = tmp_path / "killed" / "m-evolve" / CANDIDATES
        deadline = time.monotonic() + 120
        while not log.is_file() or log.read_text().count("\n") < 8:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not (log.parent / "ended.json").exists()
        subprocess.run(program, cwd=tmp_path, env=environment, check=True, capture_output=True)
        assert len(seen) in (12, 13)  # one may have been under way
        program[program.index("killed")] = "whole"
        subprocess.run(program, cwd=tmp_path, env=environment, check=True, capture_output=True)
    for name in (GENERATIONS, CANDIDATES):
        one, other = (lines(tmp_path / out / "m-evolve", name) for out in ("killed", "whole"))
        assert one == other


@pytest.mark.parametrize("diffs", [False, True])
def test_openevolve_searches_from_the_start_program(diffs, tmp_path):
    program = PROGRAM.replace('"y": 1 - x}', '"combined_score": 2 * x, "hint": "larger"}')
    project = write_project(tmp_path / "p", program=program, config={**REWRITES, "diff_based_evolution": diffs})
    broken = program.replace("x = 0.5", "x = 1 / 0")

    def answer(request, number):
        text = user_message(request)
        assert request["messages"][0]["content"] == "Improve."
        assert "larger" in text  # what its evaluator says of the parent
        current = text.partition("# Current Program\n")[2].partition("```python\n")[2].partition("```")[0]
        line = next(line for line in current.splitlines() if line.startswith("    x = "))
        better = f"    x = {number + 2}"
        if diffs:
            return write([change(line, better), change("nowhere", "x"), change(line, "    x = 1 / 0")])
        return write([f"```python\n{current.replace(line, better)}```", "", f"```python\n{broken}```"])

    with endpoint(answer) as (address, seen):
        options = ("--strategy", "openevolve", "--iterations", "2")
        assert main(command(project, address, tmp_path / "out", *options)) == 0
    candidates = lines(tmp_path / "out" / "m-openevolve", CANDIDATES)
    assert len(seen) == 2
    assert [row["scores"] for row in candidates] == [[4.0, 2.0], None, None, [6.0, 3.0], None, None]
    assert [row["value"] for row in candidates] == [4, 0, 0, 6, 0, 0]
    assert "ZeroDivisionError" in candidates[2]["failure"]
    assert candidates[0]["answer"] == program.replace("x = 0.5", "x = 2").strip("\n" if not diffs else "")
    assert main(command(project, address, tmp_path / "other", *options, "--target", "x=1")) == 2


# Prompts


@pytest.mark.parametrize("diffs", [False, True])
def test_prompts_show_parents_and_say_what_changes_apply_to(diffs, tmp_path):
    project = write_project(tmp_path / "p", config={**REWRITES, "diff_based_evolution": diffs})
    task = get("evaluator", evaluator=project)
    problem = SearchProblem(task.problems()[0], goals_of(task)[0])
    one, other = (
        Candidate(n, 0, "fresh", None, 1, f"X = {n}\n", (n, 1 - n), 0.5, False, feedback=f"Its metrics: x {n}.")
        for n in (0, 1)
    )
    repaired = request_for_move(task, problem, Move("repair", one), 3, None).messages[-1]["content"]
    crossed = request_for_move(task, problem, Move("cross", one, second=other), 3, None).messages[-1]["content"]
    assert "An earlier answer:\n\n```python\nX = 0\n```\n\nIts metrics: x 0." in repaired
    assert "Earlier answer B:\n\n```python\nX = 1\n```" in crossed
    assert ("SEARCH matches lines of this earlier answer, not of the first program." in repaired) == diffs
    assert ("SEARCH matches lines of earlier answer A" in crossed) == diffs
    assert "Do so in 3 different ways." in repaired


# The command


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--task", "maze"], "--evaluator is an option of the task evaluator, not of maze"),
        (["--set", "scale=z=0:1"], "scale names 'z'"),
        (["--goal", "z>=1"], "goal names 'z', and the objectives are x, y"),
        (["--start", "none.py"], "no such file"),
    ],
)
def test_bad_input_is_one_line(options, message, tmp_path, capsys):
    project = write_project(tmp_path / "p")
    assert main(command(project, "http://127.0.0.1:9/v1", tmp_path / "out", *options)) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_a_file_and_a_start_need_no_folder_of_openevolve(tmp_path):
    write_project(tmp_path / "p", config=None)
    (tmp_path / "p" / "evaluator.py").rename(tmp_path / "p" / "mine.py")
    (tmp_path / "start.py").write_text(PROGRAM)
    texts = write([change("    x = 0.5", f"    x = {k}") for k in (1, 2, 3)])
    candidates, *_ = search(
        *(tmp_path / "p" / "mine.py", lambda *_: texts, tmp_path / "out"),
        *("--start", str(tmp_path / "start.py"), "--iterations", "1"),
    )
    assert [row["scores"] for row in candidates] == [[x, 1 - x] for x in (0.5, 1, 2, 3)]
