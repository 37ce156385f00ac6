import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from vpo.cli.main import main
from vpo.evaluation.eval_folder import POOL, write_facts
from vpo.evaluation.pools import write_pool

GOOD = {"problem": "p", "generation": 0, "position": 1, "scores": {"gold": 0.5, "lava": 0.1}, "solved": True}


@pytest.fixture
def pool(tmp_path):
    rows = [
        {**GOOD, "problem": f"p{p}", "generation": g, "scores": {"gold": (p + g) % 3 / 2, "lava": g / 3}}
        for p in range(4)
        for g in range(4)
    ]
    path = tmp_path / "pool.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_measure_prints_a_table(pool, capsys):
    assert main(["measure", pool, "--k", "1,4", "--target", "gold=1,lava=3"]) == 0
    out = capsys.readouterr().out
    assert "target: gold 0.25, lava 0.75" in out
    assert "best@k, by answers" in out
    assert "pass@k, by answers" in out
    assert "by generations" not in out  # each has one answer


def test_a_warning_is_a_line_without_code(pool, monkeypatch):
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)  # restored at the end
    assert main(["measure", pool]) == 0
    assert warnings.formatwarning("look out", UserWarning, "file.py", 7) == "vpo: warning: look out\n"
    assert "file.py:7" in warnings.formatwarning("old", DeprecationWarning, "file.py", 7)


def test_measure_json(pool, capsys):
    assert main(["measure", pool, pool, "--json", "--k", "1"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["problems"] == 4
    best = data["measures"][0]
    assert (best["section"], best["by"], best["at"]) == ("best@k", "answers", 1)
    assert best["values"][0] == best["values"][1]
    assert best["differences"][0]["mean"] == 0


def test_diagnose_prints_a_verdict_and_json(pool, capsys):
    assert main(["diagnose", pool]) == 0
    assert "Verdict: yes. The objectives trade off: 11% of what choosing well gains" in capsys.readouterr().out
    assert main(["diagnose", pool, "--json", "--target", "gold=1"]) == 0
    diagnosis = json.loads(capsys.readouterr().out)
    assert diagnosis["verdict"] == "yes"
    assert diagnosis["headroom"]["mean"] == pytest.approx(0.130952, abs=1e-6)  # E_w[max] 0.901786 less 0.770833


def test_a_reward_without_trade_offs_has_the_verdict_no(pool, tmp_path, capsys):
    rows = [json.loads(line) for line in Path(pool).read_text().splitlines()]
    same = [{**row, "scores": {"gold": row["generation"] / 3, "lava": row["generation"] / 3}} for row in rows]
    (tmp_path / "same.jsonl").write_text("".join(json.dumps(row) + "\n" for row in same))
    assert main(["diagnose", str(tmp_path / "same.jsonl"), "--json"]) == 0
    diagnosis = json.loads(capsys.readouterr().out)
    assert diagnosis["verdict"] == "no"
    assert [pair[:2] for pair in diagnosis["same"]] == [["gold", "lava"]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["measure", "nowhere.jsonl"], "no such file: nowhere.jsonl"),
        (["diagnose", "nowhere.parquet"], "no such file: nowhere.parquet"),
        (["measure", "POOL", "--k", "99"], "k must lie in 1..4, the answers of the smallest problem, not 99"),
        (
            ["measure", "POOL", "--target", "silver=1"],
            "target names 'silver', and the objectives of problem 'p0' are gold, lava",
        ),
        (["measure", "."], ". has no evaluation: make one with `vpo eval .`"),
        (["diagnose", "POOL", "--target", "gold=-1"], "weights of 0 or more, not 'gold=-1'"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(pool, capsys, arguments, message):
    assert main([pool if argument == "POOL" else argument for argument in arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("vpo: error: ")
    assert captured.err.count("\n") == 1
    assert message in captured.err


def test_measure_takes_the_folder_of_an_evaluation(pool, tmp_path, capsys):
    write_pool(tmp_path / POOL, [json.loads(line) for line in Path(pool).read_text().splitlines()])
    write_facts(tmp_path, {"task": "maze", "task_settings": {}, "split": "test", "problems": 4, "target": None})
    assert main(["measure", str(tmp_path), "--json"]) == 0
    by_folder = json.loads(capsys.readouterr().out)
    assert main(["measure", pool, "--json"]) == 0
    assert by_folder["measures"] == json.loads(capsys.readouterr().out)["measures"]


def test_a_bad_line_is_named(tmp_path, capsys):
    path = tmp_path / "pool.jsonl"
    path.write_text(json.dumps(GOOD) + "\n" + json.dumps({**GOOD, "position": 2, "scores": {"gold": None}}) + "\n")
    assert main(["measure", str(path)]) == 2
    assert f"{path}:2: scores['gold'] must be a finite number, not None" in capsys.readouterr().err


def test_bad_options_exit_with_2(pool, capsys):
    for arguments, message in (
        (["measure"], "vpo measure: error: the following arguments are required: POOL"),
        (["measure", pool, "--k", "x"], "vpo measure: error: argument --k: must be integers such as 1,3,10, not 'x'"),
        (["mesure", pool], "vpo: error: argument COMMAND: 'mesure' is not known: did you mean 'measure'?"),
        (["measure", pool, "--traget", "a=1"], "argument '--traget' is not known: did you mean '--target'?"),
        (["tasks", "show", "maze", "--answer=3"], "argument '--answer=3' is not known: did you mean '--answers'?"),
    ):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
        assert "--help`)" in error


def run(*arguments, **more):
    command = [sys.executable, "-m", "vpo", *arguments]
    return subprocess.run(command, stderr=subprocess.PIPE, text=True, **more)


def test_a_reader_that_leaves_early_is_no_error(pool):
    reading, writing = os.pipe()
    os.close(reading)
    done = run("measure", pool, stdout=writing)
    os.close(writing)
    slow = [line for line in done.stderr.splitlines() if line.startswith("measuring ") or line.endswith(" …")]
    assert done.stderr.splitlines() == slow  # what a slow machine is busy with
    assert done.returncode == 0


def test_a_terminal_without_the_characters_is_no_error(pool):
    done = run("measure", pool, pool, stdout=subprocess.PIPE, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert "best@k, by answers" in done.stdout


def test_names_from_a_file_cannot_command_the_terminal(tmp_path):
    path = tmp_path / "pool.jsonl"
    names = ["\x1b[31mred", "lone \ud800"]
    rows = [{**GOOD, "generation": g, "scores": {names[0]: g, names[1]: 1 - g}} for g in (0, 1)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for arguments in (["diagnose", str(path)], ["diagnose", str(path), "--json"], ["measure", str(path)]):
        done = run(*arguments, stdout=subprocess.PIPE)
        assert done.returncode == 0
        assert "\x1b" not in done.stdout


def test_pools_of_one_name_are_distinguished(tmp_path, pool, capsys):
    (tmp_path / "run-0.7.jsonl").write_text((tmp_path / "pool.jsonl").read_text())
    assert main(["measure", pool, str(tmp_path / "run-0.7.jsonl")]) == 0
    assert "run-0.7 − pool" in capsys.readouterr().out
    assert main(["measure", pool, pool]) == 0
    assert f"2: {pool} − 1: {pool}" in capsys.readouterr().out


def test_nothing_heavy_is_imported_before_it_is_used():
    code = (
        "import sys, vpo, vpo.cli.main; vpo.cli.main.parser();"
        "print([name for name in ('torch', 'scipy', 'moocore', 'pyarrow', 'tqdm') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_numpy_work_never_imports_torch():
    code = (
        "import sys, numpy as np, vpo; r = np.random.rand(2, 4, 3, 4);"
        "vpo.set_reward(r, mask=np.ones((2, 4, 3))); vpo.advantages('vpo', r); vpo.best_at_k(r[..., 0, 0], [1, 2]);"
        "vpo.diversity(r); vpo.geometry(r); vpo.bootstrap(r[:, 0, 0, 0]); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
