import json

import pytest

from vpo import read_pool
from vpo.cli.main import main
from vpo.tasks.answers import write
from vpo.tasks.maze import MazeTask
from vpo.util.row_files import read_rows


@pytest.fixture
def completions(tmp_path):
    task = MazeTask(size=7)
    rows = []
    for index, maze in enumerate(task.problems(count=3)):
        gold = task.gold(maze)
        rows.append({"problem": maze.id, "completion": write([gold, gold, "R"]), "tokens": 50})
        rows.append({"problem": index, "completion": f"<answer_2>{gold}</answer_2> and <answer_3>R", "tokens": 20})
    path = tmp_path / "completions.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


ARGUMENTS = ["--answers", "3", "--set", "size=7"]


def test_completions_become_a_pool(tmp_path, completions, capsys):
    pool_path = str(tmp_path / "pool.parquet")
    assert main(["score", str(completions), "--task", "maze", "--out", pool_path, *ARGUMENTS]) == 0
    output = capsys.readouterr().out
    assert (
        "6 completions, 18 answers: 83.3% present, 83.3% readable, 16.7% repeat an earlier one of their set" in output
    )
    assert "; 66.7% are in the form that was asked for\n" in output  # the last of each second one has no closing tag
    assert f"next: vpo measure {pool_path}" in output
    pool = read_pool(pool_path)
    assert len(pool.problems) == 3
    assert pool.set_size == 3
    assert pool.objectives == ("completion", "gold", "diamond", "avoid_lava")
    for maze in MazeTask(size=7).problems(count=3):
        problem = pool.problems[maze.id]
        vector = list(MazeTask().expected(maze))
        zeros = [0, 0, 0, 0]
        assert problem.scores_nD.tolist() == [vector, vector, zeros, zeros, vector, zeros]
        assert problem.tokens_N.tolist() == [50, 20]
        assert problem.answers[3:] == (None, MazeTask().gold(maze), "R")
    assert main(["measure", pool_path]) == 0
    assert main(["diagnose", pool_path]) == 0


@pytest.mark.parametrize("name", ["pool.jsonl", "pool.parquet"])
def test_the_text_of_a_completion_is_kept_once(tmp_path, completions, name):
    assert main(["score", str(completions), "--task", "maze", "--out", str(tmp_path / name), *ARGUMENTS]) == 0
    rows = [row for _, row in read_rows(tmp_path / name)]
    texts = [json.loads(line)["completion"] for line in completions.read_text().splitlines()]
    assert [row["completion"] for row in rows if row["position"] == 1] == texts
    assert {row.get("completion") for row in rows if row["position"] > 1} == {None}


def test_a_completion_without_any_answer_is_kept_too(tmp_path):
    path = tmp_path / "mine.jsonl"
    path.write_text(json.dumps({"problem": 0, "completion": "I will not \ud800 answer."}) + "\n")
    assert main(["score", str(path), "--task", "maze", "--answers", "2"]) == 0
    first, second = (row for _, row in read_rows(tmp_path / "mine.pool.jsonl"))
    assert (first["answer"], first["completion"]) == (None, "I will not \\ud800 answer.")
    assert "completion" not in second


def unread(tmp_path, capsys, texts):
    """The warnings about completions of three problems in turn."""
    path = tmp_path / "mine.jsonl"
    rows = [{"problem": index // 2, "completion": text} for index, text in enumerate(texts)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["score", str(path), "--task", "maze", "--set", "size=7"]) == 0
    return capsys.readouterr().err


def test_where_most_answers_cannot_be_read_three_completions_are_shown(tmp_path, capsys):
    good, bad = write(["U"]), ["bad\x1b 0", "bad 1", "bad 2", "bad 3", "bad 4\n" + "x" * 9999]
    first, *samples = unread(tmp_path, capsys, [*bad[:4], good, bad[4], good]).splitlines()
    assert first.startswith("vpo: warning: only 29% of the answers could be read, and all others count as wrong: check")
    ids = [maze.id for maze in MazeTask(size=7).problems(count=3)]
    assert [sample.split(": ")[0].strip() for sample in samples] == ids  # of different problems
    assert samples[0].endswith(r"bad\x1b 0")
    assert samples[1].endswith("bad 2")
    assert len(samples[2]) < 500
    assert all(sample.isprintable() for sample in samples)
    assert len(unread(tmp_path, capsys, ["bad 0", "bad 1"]).splitlines()) == 3
    assert unread(tmp_path, capsys, ["bad", good, good, "bad"]) == ""


def test_json(tmp_path, completions, capsys):
    assert (
        main(["score", str(completions), "--task", "maze", "--out", str(tmp_path / "p.jsonl"), *ARGUMENTS, "--json"])
        == 0
    )
    data = json.loads(capsys.readouterr().out)
    assert data["completions"] == 6
    assert data["given"] == pytest.approx(15 / 18)
    assert data["in_form"] == pytest.approx(12 / 18)
    assert data["mean"]["completion"] == pytest.approx(0.5)
    solvable = sum(MazeTask().solved(MazeTask().expected(maze)) for maze in MazeTask(size=7).problems(count=3))
    assert data["solved"] == pytest.approx(3 * solvable / 18)
    assert data["target"]["gold"] == 0.25


def test_the_pool_lies_beside_the_completions_and_unreadable_answers_are_counted(tmp_path, capsys):
    path = tmp_path / "mine.jsonl"
    rows = [{"problem": 0, "completion": write(["foo", "bar", "\ud800"]), "generation": "first"}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["score", str(path), "--task", "maze", "--answers", "3"]) == 0
    output = capsys.readouterr().out
    assert "100.0% present, 0.0% readable, 0.0% repeat" in output
    written = [json.loads(line) for line in (tmp_path / "mine.pool.jsonl").read_text().splitlines()]
    assert [row["answer"] for row in written] == ["foo", "bar", "\\ud800"]
    assert {row["generation"] for row in written} == {"first"}


def test_a_pool_carries_the_target_of_the_task(tmp_path, capsys):
    from tests.tasks.rows import musique_row

    (tmp_path / "dev.jsonl").write_text(json.dumps(musique_row()) + "\n")
    path = tmp_path / "completions.jsonl"
    path.write_text(json.dumps({"index": 0, "completion": "<answer>Lake Vostok</answer>"}) + "\n")
    weights = {**{f"hop_{hop}": pytest.approx(1 / 7) for hop in range(1, 5)}, "answer_f1": pytest.approx(3 / 7)}
    for name in ("pool.jsonl", "pool.parquet"):
        pool, out = str(tmp_path / name), str(tmp_path / "out")
        arguments = ["--task", "musique", "--data", str(tmp_path / "dev.jsonl"), "--out", pool]
        assert main(["score", str(path), *arguments]) == 0
        assert read_pool(pool).target == weights
        capsys.readouterr()
        for command in (["measure", pool], ["diagnose", pool], ["compare", pool, "--out", out]):
            assert main([*command, "--json"]) == 0
            data = json.loads(capsys.readouterr().out)
            assert data["target"] == weights
            assert not [note for note in data["notes"] if "states no target" in note]
            assert main(command) == 0
            assert "hop_4 0.143, answer_f1 0.429" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"problem": 0}, "completions.jsonl:1: completion must be text, not NoneType"),
        (
            {"problem": 100, "completion": "x"},
            "completions.jsonl:1: problem must be an id of the split, such as '9-4242-0', not 100; for an index",
        ),
        ({"problem": "x", "completion": "x"}, "problem must be an id of the split, such as '9-4242-0', not 'x'"),
        ({"problem": -1, "completion": "x"}, "problem must be an id of the split, such as '9-4242-0', not -1"),
        ({"problem": 0.5, "completion": "x"}, "problem must be an id of the split, such as '9-4242-0', not 0.5"),
        ({"index": 100, "completion": "x"}, "index must be an integer in 0..99 of the split, not 100"),
        ({"index": "0", "completion": "x"}, "index must be an integer in 0..99 of the split, not '0'"),
        ({"index": -1, "completion": "x"}, "index must be an integer in 0..99 of the split, not -1"),
        ({"completion": "x"}, "completions.jsonl:1: the row has no problem, an id such as '9-4242-0', and no index"),
        (
            {"problem": 0, "completion": "x", "answers": 0},
            "completions.jsonl:1: answers must be an integer in 1..10000, not 0",
        ),
        ({"problem": [0], "completion": "x"}, "completions.jsonl:1: problem must be an id"),
        ({"problem": True, "completion": "x"}, "problem must be an id"),
        ({"problem": 0, "completion": "x", "answers": 10**9}, "answers must be an integer in 1..10000"),
        ({"problem": 0, "completion": "x", "answers": True}, "answers must be an integer"),
        ({"problem": 0, "completion": "x", "tokens": "many"}, "completions.jsonl:1: tokens must be an integer"),
        ({"problem": 0, "completion": "x", "generation": [1]}, "completions.jsonl:1: generation must be text"),
        ([1], "a row must be an object with problem and completion"),
        (None, "the file must hold 1 or more completions, and has none"),
    ],
)
def test_bad_rows_are_named_and_nothing_is_written(tmp_path, capsys, row, message):
    path = tmp_path / "completions.jsonl"
    path.write_text("" if row is None else json.dumps(row) + "\n")
    assert main(["score", str(path), "--task", "maze", "--out", str(tmp_path / "pool.jsonl")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "pool.jsonl").exists()


def test_completions_that_disagree_are_named(tmp_path, capsys):
    path = tmp_path / "completions.jsonl"
    rows = [{"problem": 0, "completion": "x", "generation": 1}, {"problem": 0, "completion": "x"}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["score", str(path), "--task", "maze"]) == 2
    assert "generation must be in every row or in none: line 1 has it, line 2 does not" in capsys.readouterr().err
    assert main(["score", str(path), "--task", "maze", "--out", str(path)]) == 2
    assert "out must not be the file of completions" in capsys.readouterr().err
