"""Every method side by side: planned, trained, evaluated, and not done twice."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

pytest.importorskip("trl")

from vpo.cli.main import main
from vpo.search.result import read_result
from vpo.training.plan import PlannedMethod, parse_method, plan_for
from vpo.training.reproduce import reproduce
from vpo.training.runs import Run

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages

TINY = ["--model", "embedded", "--methods", "grpo,vpo_anchored:anchor=0.8", "--rates", "1e-4,2e-4", "--seeds", "2"]
TINY += ["--steps", "1", "--prompts-per-step", "2", "--group", "2", "--problems", "4", "--pool", "6"]
TINY += ["--validation-problems", "3", "--test-problems", "4"]
ONE_RUN = plan_for("maze", {
    "size": 7, "model": "embedded", "methods": ("grpo",), "rates": (2e-4,), "seeds": 1, "steps": 1,
    "prompts_per_step": 2, "group": 2, "problems": 2, "validation_problems": 0, "test_problems": 2, "pool": 2,
})  # fmt: skip


@pytest.mark.slow
def test_everything_is_trained_once_and_shown(tmp_path, capsys):
    out = tmp_path / "out"
    arguments = ["reproduce", "maze", "--small", *TINY, "--out", str(out)]
    assert main(arguments) == 0
    said = capsys.readouterr().out
    for name in ("grpo", "vpo_anchored:anchor=0.8", "base", "base_single"):
        assert name in said
    results = json.loads((out / "results.json").read_text())
    assert results["names"] == ["grpo", "base", "base_single", "vpo_anchored:anchor=0.8"]
    assert {name: len(seeds) for name, seeds in results["seeds"].items()} == {
        **{"grpo": 2, "vpo_anchored:anchor=0.8": 2},
        **{"base": 1, "base_single": 1},
    }
    rates = results["rates"]["grpo"]
    assert rates["rate"] == float(max(rates["validation"], key=rates["validation"].get))
    for index, name in enumerate(results["names"]):
        measures = {(each["section"], each["by"], each["at"]): each["values"][index] for each in results["measures"]}
        seeds = [
            {(each["section"], each["by"], each["at"]): each["mean"] for each in seed}
            for seed in results["seeds"][name]
        ]
        for key in (("best@k", "answers", 3), ("diversity", "", "l1"), ("share of the oracle", "answers", 5)):
            assert measures[key]["mean"] == pytest.approx(sum(seed[key] for seed in seeds) / len(seeds))
    page = (out / "report.html").read_text()
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL).group(1))
    tables = {table["title"]: table for table in data["tables"]}
    assert [row[:2] for row in tables["Every seed"]["rows"]] == [
        *(["grpo", 1], ["grpo", 2], ["base", 1], ["base_single", 1]),
        *(["vpo_anchored:anchor=0.8", 1], ["vpo_anchored:anchor=0.8", 2]),
    ]
    (rated,) = [table for title, table in tables.items() if title.startswith("Learning rates")]
    assert rated["head"] == ["method", "chosen", "0.0001", "0.0002"]
    assert rated["rows"][0][2:] == list(rates["validation"].values())
    (cost,) = [table for title, table in tables.items() if title.startswith("Cost of training")]
    assert [row[0] for row in cost["rows"]] == ["grpo", "vpo_anchored:anchor=0.8"]
    for name, rollouts, tokens, seconds in cost["rows"]:
        assert results["costs"][name] == pytest.approx(
            {"rollouts": rollouts, "tokens": tokens, "seconds": seconds}, abs=1
        )
        assert rollouts == 4  # 1 step of 2 mazes and 2 rollouts
        assert tokens > rollouts
        assert results["costs"][name]["seconds"] > 0
    assert results["costs"]["base"] is None
    shown = (out / "tables.md").read_text()
    assert shown.count("### ") == len(data["tables"])
    assert f"| grpo | 4 | {cost['rows'][0][2]:,} |" in shown
    searches = tmp_path / "searches"
    search = ["search", str(out), "--problems", "2", "--target", "gold=1", "--iterations", "2", "--processes", "0"]
    assert main([*search, "--no-baseline", "--out", str(searches)]) == 0
    searched = json.loads((searches / "results.json").read_text())
    assert searched["names"] == [f"{name} evolve" for name in results["names"]]
    assert {path.name for path in searches.iterdir() if path.is_dir()} == {
        *(f"{name}-{seed}-evolve" for name in ("grpo", "vpo_anchored:anchor=0.8") for seed in (1, 2)),
        *("base-evolve", "base_single-evolve"),
    }
    (counts,) = [table for table in searched["tables"] if table["title"].startswith("Solved within")]
    for name, *row in counts["rows"]:
        folders = sorted(searches.glob(f"{name.removesuffix(' evolve')}-*evolve"))
        seeds = [read_result(folder) for folder in folders]
        assert row[-1] == pytest.approx(sum(len(each.solved) for each in seeds) / len(seeds), abs=0.05)
    chosen = [*search, "--no-baseline", "--out", str(tmp_path / "chosen"), "--names"]
    assert main([*chosen, "grpo,base"]) == 0
    assert json.loads((tmp_path / "chosen" / "results.json").read_text())["names"] == ["grpo evolve", "base evolve"]
    assert main([*chosen, "gpro"]) == 2
    assert "names must be ones that" in capsys.readouterr().err
    assert main(["search", "embedded", "--task", "maze", "--names", "grpo", "--out", str(tmp_path / "none")]) == 2
    assert "none is among the models" in capsys.readouterr().err
    before = {path: path.stat().st_mtime_ns for path in (out / "runs").rglob("eval.json")}
    assert main(arguments) == 0
    assert {path: path.stat().st_mtime_ns for path in (out / "runs").rglob("eval.json")} == before
    assert main([*arguments, "--steps", "2"]) == 2
    assert "holds another plan, or " in capsys.readouterr().err


def test_a_run_that_fails_is_named_and_the_others_are_done(tmp_path):
    plan = replace(ONE_RUN, methods=("goal_conditioned", "grpo"), test_problems=2, pool=3)
    with pytest.raises(ValueError, match=r"1 of 4 runs failed: .*goal_conditioned.* never learned to read"):
        reproduce(plan, tmp_path, 2)
    assert (tmp_path / "runs" / "grpo-0.0002-1" / "eval.json").is_file()


def test_a_method_that_fails_on_validation_problems_does_not_stop_the_others(tmp_path):
    rates = {"rates": (1e-4, 2e-4), "validation_problems": 2}
    plan = replace(ONE_RUN, methods=("goal_conditioned", "grpo"), pool=3, **rates)
    with pytest.raises(ValueError, match=r"2 of 7 runs failed: .*goal_conditioned.* never learned to read"):
        reproduce(plan, tmp_path, 2)
    assert len(list((tmp_path / "runs").glob("grpo-*-0/validation/eval.json"))) == 2
    assert len(list((tmp_path / "runs").glob("grpo-*-1/eval.json"))) == 1
    assert (tmp_path / "runs" / "base" / "eval.json").is_file()


def test_an_evaluation_that_was_cut_off_is_made_again(tmp_path):
    plan = ONE_RUN
    reproduce(plan, tmp_path, 2)
    facts = tmp_path / "runs" / "grpo-0.0002-1" / "eval.json"
    facts.unlink()  # its pool is there
    reproduce(plan, tmp_path, 1)
    assert facts.is_file()


@pytest.fixture
def begun(tmp_path):
    """A reproduction in a process of its own, once its first run trains; and where its runs are."""
    command = [sys.executable, "-W", "ignore", "-m", "vpo", "reproduce", "maze", "--small", *TINY, "--steps", "400"]
    process = subprocess.Popen(
        [*command, "--out", "out"],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        start_new_session=True,
    )
    runs = tmp_path / "out" / "runs"
    try:
        while not list(runs.glob("*/metrics.jsonl")):
            assert process.poll() is None
            time.sleep(0.05)
        yield process, runs
    finally:
        process.kill()  # and with it its runs
        process.wait()


def test_ctrl_c_stops_what_runs_and_begins_nothing_else(begun):
    process, runs = begun
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    assert process.wait(timeout=120) == 130
    (only,) = [path for path in runs.iterdir() if (path / "config.toml").is_file()]
    assert Run(only).latest_checkpoint() is not None
    assert not Run(only).finished


def test_runs_end_with_a_parent_that_is_killed(begun):
    process, runs = begun
    process.kill()
    process.wait()
    (log,) = runs.glob("*/metrics.jsonl")
    run = Run(log.parent)
    deadline = time.monotonic() + 60
    while True:
        try:
            with run.lock():  # nobody trains it any longer
                break
        except ValueError:
            assert time.monotonic() < deadline
            time.sleep(0.1)
    assert run.latest_checkpoint() is not None
    assert not run.finished


def test_methods_have_settings():
    assert parse_method("vpo") == PlannedMethod("vpo", {})
    assert parse_method("vpo_anchored:anchor=0.7:answers=4") == PlannedMethod(
        "vpo_anchored", {"anchor": 0.7, "answers": 4}
    )
    assert parse_method("max_at_k:k=4:group=24") == PlannedMethod("max_at_k", {"k": 4}, 24)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"methods": ("gpro",)}, "method 'gpro' is not known: did you mean 'grpo'"),
        ({"methods": ("vpo:anchor=1",)}, "vpo has no setting 'anchor'"),
        ({"methods": ("vpo_anchored:anchor",)}, "a setting of a method must be written KEY=VALUE, not 'anchor'"),
        ({"methods": ()}, "methods must name 1 or more"),
        ({"rates": ()}, "rates must name 1 or more"),
        ({"seeds": 0}, "seeds must be 1 or more, not 0"),
        ({"rates": (1e-4, 1e-4)}, "rates must name each once, not 0.0001, 0.0001"),
        ({"pool": 10}, "pool must be a multiple of the 3 answers of multi_rlvr, not 10"),
        ({"validation_problems": 0}, "validation_problems must be 1 or more, not 0"),
        ({"policy_batch": 0}, "policy_batch must be 1 or more, not 0"),
        ({"policy_width": 33}, "width must be a multiple of 32, not 33"),
        ({"size": 8}, "size must be odd and 7 or more, not 8"),
        ({"steps": 0}, "steps must be 1 or more, not 0"),
    ],
)
def test_bad_plans_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        plan_for("maze", settings)


def test_a_wrong_model_leaves_no_plan(tmp_path, capsys):
    out = str(tmp_path / "out")
    assert main(["reproduce", "maze", "--small", "--model", "./nowhere", "--out", out]) == 2
    assert "./nowhere: no such folder\n" in capsys.readouterr().err
    assert main(["reproduce", "maze", "--small", "--jobs", "0", "--out", out]) == 2
    assert "jobs must be 1 or more, not 0" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_plan_that_takes_days_is_announced(tmp_path, monkeypatch):
    arguments = ["reproduce", "maze", "--jobs", "0", "--out", str(tmp_path / "out")]
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.warns(UserWarning, match="there is no GPU"):
        assert main(arguments) == 2
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert main(arguments) == 2  # without a warning, which would be an error here
