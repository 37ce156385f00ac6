"""`vpo import` of a folder with several files: a pool holds the answers of one model."""

import json
import shutil

import pytest

from tests.evaluation.test_import import WRITTEN, imported, refused
from vpo.util.row_files import read_rows, write_rows

pytest.importorskip("pyarrow")

LAST_FOLDER = "lighteval/model/2026-11-18T02-29-01.400935"


@pytest.mark.parametrize(
    ("written", "copies", "named"),
    [
        ("evalplus/samples_eval_results.json", ("A_eval_results.json", "B_eval_results.json"), ("A_eval", "B_eval")),
        ("evalplus/samples_eval_results.json", ("a/eval_results.json", "b/eval_results.json"), ("a/eval", "b/eval")),
        ("verifiers_0_1/results.jsonl", ("env--gpt/1/results.jsonl", "env--qwen/2/results.jsonl"), ("--gpt", "--qwen")),
        ("verifiers_0_1/results.jsonl", ("gpt/results.jsonl", "qwen/results.jsonl"), ("all/gpt", "all/qwen")),
        ("trl/completions", ("runA/completions", "runB/completions"), ("runA/completions", "runB/completions")),
        (LAST_FOLDER, ("gpt/date", "qwen/date"), ("all/gpt", "all/qwen")),
    ],
)
def test_results_of_several_models_are_refused(written, copies, named, tmp_path, capsys):
    for copy in copies:
        (tmp_path / "all" / copy).parent.mkdir(parents=True, exist_ok=True)
        source = WRITTEN / written
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / "all" / copy)
    error = refused(capsys, tmp_path / "all")
    assert f"{tmp_path / 'all'} has the results of 2 models or runs, such as " in error
    assert error.endswith(": import each alone\n")
    assert all(name in error for name in named)
    for copy in copies:
        imported(tmp_path, capsys, tmp_path / "all" / copy)


def test_evalplus_has_several_data_sets_of_one_model(tmp_path, capsys):
    data = json.loads((WRITTEN / "evalplus" / "samples_eval_results.json").read_text())
    for number, (task, solutions) in enumerate(data["eval"].items()):
        (tmp_path / "all" / str(number)).mkdir(parents=True)
        content = json.dumps({**data, "eval": {task: solutions}})
        (tmp_path / "all" / str(number) / "A_eval_results.json").write_text(content)
    counts, _ = imported(tmp_path, capsys, tmp_path / "all")
    assert (counts["files"], counts["problems"]) == (2, 2)
    (tmp_path / "all/1/A_eval_results.json").rename(tmp_path / "all/1/B_eval_results.json")
    assert "of 2 models or runs, such as A and B: import each alone" in refused(capsys, tmp_path / "all")


def test_results_of_one_environment_and_model_are_generations_of_it(tmp_path, capsys):
    for run in ("1", "2"):
        (tmp_path / "env--gpt" / run).mkdir(parents=True)
        shutil.copy(WRITTEN / "verifiers_0_1" / "results.jsonl", tmp_path / "env--gpt" / run)
    _, pool = imported(tmp_path, capsys, tmp_path / "env--gpt")
    assert {len(problem.scores_nD) for problem in pool.problems.values()} == {4}


def test_traces_name_their_model(tmp_path, capsys):
    rows = [row for _, row in read_rows(WRITTEN / "verifiers" / "traces.jsonl")]
    for run in ("first", "second"):
        (tmp_path / "all" / run).mkdir(parents=True)
        write_rows(tmp_path / "all" / run / "traces.jsonl", rows)
    counts, _ = imported(tmp_path, capsys, tmp_path / "all")
    assert counts["answers"] == 2 * len(rows)
    for row in rows:
        row["traces"][0]["agent"]["config"]["model"] = "other/model"
    write_rows(tmp_path / "all" / "second" / "traces.jsonl", rows)
    assert "of 2 models or runs, such as m and other/model: import each alone" in refused(capsys, tmp_path / "all")
