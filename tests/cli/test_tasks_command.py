"""`vpo tasks`: tasks listed, problems shown, gold answers validated."""

import json
from pathlib import Path

import pytest

from vpo.cli.main import main


def test_tasks_are_listed(capsys):
    assert main(["tasks"]) == 0
    output = capsys.readouterr().out
    for name in ("maze", "musique", "eureqa", "toolrl", "avoid_lava", "settings: size=9"):
        assert name in output
    assert main(["tasks", "--json"]) == 0
    assert [task["name"] for task in json.loads(capsys.readouterr().out)][:4] == ["maze", "musique", "eureqa", "toolrl"]


def test_a_problem_is_shown(tmp_path, capsys):
    picture = tmp_path / "maze.svg"
    arguments = ["tasks", "show", "maze", "--index", "2", "--answers", "4", "--target", "gold=1"]
    assert main([*arguments, "--picture", str(picture)]) == 0
    output = capsys.readouterr().out
    for text in ("maze 9-4242-2", "<answer_4>", "gold 100%", "gold answer", "1S", "completion 1"):
        assert text in output
    assert picture.exists()
    assert main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["id"] == "9-4242-2"


def test_gold_answers_are_validated(tmp_path, capsys):
    assert main(["tasks", "validate", "maze", "--set", "size=7"]) == 0
    assert "maze: 100 of 100 gold answers score as they should" in capsys.readouterr().out
    from tests.tasks.rows import musique_row

    path = tmp_path / "dev.jsonl"
    path.write_text(json.dumps({**musique_row(), "answer": "the", "answer_aliases": []}) + "\n")
    assert main(["tasks", "validate", "musique", "--data", str(path)]) == 1
    output = capsys.readouterr().out
    assert "musique: 0 of 1 gold answers score as they should" in output
    assert "as a single answer: hop_1 is 0, not 1" in output
    assert main(["tasks", "validate", "musique", "--data", str(path), "--json"]) == 1
    assert len(json.loads(capsys.readouterr().out)["flaws"]) == 1


def test_a_task_of_a_file_is_used_everywhere(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("vpo.tasks.registry._REGISTERED", {})
    file = str(Path(__file__).parents[2] / "examples" / "own_task.py")
    assert main(["tasks", "--task-file", file]) == 0
    assert "reach: choose numbers" in capsys.readouterr().out
    assert main(["tasks", "show", "reach", "--task-file", file, "--answers", "3"]) == 0
    capsys.readouterr()
    assert main(["tasks", "--task-file", file, "--json", "show", "reach"]) == 0
    assert json.loads(capsys.readouterr().out)["id"] == "test-0"
    assert main(["tasks", "validate", "--task-file", file]) == 0
    assert "reach: 50 of 50 gold answers score as they should" in capsys.readouterr().out
    completions = tmp_path / "completions.jsonl"
    completions.write_text(json.dumps({"problem": 0, "completion": "<answer>x</answer>"}) + "\n")
    assert (
        main(["score", str(completions), "--task", "reach", "--task-file", file, "--out", str(tmp_path / "pool.jsonl")])
        == 0
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tasks", "show", "maez"], "task 'maez' is not known: did you mean 'maze'?"),
        (["tasks", "show", "maze", "--index", "100"], "index must lie in 0..99, the problems of the split, not 100"),
        (["tasks", "show", "maze", "--answers", "0"], "answers must be 1 or more, not 0"),
        (["tasks", "show", "maze", "--set", "size=4"], "size must be odd and 7 or more, not 4"),
        (["tasks", "show", "maze", "--split", "tst"], "no split 'tst' in maze"),
        (["tasks", "show", "maze", "--data", "x"], "task maze has no setting 'data'"),
        (["tasks", "show", "musique"], "task musique needs data"),
        (["tasks", "show", "maze", "--target", "silver=1"], "target names 'silver'"),
        (["tasks", "show", "maze", "--picture", "x.gif"], "x.gif: a picture must end in .png or .svg"),
        (["tasks", "show", "toolrl", "--data", "hub:x"], "hub:x"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(capsys, monkeypatch, arguments, message):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("datasets.load_dataset", fail)
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("vpo: error: ")
    assert captured.err.count("\n") == 1
    assert message in captured.err


def fail(repository, split):
    raise ConnectionError("no network")
