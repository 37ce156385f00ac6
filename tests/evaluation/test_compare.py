"""Evaluations of runs, compared: the table, the oracle, the curves."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from vpo import best_at_k, write_pool
from vpo.cli.main import main
from vpo.evaluation.compare import compare
from vpo.evaluation.eval_folder import FACTS, POOL, new_pool_path, oracle_of, read_evaluation, write_facts
from vpo.report.curves import curves_of
from vpo.tasks.maze import MazeTask

TASK = MazeTask(size=7)
PROBLEMS = TASK.problems("test", count=5)
WEIGHTS = dict.fromkeys(TASK.names, 0.25)


def make_evaluation(folder, seed, answers, **facts):
    """Random scores for five mazes, six answers each, as `vpo eval` would write them."""
    rng = np.random.default_rng(seed)
    rows = [
        {
            "problem": problem.id,
            "generation": index // answers,
            "position": index % answers + 1,
            "scores": dict(zip(TASK.names, rng.random(4).tolist(), strict=True)),
            "solved": bool(rng.random() < 0.5),
            "tokens": 10 * answers + index // answers,
            "answer": None if index == 5 else "RRDDLLUU"[: index + 1] + "<b>",
        }
        for problem in PROBLEMS
        for index in range(6)
    ]
    write_pool(new_pool_path(folder), rows)
    known = {"task": "maze", "task_settings": {"size": 7}, "split": "test", "problems": 5, "target": WEIGHTS}
    write_facts(folder, {**known, **facts})
    return str(folder)


@pytest.fixture
def runs(tmp_path):
    return [make_evaluation(tmp_path / "grpo", 0, 1), make_evaluation(tmp_path / "vpo", 1, 3)]


def test_runs_are_compared(runs, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["compare", *runs, "--out", str(out)]) == 0
    output = capsys.readouterr().out
    for part in ("grpo", "vpo − grpo", "best@k, by answers", "by generations", "by tokens", "first", "set", "coverage"):
        assert part in output
    assert "share of the oracle, by answers" in output
    assert "pass@k" not in output
    assert "pass@k" in (out / "comparison.txt").read_text()
    assert (out / "best_at_k.png").read_bytes().startswith(b"\x89PNG")
    svg = (out / "best_at_k.svg").read_text()
    assert all(f">{name}</text>" in svg for name in ("grpo", "vpo", "oracle", "answers", "generations", "tokens"))
    assert main(["compare", *runs, "--out", str(out), "--all", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["pairs"] == [[1, 0]]
    assert data == json.loads((out / "comparison.json").read_text())


def test_without_matplotlib_the_table_and_the_page_are_there(runs, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *more: None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    out = tmp_path / "out"
    assert main(["compare", *runs, "--out", str(out)]) == 0
    output = capsys.readouterr().out
    assert "best@k, by answers" in output
    last = output.splitlines()[-1]
    assert last.startswith(
        f"the page: {out}/report.html; no PNG and SVG: a picture of the curves needs the package matp"
    )
    assert sorted(path.name for path in out.iterdir()) == ["comparison.json", "comparison.txt", "report.html"]
    assert main(["compare", *runs, "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pictures"] == []


def test_the_verdict_comes_first(runs, tmp_path, capsys):
    base = make_evaluation(tmp_path / "base", 7, 3)
    out = tmp_path / "out"
    assert main(["compare", *runs, base, "--out", str(out)]) == 0
    first, blank, *_ = capsys.readouterr().out.splitlines()
    assert first.endswith("5 problems, k = 1, 3, 5, 6 sampled answers, 95% intervals.")
    assert "base (untrained)" in first
    assert blank == ""
    assert (out / "comparison.txt").read_text().startswith(f"{first}\n")
    assert main(["compare", *runs, base, "--out", str(out), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (next(iter(data)), data["verdict"]) == ("verdict", first)
    assert json.dumps(first)[1:-1] in (out / "report.html").read_text()


def test_three_runs_are_compared_each_with_each(runs, tmp_path, capsys):
    base = make_evaluation(tmp_path / "base", 7, 3)
    assert main(["compare", *runs, base, "--out", str(tmp_path / "out"), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["pairs"] == [[1, 0], [2, 0], [2, 1]]
    for measure in data["measures"]:
        (grpo, vpo, last), changes = measure["values"], measure["differences"]
        assert changes[0]["mean"] == pytest.approx(vpo["mean"] - grpo["mean"])
        assert changes[2]["mean"] == pytest.approx(last["mean"] - vpo["mean"])
    four = [*runs, base, make_evaluation(tmp_path / "more", 8, 3)]
    assert main(["compare", *four, "--out", str(tmp_path / "out"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pairs"] == [[1, 0], [2, 0], [3, 0]]


def test_the_share_of_the_oracle_is_that_of_each_problem(runs):
    evaluation = read_evaluation(runs[0])
    oracle = oracle_of([evaluation], WEIGHTS)
    comparison = compare([evaluation.pool], target=WEIGHTS, ks=[2], oracle=oracle)
    expected = [
        best_at_k(evaluation.pool.problems[problem.id].scores_nD.mean(axis=1), 2) / TASK.best(problem)
        for problem in PROBLEMS
    ]
    (share,) = [row for row in comparison.rows if row.metric.name == "share of the oracle"]
    assert share.values[0].mean == pytest.approx(np.mean(expected))
    other = oracle_of([evaluation], {"gold": 1.0})
    assert other == {problem.id: TASK.best(problem, [0, 1, 0, 0]) for problem in PROBLEMS}


def test_no_oracle_for_different_tasks_or_for_bare_pools(runs, tmp_path):
    one = read_evaluation(runs[0])
    other = read_evaluation(make_evaluation(tmp_path / "other", 3, 1, task_settings={"size": 9}))
    assert oracle_of([one, other], WEIGHTS) is None
    assert oracle_of([one, read_evaluation(f"{runs[0]}/{POOL}")], WEIGHTS) is None


def test_without_a_target_the_oracle_is_that_of_all_objectives_alike(runs):
    evaluation = read_evaluation(runs[0])
    assert oracle_of([evaluation], None) == oracle_of([evaluation], WEIGHTS)


def test_different_targets_must_be_chosen_from(runs, tmp_path, capsys):
    other = make_evaluation(tmp_path / "other", 3, 1, target={"gold": 1.0})
    assert main(["compare", runs[0], other]) == 2
    assert "evaluated under different targets: choose one with --target" in capsys.readouterr().err
    assert main(["compare", runs[0], other, "--target", "gold=1", "--out", str(tmp_path / "out")]) == 0


@pytest.mark.parametrize("text", ["{", "[]", "{}"])
def test_a_broken_evaluation_is_one_line(runs, text, tmp_path, capsys):
    (tmp_path / "grpo" / FACTS).write_text(text)
    assert main(["compare", runs[0]]) == 2
    assert capsys.readouterr().err.startswith(f"vpo: error: {tmp_path / 'grpo' / FACTS}: ")


def test_a_task_that_cannot_be_made_is_named(tmp_path, capsys):
    gone = make_evaluation(tmp_path / "gone", 0, 1, task=str(tmp_path / "gone.py"))
    assert main(["compare", gone, "--out", str(tmp_path / "out")]) == 0
    message = f"no share of the oracle and no pictures, since task {tmp_path}/gone.py cannot be made: no such file"
    assert message in capsys.readouterr().out


def test_other_rewards_are_named(tmp_path, capsys):
    scorings = [{"scorers": [{"calibration": {"range": [0, high]}}]} for high in (4.0, 4.0, 8.0)]
    runs = [make_evaluation(tmp_path / f"r{n}", n, 1, scoring=each) for n, each in enumerate(scorings)]
    assert main(["compare", *runs[:2], "--out", str(tmp_path / "out")]) == 0
    assert "scored differently" not in capsys.readouterr().out
    assert main(["compare", *runs, "--out", str(tmp_path / "out")]) == 0
    assert "r2 was scored differently from" in (output := capsys.readouterr().out)
    assert "scorers.0.calibration.range.1" in output


def test_what_cannot_be_read_is_named_and_nothing_is_left_out(runs, tmp_path, capsys):
    half = Path(make_evaluation(tmp_path / "half", 2, 3))  # of a run that was trained on since, and is not done
    (half / "config.toml").write_text('task = "maze"\nmethod = "vpo"\n')
    broken = Path(make_evaluation(tmp_path / "broken", 2, 3))
    (broken / FACTS).write_text("{")
    (tmp_path / "pool.parquet").write_bytes(b"PAR1")
    wrong = {
        str(half): f"{half}: the run is not finished: follow it with `vpo watch {half}`, or resume it with "
        f"`vpo train --resume {half}`",
        str(broken): f"{broken / FACTS}: the file is not JSON",
        "nowhere": "no such run, folder or pool: nowhere",
        str(tmp_path / "pool.parquet"): f"{tmp_path / 'pool.parquet'}:1: the Parquet file is broken",
    }
    for path, message in wrong.items():
        assert main(["compare", runs[0], path, runs[1], "--out", str(tmp_path / "out")]) == 2
        output, error = capsys.readouterr()
        assert (output, error.count("\n")) == ("", 1)
        assert error.startswith(f"vpo: error: {message}")
    assert main(["compare", *wrong, *runs]) == 2
    error = capsys.readouterr().err
    assert all(message in error for message in wrong.values())
    assert not (tmp_path / "out").exists()


def test_pools_are_compared_under_the_target_that_they_state(tmp_path, capsys):
    def pool(name, target):
        rows = [
            {"problem": "p", "generation": n, "position": 1, "scores": {"a": n / 3, "b": 1 - n / 6}} for n in range(4)
        ]
        write_pool(tmp_path / name, [row if target is None else {**row, "target": target} for row in rows])
        return str(tmp_path / name)

    def compared(*pools):
        assert main(["compare", *pools, "--out", str(tmp_path / "out"), "--json"]) == 0
        data = json.loads(capsys.readouterr().out)
        best = {each["at"]: each for each in data["measures"] if (each["section"], each["by"]) == ("best@k", "answers")}
        return data["target"], [value["mean"] for value in best[1]["values"]], data["notes"]

    a, old = pool("a.parquet", {"a": 3, "b": 1}), pool("old.jsonl", None)
    stated, mean = {"a": 0.75, "b": 0.25}, pytest.approx(0.75 * 0.5 + 0.25 * 0.75)
    assert compared(a, pool("same.jsonl", stated))[:2] == (stated, [mean, mean])
    target, _, notes = compared(a, old)
    assert target == stated
    assert f"{old} states no target: it is measured under that of {a}" in notes
    target, (mean,), notes = compared(old)
    assert (target, mean) == (None, pytest.approx(0.5 * 0.5 + 0.5 * 0.75))
    assert f"{old} states no target: all objectives weigh alike; --target chooses another" in notes
    only_b = pool("b.jsonl", {"b": 1})
    assert main(["compare", a, only_b]) == 2
    assert f"{a} and {only_b} were evaluated under different targets: choose one with" in capsys.readouterr().err


def test_the_points_of_the_curves_are_the_numbers_of_the_table(runs):
    pools = [read_evaluation(run).pool for run in runs]
    comparison = compare(pools, target=WEIGHTS)
    for pool, curves in enumerate(curves_of(comparison)):
        assert [curve.by for curve in curves] == ["answers", "generations", "tokens"]
        for curve in curves[:2]:
            points = dict(zip(curve.budgets, zip(curve.mean, curve.low, curve.high, strict=True), strict=True))
            listed = comparison.at_every_k("best@k", curve.by)
            assert listed
            for row in listed:
                value = row.values[pool]
                assert points[row.metric.k] == pytest.approx((value.mean, value.low, value.high))
        assert curves[2].mean[-1] == pytest.approx(curves[1].mean[-1])  # all tokens buy all generations


def test_a_curve_of_one_problem_has_no_band(tmp_path, capsys):
    (tmp_path / "pool.jsonl").write_text(
        '{"problem": "p", "generation": 0, "position": 1, "scores": {"gold": 0.5, "lava": 0.25}}\n'
    )
    assert main(["compare", str(tmp_path / "pool.jsonl"), "--out", str(tmp_path / "out")]) == 0
    assert "share of the oracle" not in capsys.readouterr().out
    assert (tmp_path / "out" / "best_at_k.png").is_file()


def test_an_evaluation_is_overwritten_only_on_request_and_is_whole_or_absent(runs, tmp_path, capsys):
    from vpo.evaluation.eval_folder import check_free

    folder = tmp_path / "grpo"
    with pytest.raises(
        ValueError, match="has an evaluation: choose another folder with --out, or replace it with --overwrite"
    ):
        check_free(folder, overwrite=False)
    check_free(folder, overwrite=True)
    with pytest.raises(ValueError, match="a pool must hold 1 or more rows"):
        write_pool(new_pool_path(folder), [])
    assert not (folder / FACTS).exists()
    with pytest.raises(ValueError, match="has an evaluation"):  # its pool is there
        check_free(folder, overwrite=False)
    assert main(["compare", str(folder)]) == 2
    assert f"{folder} has no evaluation: make one with `vpo eval {folder}`" in capsys.readouterr().err


def test_a_pool_of_other_problems_than_the_task_has_is_refused(tmp_path, capsys):
    row = {"problem": "p0", "generation": 0, "position": 1, "scores": dict.fromkeys(TASK.names, 0.5)}
    write_pool(tmp_path / "pool.jsonl", [row])
    assert main(["compare", str(tmp_path / "pool.jsonl"), "--task", "maze", "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert "pool.jsonl has the problem 'p0', which is not in the split test of task maze: leave out --task" in error
    assert error.count("\n") == 1


def test_missing_runs_are_named(capsys):
    assert main(["compare", "nowhere"]) == 2
    assert capsys.readouterr().err == "vpo: error: no such run, folder or pool: nowhere\n"


def test_many_runs_have_a_row_each(runs, tmp_path, capsys):
    many = [*runs, *(make_evaluation(tmp_path / name, seed, 3) for seed, name in enumerate("abc", start=5))]
    assert main(["compare", *many, "--out", str(tmp_path / "out")]) == 0
    lines = capsys.readouterr().out.splitlines()
    head = next(line for line in lines if "best@1" in line).split()
    assert head == [*("best@1", "best@3", "best@5", "best@6", "first", "set", "l1", "coverage", "oracle@6")]
    data = json.loads((tmp_path / "out" / "comparison.json").read_text())
    best = {each["at"]: each for each in data["measures"] if (each["section"], each["by"]) == ("best@k", "answers")}
    (row,) = [line.split() for line in lines if line.startswith("vpo ")][:1]
    assert row[1] == f"{best[1]['values'][1]['mean']:.3f}"
    change = [line.split() for line in lines if line.startswith("vpo ")][1]
    assert change[1] == f"{best[1]['differences'][0]['mean']:+.3f}".replace("-", "−")
