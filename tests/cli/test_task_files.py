"""A task is named by TASK or --task, and its Python file by --task-file, on every command."""

from pathlib import Path

import pytest

from vpo.cli.main import main

OWN = str(Path(__file__).parents[2] / "examples" / "own_task.py")


@pytest.mark.parametrize("arguments", [["--task-file", OWN], ["reach", "--task-file", OWN]])
def test_a_file_stands_for_the_name_of_its_task(arguments, capsys):
    assert main(["tasks", "validate", *arguments]) == 0
    assert "reach: 50 of 50 gold answers score as they should" in capsys.readouterr().out


@pytest.mark.parametrize(
    "command",
    [
        ["train", OWN],
        ["reproduce", OWN],
        ["export", "verl", OWN, "--out", "x"],
        ["tasks", "show", OWN],
        ["tasks", "validate", OWN],
        ["score", "completions.jsonl", "--task", OWN],
        ["eval", "model", "--task", OWN],
        ["search", "model", "--task", OWN],
        ["serve", "model", "--task", OWN],
        ["warmup", "model", "--task", OWN, "--out", "x"],
    ],
)
def test_a_file_is_no_name(command, capsys):
    assert main(command) == 2
    assert f"task {OWN!r} is a file, not a name: give --task-file {OWN}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--task-file", "maze"], "task_file must be a .py file, not 'maze'"),
        (["maze", "--task-file", OWN], f"task_file {OWN} defines task 'reach', not 'maze'"),
        ([], "task must be given: a name from `vpo tasks`, or --task-file FILE.py"),
    ],
)
def test_a_task_is_named_in_one_way(arguments, message, capsys):
    assert main(["tasks", "show", *arguments]) == 2
    assert message in capsys.readouterr().err
