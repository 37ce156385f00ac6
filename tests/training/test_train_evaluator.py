"""Training and evaluating on the metrics of an evaluator, with real evaluations behind the wall."""

import itertools
import json

import pytest

pytest.importorskip("openevolve")

from tests.endpoint import endpoint
from tests.engines.tiny import save_tiny_model
from tests.tasks.evaluators import PROGRAM, fenced, write_project
from tests.tasks.readings import reading_of
from vpo.cli.main import main
from vpo.sandbox.wall import wall_problem
from vpo.tasks.answers import write
from vpo.tasks.evaluator import EvaluatorTask
from vpo.util.row_files import read_rows

pytestmark = [
    pytest.mark.skipif(bool(wall_problem()), reason="the wall does not work on this machine (vpo doctor)"),
    pytest.mark.filterwarnings("ignore"),  # those of other packages
]

# What the answers of a tiny random model are replaced by, which are noise.
ANSWERS = [fenced(f"return {{'x': {x}, 'y': {y}}}") for x, y in ((1, 0), (0, 1), (0.5, 0.25))]
BROKEN = fenced("import os; os._exit(0)")
LARGE = fenced("return {'x': 3, 'y': 0.5}")


def written(monkeypatch, *answers):
    """Let completions be read as these answers, one after the other."""
    texts = itertools.cycle(answers)
    monkeypatch.setattr(
        EvaluatorTask, "read", lambda self, text, answers: reading_of(text, [next(texts) for _ in range(answers)])
    )


def train(tmp_path, project, *options):
    """Two steps of `vpo train --evaluator`; the exit code and the metrics of each step."""
    model = save_tiny_model(tmp_path / "tiny")
    arguments = ["train", "--evaluator", project, "--model", model, "--method", "vpo", "--answers", "3", "--steps", "2"]
    arguments += ["--prompts-per-step", "1", "--group", "4", "--max-tokens", "8", "--out", str(tmp_path / "run")]
    code = main([*arguments, *options])
    log = tmp_path / "run" / "metrics.jsonl"
    return code, [json.loads(line) for line in log.read_text().splitlines()] if log.is_file() else []


def test_metrics_are_the_objectives(tmp_path, monkeypatch):
    written(monkeypatch, *ANSWERS, *ANSWERS, None, *ANSWERS[1:])
    code, steps = train(tmp_path, write_project(tmp_path / "p"))
    assert code == 0
    assert len(steps) == 2
    assert all(step["vpo/unknown"] == 0 for step in steps)
    assert all(0.5 < step["vpo/set_reward"] < 1 for step in steps)
    means = [(step["vpo/objective/x"], step["vpo/objective/y"]) for step in steps]
    assert all(0 < x < 1 and 0 < y < 1 for x, y in means)


@pytest.mark.parametrize("lost", [BROKEN, LARGE])
def test_programs_without_a_score_in_range_are_unknown_and_the_run_goes_on(lost, tmp_path, monkeypatch):
    written(monkeypatch, *ANSWERS, *ANSWERS, ANSWERS[0], lost, ANSWERS[1], *ANSWERS)  # one completion of four
    code, steps = train(tmp_path, write_project(tmp_path / "p"))
    assert code == 0
    assert [step["vpo/unknown"] for step in steps] == [1, 1]


def test_failed_programs_may_score_zero(tmp_path, monkeypatch):
    written(monkeypatch, BROKEN, *ANSWERS[:2])
    code, steps = train(tmp_path, write_project(tmp_path / "p"), "--set", "failed=zero")
    assert code == 0
    assert [(step["vpo/unknown"], step["vpo/set_reward"]) for step in steps] == [(0, 0.75)] * 2


def test_metrics_outside_the_unit_interval_need_a_scale(tmp_path, monkeypatch, capsys):
    project = write_project(tmp_path / "p", program=PROGRAM.replace("x = 0.5", "x = 2"))
    assert train(tmp_path, project) == (2, [])
    assert "x of the start program is 2, and objectives must lie in [0, 1] to train" in capsys.readouterr().err
    written(monkeypatch, *ANSWERS)
    code, steps = train(tmp_path, project, "--set", "scale=x=0:4,y=-1:1")
    assert code == 0
    assert len(steps) == 2


def test_an_evaluation_keeps_metrics_as_they_are(tmp_path):
    project = write_project(tmp_path / "p")
    with endpoint(lambda request, number: write([ANSWERS[0], LARGE, BROKEN])) as (address, _):
        arguments = ["eval", "m", "--task", "evaluator", "--set", f"evaluator={project}", "--endpoint", address]
        arguments += ["--set", "failed=zero", "--answers", "3", "--pool", "6", "--out", str(tmp_path / "out")]
        assert main(arguments) == 0
    rows = read_rows(tmp_path / "out" / "pool.parquet")
    assert [list(row["scores"].values()) for _, row in rows][:3] == [[1, 0], [3, 0.5], [0, 0]]
