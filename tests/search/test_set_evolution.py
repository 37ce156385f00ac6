"""OpenEvolve with a small endpoint: every answer of a completion is a child, and a run resumes from its checkpoint."""

import json
import subprocess
import sys

import pytest

pytest.importorskip("openevolve")

from tests.endpoint import endpoint
from vpo.tasks.answers import write

# In the style of OpenEvolve's example of function minimisation: a program returns a point, scored by how low it is.
PROGRAM = "def search():\n    return 3.0, 3.0\n"
EVALUATOR = """
import importlib.util

def evaluate(program_path):
    try:
        spec = importlib.util.spec_from_file_location("program", program_path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        x, y = module.search()
        value = (x - 1) ** 2 + (y + 2) ** 2
    except Exception:
        return {"low": 0.0, "left": 0.0, "combined_score": 0.0}
    low = 1 / (1 + value)
    return {"low": low, "left": 1 / (1 + abs(x)), "combined_score": low}
"""
CONFIG = """
max_iterations: 20
checkpoint_interval: 4
log_level: ERROR
random_seed: 7
language: python
file_suffix: .py
diff_based_evolution: false
llm:
  api_base: {address}
  api_key: none
  models: [{{name: local, weight: 1.0}}]
  timeout: 20
  retries: 0
prompt:
  template_dir: templates
  include_artifacts: false
database:
  population_size: 50
  archive_size: 20
  num_islands: 1
  feature_dimensions: [low, left]
  feature_bins: 5
evaluator:
  timeout: 20
  max_retries: 0
  cascade_evaluation: false
  parallel_evaluations: {workers}
"""
RUN = """
import asyncio, sys
from pathlib import Path
from openevolve.config import load_config
from vpo.search.openevolve.evolution import SetEvolution
from vpo.search.openevolve.files import newest_checkpoint, write_template

if __name__ == "__main__":
    write_template(4, Path("templates"))
    evolution = SetEvolution("program.py", "evaluator.py", load_config("config.yaml"), "out", answers=4)
    asyncio.run(evolution.run(iterations=int(sys.argv[1])))
    print(newest_checkpoint(Path("out"))[0], evolution.database.get_best_program().metrics["low"])
"""


def answers(request, number):
    """Four programs, better from completion to completion: one without code, one that is cut off now and then."""
    assert "Give 4 different answers" in request["messages"][-1]["content"]
    if number == 3:
        return 500, b""
    step = 0.5 ** (number + 1)
    points = [(1 + step, -2 + step), (1 - step, -2.0), (1.0, -2 - step), (1 + 2 * step, -2 + 2 * step)]
    text = write([f"```python\ndef search():\n    return {x}, {y}\n```" for x, y in points])
    return text.replace("</answer_2>", "") if number == 1 else text


def evolve(folder, iterations):
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "run.py", str(iterations)],
        cwd=folder, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    last, low = run.stdout.split()
    return int(last), float(low)


@pytest.mark.parametrize("workers", [1, 2])
def test_every_answer_is_a_child_and_a_run_resumes_from_its_checkpoint(workers, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "evaluator.py").write_text(EVALUATOR)
    (tmp_path / "run.py").write_text(RUN)
    with endpoint(answers) as (address, seen):
        (tmp_path / "config.yaml").write_text(CONFIG.format(address=address, workers=workers))
        last, low = evolve(tmp_path, 20)
        assert last == 20
        assert low > 0.9
        assert len(seen) == 5
        last, better = evolve(tmp_path, 28)
        assert last == 28
        assert better > low
        assert len(seen) == 7
    rows = [json.loads(line) for line in (tmp_path / "out" / "children.jsonl").read_text().splitlines()]
    assert sorted(row["iteration"] for row in rows) == list(range(1, 29))
    groups = {}
    for row in rows:
        groups.setdefault((row["iteration"] > 20, row["completion"]), []).append(row)
    assert sorted(len(group) for group in groups.values()) == [4] * 7
    for group in groups.values():
        assert len({row["parent"] for row in group}) == 1
        assert sorted(row["place"] for row in group) == [0, 1, 2, 3]
    made = [row for row in rows if row["error"] is None]
    failed = [row["error"] for row in rows if row["error"] not in (None, "the answer is the parent program")]
    assert sum("LLM generation failed" in error for error in failed) == 4  # one completion, and with it four children
    assert failed.count("the completion has no such answer") == 1  # one answer that was cut off
    assert len(failed) == 5
    assert all(row["code"].startswith("def search") and row["metrics"]["low"] > 0 for row in made)
    assert sum(row["tokens"] for row in rows) == 7 * 6  # 7 tokens of each of 6 completions, counted once


def run_here(tmp_path, answer, config, evaluator, iterations, script=RUN):
    """Run an evolution of 4 answers per completion; return the rows of its children and the requests."""
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "evaluator.py").write_text(evaluator)
    (tmp_path / "run.py").write_text(script)
    with endpoint(answer) as (address, seen):
        (tmp_path / "config.yaml").write_text(config.format(address=address, workers=1))
        evolve(tmp_path, iterations)
    return [json.loads(line) for line in (tmp_path / "out" / "children.jsonl").read_text().splitlines()], seen


def test_a_budget_that_ends_within_a_completion_is_exact(tmp_path):
    rows, seen = run_here(tmp_path, answers, CONFIG, EVALUATOR, 6)
    assert [row["iteration"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert [row["place"] for row in rows] == [0, 1, 2, 3, 0, 1]
    assert len(seen) == 2


def test_a_child_that_the_map_cannot_hold_is_recorded(tmp_path):
    lacking = EVALUATOR.replace('return {"low": low,', 'return {"combined_score": 0.0} if x < 1 else {"low": low,')
    rows, _ = run_here(tmp_path, answers, CONFIG, lacking, 4)
    assert ["left" in (row["error"] or "") or "low" in (row["error"] or "") for row in rows] == [0, 1, 0, 0]


def test_a_single_program_needs_no_tags_and_is_none_of_the_thoughts(tmp_path):
    def program(x):
        return f"```python\ndef search():\n    return {x}, -2.0\n```"

    texts = [f"<think>What of\n{program(0.25)}?</think>\n{program(0.5)}", f"<answer>{program(0.75)}</answer>", ""]
    script = RUN.replace("write_template(4,", "write_template(1,").replace("answers=4", "answers=1")
    rows, _ = run_here(tmp_path, lambda request, number: texts[number], CONFIG, EVALUATOR, 3, script)
    codes = [row["code"] for row in rows]
    assert [code and code.splitlines()[1].split()[1] for code in codes] == ["0.5,", "0.75,", None]
    assert rows[-1]["error"] == "the completion has no such answer"
