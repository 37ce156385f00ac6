"""`vpo import`: files that other packages wrote become pools, and whatever cannot is one line."""

import json
import shutil
from pathlib import Path

import pytest

from vpo import read_pool
from vpo.cli.main import main
from vpo.util.row_files import read_rows, write_rows

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

WRITTEN = Path(__file__).parent / "imported"
FOLDERS = {
    "lm-eval": "lm_eval", "lighteval": "lighteval", "evalplus": "evalplus", "bigcode": "bigcode",
    "verifiers": "verifiers", "openevolve": "openevolve", "trl": "trl",
}  # fmt: skip


def imported(tmp_path, capsys, source, *more, out="pool.jsonl"):
    """Import with --json: the counts, and the pool."""
    assert main(["import", str(source), "--out", str(tmp_path / out), "--json", *more]) == 0
    return json.loads(capsys.readouterr().out), read_pool(tmp_path / out)


def refused(capsys, *arguments):
    """The one line with which `vpo import` ends."""
    assert main(["import", *map(str, arguments)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("vpo: error: ")
    assert said.err.count("\n") == 1
    return said.err


def copied(tmp_path, name):
    return Path(shutil.copytree(WRITTEN / FOLDERS[name], tmp_path / "copy"))


@pytest.mark.parametrize("out", ["pool.jsonl", "pool.parquet"])
@pytest.mark.parametrize("name", list(FOLDERS))
def test_every_format_is_detected_and_measured(name, out, tmp_path, capsys):
    counts, pool = imported(tmp_path, capsys, WRITTEN / FOLDERS[name], out=out)
    assert counts["format"] == name
    assert counts["pool"] == str(tmp_path / out)
    assert counts["problems"] == len(pool.problems)
    assert counts["answers"] == sum(len(problem.scores_nD) for problem in pool.problems.values())
    assert main(["measure", str(tmp_path / out), "--json"]) == 0
    measures = json.loads(capsys.readouterr().out)["measures"]
    (first,) = [each for each in measures if (each["section"], each["by"], each["at"]) == ("best@k", "answers", 1)]
    assert 0 <= first["values"][0]["mean"] <= 1


@pytest.mark.parametrize(
    ("source", "pool"),
    [
        ("evalplus", "evalplus.pool.jsonl"),
        ("evalplus/", "evalplus.pool.jsonl"),
        ("evalplus/samples_eval_results.json", "evalplus/samples_eval_results.pool.jsonl"),
        (".", "copy.pool.jsonl"),
    ],
)
def test_the_pool_is_written_beside_its_source(source, pool, tmp_path, capsys, monkeypatch):
    (tmp_path / "copy").mkdir()
    shutil.copytree(WRITTEN / "evalplus", tmp_path / "copy" / "evalplus")
    monkeypatch.chdir(tmp_path / "copy")
    assert main(["import", source]) == 0
    said = capsys.readouterr().out
    assert "evalplus, 1 file: 2 problems, 5 answers, 40.0% solve the problem" in said
    assert f"wrote {pool}; next: vpo measure {pool}" in said
    assert main(["measure", pool]) == 0
    assert main(["import", source]) == 0  # its own pool is not mistaken for results


@pytest.mark.parametrize("name", list(FOLDERS))
def test_the_format_may_be_named(name, tmp_path, capsys):
    counts, _ = imported(tmp_path, capsys, WRITTEN / FOLDERS[name], "--from", name)
    assert counts["format"] == name
    other = next(each for each in FOLDERS if each != name)
    error = refused(capsys, WRITTEN / FOLDERS[name], "--from", other, "--out", tmp_path / "other.jsonl")
    assert f"no file in the format {other}" in error


def test_lm_eval_has_an_objective_for_each_metric_and_filter(tmp_path, capsys):
    counts, pool = imported(tmp_path, capsys, WRITTEN / "lm_eval")
    assert counts["files"] == 2
    assert pool.problems["tiny_choice/0"].objectives == ("acc", "acc_norm")
    generated = pool.problems["tiny_gen/1"]
    assert generated.objectives == ("exact_match/strict-match", "exact_match/first-letter")
    # The dummy model says lol, which is right for questions 0 and 2; its first letter never is.
    right = [pool.problems[f"tiny_gen/{index}"].scores_nD.tolist() for index in range(3)]
    assert right == [[[1, 0]], [[0, 0]], [[1, 0]]]
    assert generated.answers == ("lol",)
    assert pool.problems["tiny_choice/0"].answers is None  # log-likelihoods are no text
    assert counts["notes"] == ["3 further responses are left out: lm-eval scores one for each document"]


def test_a_second_log_of_lm_eval_is_a_second_generation(tmp_path, capsys):
    folder = copied(tmp_path, "lm-eval")
    (log,) = folder.glob("samples_tiny_choice_*")
    shutil.copy(log, folder / "samples_tiny_choice_2027-01-01T00-00-00.000000.jsonl")
    _, pool = imported(tmp_path, capsys, folder)
    assert {len(problem.scores_nD) for name, problem in pool.problems.items() if "choice" in name} == {2}
    other = folder / "other-model"
    other.mkdir()
    shutil.copy(log, other)
    error = refused(capsys, folder, "--out", tmp_path / "x.jsonl")
    assert f"of 2 models or runs, such as {folder} and {other}: import each alone" in error


def test_a_log_of_one_metric_has_one_objective(tmp_path, capsys):
    (log,) = (WRITTEN / "lm_eval").glob("samples_tiny_gen_*")
    rows = [row for _, row in read_rows(log) if row["filter"] == "strict-match"]
    for row in rows:
        del row["metrics"]  # as older versions wrote them
    write_rows(tmp_path / "samples_old.jsonl", rows)
    _, pool = imported(tmp_path, capsys, tmp_path / "samples_old.jsonl")
    assert pool.objectives == ("exact_match",)
    assert list(pool.problems) == ["old/0", "old/1", "old/2"]


def test_lighteval_has_an_objective_for_each_metric(tmp_path, capsys):
    counts, pool = imported(tmp_path, capsys, WRITTEN / "lighteval")
    assert set(pool.problems) == {f"{task}|0/{index}" for task in ("tiny_gen", "tiny_choice") for index in range(3)}
    assert pool.problems["tiny_gen|0/1"].objectives == ("em", "f1")
    assert pool.problems["tiny_gen|0/1"].answers == ("U a > L H ;",)
    # Of three choices, the tiny model prefers the right one of question 2.
    assert [pool.problems[f"tiny_choice|0/{index}"].scores_nD.tolist() for index in range(3)] == [[[0]], [[0]], [[1]]]
    assert counts["notes"] == ["3 answers have no tokens, so the pool has none"]  # multiple choice
    (generated,) = (WRITTEN / "lighteval").rglob("details_tiny_gen_*")
    _, pool = imported(tmp_path, capsys, generated)
    assert pool.problems["tiny_gen|0/1"].tokens_N.tolist() == [7]


def test_evalplus_has_base_and_plus_and_says_what_is_solved(tmp_path, capsys):
    counts, pool = imported(tmp_path, capsys, WRITTEN / "evalplus")
    assert pool.objectives == ("base", "plus")
    assert pool.problems["HumanEval/0"].scores_nD.tolist() == [[1, 1], [0, 0]]
    assert pool.problems["HumanEval/1"].scores_nD.tolist() == [[1, 0], [1, 1], [0, 0]]
    assert pool.problems["HumanEval/1"].solved_n.tolist() == [False, True, False]
    assert pool.problems["HumanEval/0"].answers[0] == "def double(x):\n    return x + x\n"
    assert counts["solved"] == pytest.approx(2 / 5)


def test_evalplus_without_plus_tests_has_base_alone(tmp_path, capsys):
    data = json.loads((WRITTEN / "evalplus" / "samples_eval_results.json").read_text())
    for solutions in data["eval"].values():
        for solution in solutions:
            solution["plus_status"] = None  # as with --base-only
    (tmp_path / "base.json").write_text(json.dumps(data))
    _, pool = imported(tmp_path, capsys, tmp_path / "base.json")
    assert pool.objectives == ("base",)
    assert pool.problems["HumanEval/1"].solved_n.tolist() == [True, True, False]


@pytest.mark.parametrize("name", [".", "logs.json"])
def test_bigcode_has_what_passed(name, tmp_path, capsys):
    _, pool = imported(tmp_path, capsys, WRITTEN / "bigcode" / name)
    assert pool.objectives == ("passed",)
    first, second = pool.problems.values()
    assert first.problem == "humanevalsynthesize-python/0"
    assert (first.solved_n.tolist(), second.solved_n.tolist()) == ([True, False], [False, True])
    assert second.answers[1] == "def absolute(x):\n    return abs(x)"


def test_other_files_beside_a_log_of_bigcode_are_not_read(tmp_path, capsys):
    folder = copied(tmp_path, "bigcode")
    (folder / "broken.json").write_text("{")
    (folder / "folder.json").mkdir()
    (folder / "generations_folder.json").mkdir()
    _, pool = imported(tmp_path, capsys, folder / "logs.json")
    assert pool.problems["humanevalsynthesize-python/1"].answers[1] == "def absolute(x):\n    return abs(x)"


def test_bigcode_without_results_of_programs_is_refused(tmp_path, capsys):
    folder = copied(tmp_path, "bigcode")
    (folder / "logs.json").unlink()
    assert "0 files have a result for each program, and 1 is needed (logs.json" in refused(capsys, folder)


def test_verifiers_has_its_rewards_and_states_their_weights(tmp_path, capsys):
    counts, pool = imported(tmp_path, capsys, WRITTEN / "verifiers")
    assert pool.objectives == ("correct", "short")
    assert pool.target == pytest.approx({"correct": 2 / 3, "short": 1 / 3})
    problem = pool.problems["sums/0"]
    assert problem.answers == ("4", "It is 4.")
    assert problem.scores_nD.tolist() == [[1, 0.9], [0, pytest.approx(0.2)]]
    assert problem.tokens_N.tolist() == [7, 7]
    assert counts["notes"] == ["not imported unless --objectives names them: characters"]
    _, pool = imported(
        tmp_path, capsys, WRITTEN / "verifiers", "--objectives", "correct,characters", "--range", "characters=10..0"
    )
    assert pool.problems["sums/0"].scores_nD.tolist() == [[1, 0.9], [0, pytest.approx(0.2)]]
    assert pool.target is None


def test_rollouts_that_failed_are_refused_or_counted(tmp_path, capsys):
    rows = [row for _, row in read_rows(WRITTEN / "verifiers" / "traces.jsonl")]
    rows[1]["ok"] = False
    rows[1]["errors"] = [{"type": "Timeout", "message": "too late"}]
    write_rows(tmp_path / "traces.jsonl", rows)
    error = refused(capsys, tmp_path / "traces.jsonl")
    assert "traces.jsonl:2: the answer has no scores (too late); leave out answers without a score with" in error
    counts, pool = imported(tmp_path, capsys, tmp_path / "traces.jsonl", "--skip-unscored")
    assert (counts["answers"], counts["skipped"]) == (3, 1)
    assert len(pool.problems["sums/0"].scores_nD) == 1


def test_rollouts_with_different_weights_state_no_target(tmp_path, capsys):
    rows = [row for _, row in read_rows(WRITTEN / "verifiers" / "traces.jsonl")]
    rows[2]["traces"][0]["rewards"]["short"]["weight"] = 5.0
    write_rows(tmp_path / "traces.jsonl", rows)
    counts, pool = imported(tmp_path, capsys, tmp_path / "traces.jsonl")
    assert not pool.states_target
    assert "different weights of their rewards" in counts["notes"][0]


@pytest.mark.parametrize("form", ["results.jsonl", "results.parquet"])
def test_results_of_older_verifiers_have_their_metrics(form, tmp_path, capsys):
    write_rows(tmp_path / form, [row for _, row in read_rows(WRITTEN / "verifiers_0_1" / "results.jsonl")])
    counts, pool = imported(tmp_path, capsys, tmp_path / form)
    assert counts["format"] == "verifiers"
    assert pool.objectives == ("correct", "short")
    assert pool.problems["0"].scores_nD.tolist() == [[1, 0.9], [0, pytest.approx(0.2)]]
    assert pool.problems["0"].answers == ("4", "It is 4.")
    assert pool.problems["0"].tokens_N.tolist() == [7, 7]
    assert counts["notes"] == ["not imported unless --objectives names them: num_turns, reward"]
    # Weights 1 and 0.5, which the file does not say: 1 + 0.45 of 1.5.
    _, pool = imported(tmp_path, capsys, tmp_path / form, "--objectives", "reward", "--range", "reward=0..1.5")
    assert pool.problems["0"].scores_nD[0].tolist() == [pytest.approx(1.45 / 1.5)]


def test_openevolve_has_its_metrics_in_the_order_of_the_iterations(tmp_path, capsys):
    counts, pool = imported(tmp_path, capsys, WRITTEN / "openevolve")
    (problem,) = pool.problems.values()
    assert problem.problem == "program"
    assert problem.objectives == ("correct", "short")
    # The initial program is the identity: right for 0 alone; the first child doubles.
    assert problem.scores_nD[:2, 0].tolist() == [0.25, 1]
    assert counts["notes"] == ["not imported unless --objectives names them: combined_score"]
    _, pool = imported(tmp_path, capsys, WRITTEN / "openevolve", "--objectives", "combined_score")
    assert pool.objectives == ("combined_score",)


def test_the_last_checkpoint_of_each_run_is_read(tmp_path, capsys):
    written = WRITTEN / "openevolve" / "checkpoints" / "checkpoint_4"
    for run, iterations in (("a", (4, 12)), ("b", (9,))):
        for iteration in iterations:
            shutil.copytree(written, tmp_path / "runs" / run / "checkpoints" / f"checkpoint_{iteration}")
    next((tmp_path / "runs/a/checkpoints/checkpoint_4/programs").glob("*.json")).unlink()
    counts, pool = imported(tmp_path, capsys, tmp_path / "runs")
    assert {name: len(problem.scores_nD) for name, problem in pool.problems.items()} == {"a": 5, "b": 5}
    assert counts["notes"][0] == "1 earlier checkpoints are left out: the last one of a run is read"


def test_trl_has_an_objective_for_each_reward_function(tmp_path, capsys):
    counts, pool = imported(tmp_path, capsys, WRITTEN / "trl")
    assert pool.objectives == ("correct", "short")
    assert set(pool.problems) == {"#P.E#", "#E.P#"}
    rows = [row for path in sorted((WRITTEN / "trl").rglob("*.parquet")) for _, row in read_rows(path)]
    assert counts["answers"] == len(rows) == 8
    assert counts["mean"]["correct"] == pytest.approx(sum(row["correct"] for row in rows) / 8)
    first = next(row for row in rows if row["prompt"][0]["content"] == "#P.E#")
    assert pool.problems["#P.E#"].answers[0] == first["completion"][0]["content"]


def test_completions_that_trl_logged_twice_count_once(tmp_path, capsys):
    folder = copied(tmp_path, "trl") / "completions"
    table = parquet.read_table(folder / "completions_00002.parquet")
    later = table.set_column(0, "step", pyarrow.array([3] * len(table)))
    parquet.write_table(later, folder / "completions_00003.parquet")
    counts, _ = imported(tmp_path, capsys, folder)
    assert counts["answers"] == 8
    assert counts["notes"] == ["1 files repeat the completions of the file before them and are left out"]


def test_a_reward_that_trl_does_not_know_is_refused_or_counted(tmp_path, capsys):
    path = copied(tmp_path, "trl") / "completions" / "completions_00001.parquet"
    table = parquet.read_table(path)
    index = table.schema.names.index("correct")
    parquet.write_table(table.set_column(index, "correct", pyarrow.array([float("nan"), 0.0, 1.0, None])), path)
    error = refused(capsys, path, "--out", tmp_path / "x.jsonl")
    assert "completions_00001.parquet:1: scores['correct'] must be a number, not nan; leave out answers" in error
    counts, _ = imported(tmp_path, capsys, path, "--skip-unscored")
    assert (counts["answers"], counts["skipped"]) == (2, 2)


def test_files_of_several_formats_are_told_apart(tmp_path, capsys):
    for name in ("evalplus", "trl"):
        shutil.copytree(WRITTEN / name, tmp_path / "all" / name)
    error = refused(capsys, tmp_path / "all")
    assert "has files of several formats: evalplus (" in error
    assert "samples_eval_results.json), trl (" in error
    assert "choose one with --from" in error
    counts, _ = imported(tmp_path, capsys, tmp_path / "all", "--from", "trl")
    assert (counts["format"], counts["files"]) == ("trl", 2)
