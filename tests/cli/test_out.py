"""Every command with --out checks that it can write there before it works: one line, exit code 2."""

import json
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("transformers")

from vpo.cli.main import main
from vpo.models import policy

MAZE = ["--task", "maze", "--set", "size=7"]
FOLDERS = {
    "eval": ["eval", "embedded", *MAZE, "--problems", "1", "--pool", "1"],
    "compare": ["compare", "pool.jsonl"],
    "search": ["search", "embedded", *MAZE, "--problems", "1", "--iterations", "1"],
    "train": ["train", "maze", "--set", "size=7", "--steps", "1"],
    "reproduce": ["reproduce", "maze", "--small"],
    "warmup": ["warmup", "embedded", *MAZE],
    "policy": ["policy", "build", "maze", "--steps", "1", "--mazes", "1", "--batch", "1"],
    "export": ["export", "verl", "maze", "--set", "size=7", "--problems", "1"],
}


@pytest.fixture(autouse=True)
def nothing_is_loaded(tmp_path, monkeypatch):
    """Work in a folder with a pool and completions; to load a model is work."""
    monkeypatch.chdir(tmp_path)
    row = {"problem": "p", "generation": 0, "position": 1, "scores": {"a": 0.5}}
    Path("pool.jsonl").write_text(json.dumps(row) + "\n")
    Path("completions.jsonl").write_text(json.dumps({"problem": "test-0", "completion": "R"}) + "\n")
    Path("file").write_text("")
    Path("nowhere").symlink_to(tmp_path / "missing")

    def load(*arguments, **further):
        raise AssertionError("a model was loaded")

    for module in ("evaluation.evaluate", "search.setup", "training.prepare", "training.reproduce", "models.warmup"):
        monkeypatch.setattr(f"vpo.{module}.load", load)
    monkeypatch.setattr(policy, "load", load)


@pytest.mark.parametrize("out", ["/proc/vpo/x", "/sys/vpo", "/dev/null/x", "file/x/y", "nowhere/x", "n" * 300])
@pytest.mark.parametrize("command", FOLDERS)
@pytest.mark.filterwarnings("ignore")
def test_a_folder_that_cannot_be_made_is_refused_before_any_work(capsys, command, out):
    assert main([*FOLDERS[command], "--out", out]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(f"vpo: error: {'' if command != 'export' or out[0] == '/' else Path.cwd()}")
    assert out in captured.err
    assert captured.err.endswith("choose another --out\n")
    assert "Errno" not in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    assert sorted(path.name for path in Path.cwd().iterdir()) == ["completions.jsonl", "file", "nowhere", "pool.jsonl"]


@pytest.mark.parametrize("command", ["eval", "compare", "search", "reproduce"])
@pytest.mark.filterwarnings("ignore")
def test_a_file_is_no_folder(capsys, command):
    assert main([*FOLDERS[command], "--out", "file"]) == 2
    assert "file is not a folder: choose another --out" in capsys.readouterr().err


def test_a_folder_where_a_file_goes_is_refused(capsys):
    Path("out/report.html").mkdir(parents=True)
    assert main([*FOLDERS["compare"], "--out", "out"]) == 2
    assert "out/report.html is a folder, and a file is to be written there" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("out", "reason"),
    [
        ("missing/pool.jsonl", "missing/pool.jsonl: no such folder: missing"),
        (".", ". is a folder, and a file is to be written there"),
        ("/proc/pool.jsonl", "/proc/pool.jsonl: /proc cannot be written to"),
        ("/dev/null/pool.jsonl", "/dev/null is not a folder"),
    ],
)
def test_a_pool_that_cannot_be_written_is_refused_before_scoring(capsys, monkeypatch, out, reason):
    monkeypatch.setattr("vpo.evaluation.score.score_completions", None)  # nothing is scored
    assert main(["score", "completions.jsonl", *MAZE, "--out", out]) == 2
    error = capsys.readouterr().err
    assert reason in error
    assert error.count("\n") == 1


@pytest.mark.filterwarnings("ignore")
def test_a_read_only_file_system_is_one_line(tmp_path, capsys):
    """Permission bits do not bind root; a read-only mount does."""
    folder = tmp_path / "mounted"
    folder.mkdir()
    try:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", folder], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this user cannot mount a read-only file system")
    try:
        for name, command in FOLDERS.items():
            for out in (
                folder / "new",
                *([folder] if name in ("eval", "compare", "search") else []),
            ):
                assert main([*command, "--out", str(out)]) == 2
                error = capsys.readouterr().err
                assert error == (
                    f"vpo: error: {out}: {folder} cannot be written to (Read-only file system): choose another --out\n"
                )
    finally:
        subprocess.run(["umount", folder], check=True)
