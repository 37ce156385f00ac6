"""An evaluation that was interrupted, killed or had no disk space goes on, and ends with the same pool bit for bit."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("transformers")

from vpo.cli.main import main
from vpo.evaluation import evaluate as evaluation
from vpo.evaluation.eval_log import PARTIAL, EvalLog
from vpo.models import generate
from vpo.tasks.maze import MazeTask
from vpo.util import files

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

# 70 completions: 7 sampled batches, since those of a problem stay together, and 2 scored ones.
SETTINGS = ["--task", "maze", "--set", "size=7", "--problems", "7", "--answers", "3", "--pool", "30", "--batch", "16"]
COMMAND = ["eval", "embedded", *SETTINGS, "--max-tokens", "8", "--temperature", "1"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The pool of an evaluation that nothing interrupted."""
    folder = tmp_path_factory.mktemp("whole") / "whole"
    assert main([*COMMAND, "--out", str(folder)]) == 0
    assert not (folder / PARTIAL).exists()
    return (folder / "pool.parquet").read_bytes()


def interrupted(folder, monkeypatch, *, sampled=99, scored=99):
    """Press Ctrl-C after some batches."""

    def counted(function, most):
        calls = iter(range(most))

        def call(*arguments, **further):
            if next(calls, None) is None:
                raise KeyboardInterrupt
            return function(*arguments, **further)

        return call

    with monkeypatch.context() as patched:
        patched.setattr(generate, "_sample", counted(generate._sample, sampled))
        patched.setattr(MazeTask, "score_sets", counted(MazeTask.score_sets, scored))
        assert main([*COMMAND, "--out", str(folder)]) == 130


@pytest.mark.parametrize("at", [{"sampled": 0}, {"sampled": 2}, {"scored": 0}, {"scored": 1}])
def test_an_interrupted_evaluation_continues(tmp_path, capsys, monkeypatch, whole, at):
    folder = tmp_path / "out"
    interrupted(folder, monkeypatch, **at)
    assert "vpo: repeat the command to continue" in capsys.readouterr().err
    log = EvalLog(folder)
    assert (len(log.completions()), len(log.scored())) == (at.get("sampled", 7), at.get("scored", 0))
    calls = []
    sample = generate._sample
    monkeypatch.setattr(generate, "_sample", lambda *args, **further: calls.append(1) or sample(*args, **further))
    assert main([*COMMAND, "--out", str(folder)]) == 0
    assert len(calls) == 7 - at.get("sampled", 7)  # nothing is sampled twice
    assert (folder / "pool.parquet").read_bytes() == whole
    assert not (folder / PARTIAL).exists()


def test_logs_that_are_cut_or_damaged_anywhere_lead_to_the_same_pool(tmp_path, monkeypatch, whole):
    interrupted(tmp_path / "out", monkeypatch, scored=1)
    random_bytes = random.Random(0)
    for number in range(6):
        folder = tmp_path / str(number)
        shutil.copytree(tmp_path / "out", folder)
        for name in ("completions.jsonl", "scored.jsonl"):
            data = bytearray((folder / PARTIAL / name).read_bytes())
            place = random_bytes.randrange(len(data))
            (folder / PARTIAL / name).write_bytes(data[:place] + (b"\0\xff\n{}" if number % 2 else b""))
        assert main([*COMMAND, "--out", str(folder)]) == 0
        assert (folder / "pool.parquet").read_bytes() == whole


def test_a_full_disk_loses_no_completed_batch(tmp_path, capsys, monkeypatch, whole):
    folder = tmp_path / "out"
    written = []

    def full(path, rows, **further):
        written.append(path)
        if len(written) == 4:
            with open(path, "ab") as file:
                file.write(b'[[3, "cut')
            raise OSError(28, "No space left on device")
        files.append_rows(path, rows, **further)

    with monkeypatch.context() as patched:
        patched.setattr("vpo.evaluation.eval_log.append_rows", full)
        assert main([*COMMAND, "--out", str(folder)]) == 2
    error = capsys.readouterr().err
    assert f"{folder}: the disk is full: free some space, then repeat the command to continue" in error
    assert len(EvalLog(folder).completions()) == 3
    assert main([*COMMAND, "--out", str(folder)]) == 0
    assert (folder / "pool.parquet").read_bytes() == whole


def test_an_evaluation_with_other_settings_is_refused_by_name(tmp_path, capsys, monkeypatch, whole):
    folder = tmp_path / "out"
    interrupted(folder, monkeypatch, sampled=2)
    changes = [("seed", "--seed", "1"), ("temperature", "--temperature", "0.7005"), ("pool", "--pool", "33")]
    changes += [("batch", "--batch", "8"), ("target", "--target", "gold=1"), ("problems", "--problems", "6")]
    changes += [
        ("top_p", "--top-p", "0.9"),
        ("split", "--split", "train"),
        ("answers, max_new_tokens", "--answers", "1"),
    ]
    changes += [("max_new_tokens", "--max-tokens", "9"), ("thinking", "--thinking")]
    capsys.readouterr()
    for name, *option in changes:
        assert main([*COMMAND, *option, "--out", str(folder)]) == 2
        error = capsys.readouterr().err
        assert f"holds an unfinished evaluation with other settings (it differs in {name}): finish it with" in error
        assert error.count("\n") == 1
    assert main(["compare", str(folder), "--out", str(tmp_path / "comparison")]) == 2
    assert "the evaluation is not finished: continue it with" in capsys.readouterr().err
    assert main([*COMMAND, "--out", str(folder)]) == 0
    assert (folder / "pool.parquet").read_bytes() == whole


def test_a_model_that_changed_is_refused_and_overwrite_starts_anew(tmp_path, capsys, monkeypatch, whole):
    folder = tmp_path / "out"
    interrupted(folder, monkeypatch, sampled=2)

    def changed(path, **further):
        policy = load(path, **further)
        policy.model.lm_head.weight.data[3, 5] += 1
        return policy

    load = evaluation.load
    monkeypatch.setattr(evaluation, "load", changed)
    assert main([*COMMAND, "--out", str(folder)]) == 2
    assert "(it differs in weights)" in capsys.readouterr().err
    assert main([*COMMAND, "--overwrite", "--out", str(folder)]) == 0
    assert (folder / "pool.parquet").read_bytes() != whole
    monkeypatch.setattr(evaluation, "load", load)
    assert main([*COMMAND, "--out", str(folder)]) == 2
    assert "has an evaluation" in capsys.readouterr().err
    assert main([*COMMAND, "--overwrite", "--out", str(folder)]) == 0
    assert (folder / "pool.parquet").read_bytes() == whole


def test_the_old_evaluation_stays_until_the_new_one_is_sampled(tmp_path, monkeypatch):
    folder = tmp_path / "out"
    assert main([*COMMAND, "--seed", "1", "--out", str(folder)]) == 0
    before = (folder / "pool.parquet").read_bytes(), (folder / "eval.json").read_bytes()
    command = [*COMMAND, "--overwrite"]
    monkeypatch.setattr(f"{__name__}.COMMAND", command)
    interrupted(folder, monkeypatch, sampled=2)
    assert ((folder / "pool.parquet").read_bytes(), (folder / "eval.json").read_bytes()) == before
    assert len(EvalLog(folder).completions()) == 2
    assert main([*command, "--out", str(folder)]) == 0
    assert (folder / "pool.parquet").read_bytes() != before[0]


TASK = """
from dataclasses import dataclass
from vpo.tasks import Objective, Task

@dataclass(frozen=True)
class One:
    id: str

class Fickle(Task):
    name, summary, weights = "fickle", "Two answers.", (1.0,)
    objectives = (Objective("long", "its length"),)

    def problems(self, split="test", *, count=None):
        return [One(str(number)) for number in range(2)][:count]

    def question(self, problem):
        return [{"role": "user", "content": "0"}]

    def score(self, problem, answer):
        return SCORE

    def score_all(self, problems, answers):
        return [SCORE for _ in answers]
"""


def test_unknown_scores_keep_the_completions_and_a_mended_scorer_scores_them(tmp_path, capsys, monkeypatch):
    file, folder = tmp_path / "fickle.py", tmp_path / "out"
    model = Path(generate.__file__).parent / "embedded" / "maze-7"
    command = ["eval", str(model), "--task-file", str(file), "--pool", "2", "--max-tokens", "4", "--out", str(folder)]
    file.write_text(TASK.replace("SCORE", "None"))
    assert main(command) == 2
    assert "the scores of all 4 completions are unknown" in capsys.readouterr().err
    file.write_text(TASK.replace("SCORE", "(0.5,)"))
    monkeypatch.setattr(generate, "_sample", None)  # nothing is sampled again
    with pytest.warns(UserWarning, match="all completions are scored again, since the scoring has changed: task_file"):
        assert main(command) == 0


@pytest.mark.slow
def test_an_evaluation_that_is_killed_continues(tmp_path, whole):
    """kill -9, as soon as something new is in the log: during sampling, and again."""
    folder = tmp_path / "out"
    command = [sys.executable, "-m", "vpo", *COMMAND, "--out", str(folder)]
    log = folder / PARTIAL / "completions.jsonl"
    size = 0
    for _ in range(2):
        process = subprocess.Popen(command, env=os.environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < deadline:
            if log.is_file() and log.stat().st_size > size:
                process.send_signal(signal.SIGKILL)
                size = log.stat().st_size
                break
            time.sleep(0.001)
        process.wait(60)
    assert main([*COMMAND, "--out", str(folder)]) == 0 or (folder / "eval.json").is_file()
    assert (folder / "pool.parquet").read_bytes() == whole
