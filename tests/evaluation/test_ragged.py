"""Scoring, evaluating and searching where problems differ in their objectives and some scores are not known."""

import json
from pathlib import Path

import pytest

from tests.tasks.ragged import BitsTask
from vpo import read_pool
from vpo.cli.main import main
from vpo.search.goals import goals_of
from vpo.search.scorer import UNKNOWN, ScoringRequest, TaskSource
from vpo.search.scoring_pool import ScoringPool
from vpo.tasks import get
from vpo.tasks.answers import write

FILE = str(Path(__file__).parents[1] / "tasks" / "ragged.py")
TASK = BitsTask()
PROBLEMS = TASK.problems()


@pytest.fixture
def completions(tmp_path):
    rows = [
        {"problem": "b2", "completion": write(["11!", "10"])},
        {"problem": "b2", "completion": write(["11", "?"])},
        {"problem": "b4", "completion": write(["1110", "0000"])},
    ]
    path = tmp_path / "completions.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_completion_of_unknown_score_is_left_out_and_counted(tmp_path, completions, capsys):
    pool_path = str(tmp_path / "pool.parquet")
    assert main(["score", str(completions), "--task-file", FILE, "--out", pool_path, "--answers", "2"]) == 0
    assert "3 completions, 1 of them skipped as their scores are unknown, 4 answers" in capsys.readouterr().out
    pool = read_pool(pool_path)
    assert pool.objectives is None
    assert pool.problems["b2"].scores_nD.tolist() == [[1, 1], [1, 0]]
    assert pool.problems["b2"].solved_n.tolist() == [True, False]
    assert pool.problems["b4"].scores_nD.tolist() == [[1, 1, 1, 0], [0, 0, 0, 0]]
    assert main(["measure", pool_path]) == 0
    assert main(["diagnose", pool_path]) == 0


def test_completions_of_unknown_score_alone_are_no_pool(tmp_path, capsys):
    path = tmp_path / "completions.jsonl"
    path.write_text(json.dumps({"problem": "b2", "completion": write(["?"])}) + "\n")
    out = tmp_path / "pool.jsonl"
    assert main(["score", str(path), "--task-file", FILE, "--out", str(out)]) == 2
    assert "the scores of all 1 completions are unknown: see vpo doctor" in capsys.readouterr().err
    assert not out.exists()


def test_means_are_over_the_answers_that_have_the_objective(tmp_path, completions, capsys):
    out = str(tmp_path / "pool.jsonl")
    assert main(["score", str(completions), "--task-file", FILE, "--out", out, "--answers", "2", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["mean"] == {"bit_1": 0.75, "bit_2": 0.5, "bit_3": 0.5, "bit_4": 0.0}
    assert (data["unknown"], data["target"], data["solved"]) == (1, None, 0.25)


def test_gold_answers_have_to_solve(monkeypatch):
    assert list(TASK.validate(PROBLEMS)) == [None] * 4
    monkeypatch.setattr(BitsTask, "gold", lambda self, problem: "1" * problem.count)
    flaw = next(TASK.validate(PROBLEMS))
    assert (
        flaw.reason
        == "as a single answer: it does not solve the problem; as one of a set: it does not solve the problem"
    )
    monkeypatch.setattr(BitsTask, "gold", lambda self, problem: "?")
    assert "its score is unknown" in next(TASK.validate(PROBLEMS)).reason


def test_a_ragged_task_says_so(tmp_path):
    path = tmp_path / "task.py"
    path.write_text(Path(FILE).read_text().replace("ragged = True", "ragged = False"))
    with pytest.raises(ValueError, match="ragged must be True if and only if the task overrides names_of"):
        get(str(path))


def test_a_model_is_evaluated(tmp_path, capsys):
    pytest.importorskip("transformers")
    from tests.engines.tiny import save_tiny_model

    model = save_tiny_model(tmp_path / "model")
    out = tmp_path / "evaluation"
    arguments = ["eval", str(model), "--task-file", FILE, "--pool", "4", "--answers", "2", "--max-tokens", "8"]
    assert main([*arguments, "--out", str(out)]) == 0
    assert json.loads((out / "eval.json").read_text())["target"] is None
    assert "target: all objectives alike" in capsys.readouterr().out
    assert main(["compare", str(out), str(out), "--out", str(tmp_path / "comparison")]) == 0
    assert main([*arguments, "--out", str(out), "--overwrite", "--target", "bit_4=1"]) == 2
    assert "target names 'bit_4', and the objectives of problem 'b2' are bit_1, bit_2" in capsys.readouterr().err


# Search


def scored(texts, problem="b2", goals=None):
    source = TaskSource(FILE, {}, "test", None, goals or {})
    name = next(iter(source.load().goals))
    (result,) = ScoringPool(source, 0, 10.0).score([ScoringRequest(0, problem, name, write(texts), len(texts))])
    return result.answers


def test_a_search_is_solved_by_the_hidden_tests_too():
    solving, lacking, unknown = scored(["11!", "11", "?"])
    assert solving.solved
    assert lacking.scores == (1, 1)
    assert lacking.value == 1
    assert not lacking.solved
    assert (unknown.scores, unknown.failure) == (None, UNKNOWN)


def test_goals_are_over_the_objectives_of_the_problem():
    assert [each.value for each in scored(["10", "01"], goals={"targets": ["bit_1=1"]})] == [1, 0]
    assert [each.solved for each in scored(["01", "10"], goals={"conditions": ["bit_2>=1"]})] == [True, False]
    for goal in goals_of(TASK, targets=["bit_4=1"], conditions=["bit_1>=1,bit_4>=1"]):
        goal.check(PROBLEMS[1])
        with pytest.raises(ValueError, match="names 'bit_4', and the objectives of problem 'b2' are bit_1, bit_2"):
            goal.check(PROBLEMS[0])
    (own,) = goals_of(TASK)
    assert own.weights_of(PROBLEMS[0]) == (0.5, 0.5)
