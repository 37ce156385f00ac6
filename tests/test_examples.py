"""The examples run as a reader would run them, and show what they say."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.evaluation.test_measure import make_pool
from vpo import read_pool
from vpo.evaluation.diagnose import diagnose
from vpo.util.row_files import write_rows

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.slow
def test_bandit_shows_the_inversion(tmp_path):
    subprocess.run([sys.executable, EXAMPLES / "bandit.py", "--out", tmp_path], check=True, capture_output=True)
    pools = [str(tmp_path / "grpo.jsonl"), str(tmp_path / "vpo.jsonl")]
    done = subprocess.run(
        [sys.executable, "-m", "vpo", "measure", *pools, "--json"], check=True, capture_output=True, text=True
    )
    by_answers = {
        measure["at"]: measure["differences"][0]
        for measure in json.loads(done.stdout)["measures"]
        if (measure["section"], measure["by"]) == ("best@k", "answers")
    }
    assert by_answers[1]["high"] < 0  # GRPO ahead at one sample
    for k in (3, 5, 10, 30):
        assert by_answers[k]["low"] > 0  # VPO ahead from a few samples on


def qa_row():
    answers = ["the red fox ran home", "a red fox", "the fox ran", "no idea at all"]
    return {
        "question": "Who ran?",
        "passages": [["Foxes", "The red fox ran home."]],
        "gold": "The red fox.",
        **{f"prediction {number}": answer for number, answer in enumerate(answers, start=1)},
        "feedback": {
            "errors": [
                {"error type": "Irrelevant", "start": 12, "end": 20},
                {"error type": "Redundant", "start": 15, "end": 20},
                {"error type": "Unverifiable", "start": 0, "end": 5},
            ],
            "missing-info": [{"error type": "Missing-Answer"}],
        },
        "preference": [1, 1, 1, 0, 1, 2],
    }


def scores_in(path):
    return [json.loads(line)["scores"] for line in path.read_text().splitlines()]


def test_qa_feedback_becomes_pools(tmp_path):
    (tmp_path / "qa.jsonl").write_text(json.dumps(qa_row()) + "\n")
    run = [sys.executable, EXAMPLES / "qa_feedback.py", tmp_path / "qa.jsonl", "--out", tmp_path / "pool.jsonl"]
    subprocess.run(run, check=True, capture_output=True)
    first, second, _, last = scores_in(tmp_path / "pool.jsonl")
    # "the red fox ran home": all three gold words in five of its own; won all three comparisons.
    assert first == {"preferred": 1, "covers": 1, "to_the_point": 3 / 5, "grounded": 1, "short": 1 - 5 / 200}
    assert second["preferred"] == (0 + 0.5 + 1) / 3  # lost, tied, won
    assert last["covers"] == last["grounded"] == 0

    subprocess.run([*run, "--errors"], check=True, capture_output=True)
    (marked,) = scores_in(tmp_path / "pool.jsonl")
    assert marked == {"relevant": 1 - 8 / 20, "factual": 1 - 5 / 20, "complete": 1 / 2}


def test_objectives_of_real_answers_to_questions(tmp_path):
    data = Path(__file__).parents[2] / "shared" / "data" / "ratings" / "qa_feedback_dev500.jsonl.gz"
    if not data.exists():
        pytest.skip(f"shared/data/ratings/{data.name} is not here")
    run = [sys.executable, EXAMPLES / "qa_feedback.py", data, "--out", tmp_path / "pool.jsonl"]
    subprocess.run(run, check=True, capture_output=True)
    diagnosis = diagnose(read_pool(tmp_path / "pool.jsonl"))
    assert (diagnosis.problems, diagnosis.answers, diagnosis.same) == (500, 4, ())
    assert {pair[:2] for pair in diagnosis.opposed} == {("covers", "short"), ("grounded", "short")}
    assert 0.09 < diagnosis.relative_headroom < 0.12


def test_designing_draws_its_pictures(tmp_path, rng):
    scores = rng.random((4, 6, 1, 4))
    make_pool(tmp_path / "maze.jsonl", scores, names=("completion", "gold", "diamond", "avoid_lava"))
    make_pool(tmp_path / "qa.jsonl", scores, names=("preferred", "covers", "grounded", "short"))
    ratings = [{"engagingness": i % 3, "groundedness": i % 2, "overall": i % 5} for i in range(12)]
    write_rows(tmp_path / "rated.jsonl", [{"source": f"d{i // 6}", "scores": each} for i, each in enumerate(ratings)])
    pools = ["--maze", tmp_path / "maze.jsonl", "--ratings", tmp_path / "rated.jsonl", "--qa", tmp_path / "qa.jsonl"]
    run = [sys.executable, EXAMPLES / "designing.py", *pools, "--out", tmp_path / "images"]
    done = subprocess.run(run, check=True, capture_output=True, text=True)
    assert set(json.loads(done.stdout)) == {"agreement", "sets", "scales", "sizes"}
    assert len(list((tmp_path / "images").glob("designing_*.png"))) == 5
