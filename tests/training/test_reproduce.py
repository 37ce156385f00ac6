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

from tests.engines.tiny import save_tiny_model
from vpo.cli.main import main
from vpo.search.result import read_result
from vpo.training.plan import SETTINGS, SMALL, PlannedMethod, parse_method, plan_for
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
LETTERS = """
from dataclasses import dataclass
from vpo.tasks import Objective, Task

@dataclass(frozen=True)
class Request:
    id: str

class Letters(Task):
    name = "letters"
    summary = "words with many vowels and many consonants"
    objectives = (Objective("vowels", "share of vowels"), Objective("others", "share of other letters"))
    weights = (0.5, 0.5)
    wraps_single = False

    def __init__(self, *, data: str | None = None):
        self.data = data

    def problems(self, split="test", *, count=None):
        name = split if self.data is None else f"{split}-{self.data}"
        return [Request(f"{name}-{number}") for number in range(count or 30)]

    def question(self, problem):
        return [{"role": "user", "content": problem.id}]

    def score(self, problem, answer):
        vowels = sum(letter in "aeiou" for letter in answer) / max(1, len(answer))
        return vowels, 1 - vowels

    def gold(self, problem):
        return "aba"
"""


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


def test_a_language_model_is_warmed_up_and_evaluated_several_times(tmp_path, capsys):
    (tmp_path / "letters.py").write_text(LETTERS)
    model, out = save_tiny_model(tmp_path / "tiny"), tmp_path / "out"
    arguments = [
        "reproduce",
        "--task-file",
        str(tmp_path / "letters.py"),
        "--small",
        "--model",
        str(model),
        "--methods",
        "grpo,vpo",
    ]
    arguments += ["--rates", "1e-4", "--steps", "1", "--prompts-per-step", "2", "--group", "2", "--problems", "4"]
    arguments += ["--test-problems", "3"]
    arguments += ["--pool", "6", "--evaluations", "2", "--max-tokens", "8", "--single-steps", "2"]
    arguments += ["--set-steps", "2", "--out", str(out), "--jobs", "2"]
    assert main(arguments) == 0
    assert "letters: every method" in (out / "report.html").read_text()
    results = json.loads((out / "results.json").read_text())
    assert {name: len(seeds) for name, seeds in results["seeds"].items()} == dict.fromkeys(results["names"], 2)
    assert results["rates"]["vpo"] == {"rate": 1e-4, "validation": {}}
    page = json.loads(re.search(r'id="data">(.*?)</script>', (out / "report.html").read_text(), re.DOTALL).group(1))
    (seeds,) = [table for table in page["tables"] if table["title"].startswith("Every seed")]
    assert seeds["head"][:3] == ["run", "seed", "pool"]
    assert [row[1:3] for row in seeds["rows"] if row[0] == "vpo"] == [[1, 1], [1, 2]]
    assert results["costs"]["vpo"]["rollouts"] == 4
    run = out / "runs" / "vpo-0.0001-1"
    first, second = (json.loads((run / folder / "eval.json").read_text()) for folder in (".", "evaluations/2"))
    assert (first["sampling"]["seed"], second["sampling"]["seed"]) == (0, 1)
    assert Run(run).config().model == str(out / "policy")
    assert Run(run).config().max_tokens == 8
    (run / "evaluations" / "2" / "eval.json").unlink()
    before = (run / "eval.json").stat().st_mtime_ns
    assert main(arguments) == 0
    assert (run / "evaluations" / "2" / "eval.json").is_file()
    assert (run / "eval.json").stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["toolrl"], "toolrl needs a language model to start from: give --model"),
        (["toolrl", "--model", "m", "--size", "9"], "reproduce toolrl has no --size"),
        (["toolrl", "--model", "m", "--rates", "1e-5,1e-6"], "validation_problems must be 1 or more, not 0"),
        (["toolrl", "--model", "m", "--set-problems", "0"], "set_problems must be 1 or more, not 0"),
        (["maze", "--set-steps", "3"], "reproduce maze has no --set-steps"),
        (["maze", "--data", "there"], "data, test-data and set are for language tasks; mazes take --size"),
        (["maze", "--test-data", "there"], "data, test-data and set are for language tasks; mazes take --size"),
        (["chess", "--model", "m"], "task 'chess' is not known"),
    ],
)
def test_what_a_task_has_no_plan_for_is_refused(arguments, message, capsys):
    assert main(["reproduce", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_language_plan_chooses_rates_on_held_out_problems_and_tests_on_other_data(tmp_path, capsys):
    (tmp_path / "letters.py").write_text(LETTERS)
    model, out = save_tiny_model(tmp_path / "tiny"), tmp_path / "out"
    arguments = ["reproduce", "--task-file", str(tmp_path / "letters.py"), "--model", str(model), "--methods", "grpo"]
    arguments += ["--single-steps", "0", "--set-steps", "0", "--lora", "2", "--rates", "1e-4,2e-4", "--split", "all"]
    arguments += ["--validation-problems", "5", "--test-problems", "3", "--test-data", "other", "--evaluations", "1"]
    arguments += ["--steps", "1", "--prompts-per-step", "2", "--group", "2", "--pool", "4", "--max-tokens", "8"]
    assert main([*arguments, "--out", str(out)]) == 0
    capsys.readouterr()
    results = json.loads((out / "results.json").read_text())
    chosen = results["rates"]["grpo"]
    for rate, score in chosen["validation"].items():
        run = Run(out / "runs" / f"grpo-{float(rate):g}-0")
        *_, last = [json.loads(line) for line in run.evaluations.read_text().splitlines()]
        assert last["problems"] == 5
        assert score == pytest.approx((last["best@1"] + last["best@3"] + last["best@5"]) / 3)
    scores = {float(rate): score for rate, score in chosen["validation"].items()}
    assert set(scores) == {1e-4, 2e-4}
    assert scores[chosen["rate"]] == max(scores.values())
    reported = Run(out / "runs" / f"grpo-{chosen['rate']:g}-1")
    config = reported.config()
    assert (config.eval_every, config.lora, config.split, config.task_settings) == (None, 2, "all", {})
    for folder in (reported.folder, out / "runs" / "base"):
        facts = json.loads((folder / "eval.json").read_text())
        assert facts["task_settings"]["data"] == "other"
        assert facts["sampling"]["max_new_tokens"] == 8 * facts["answers_per_generation"]
    assert {row["problem"] for row in read_pool_rows(reported.folder)} == {f"test-other-{n}" for n in range(3)}


def read_pool_rows(folder):
    import pyarrow.parquet

    return pyarrow.parquet.read_table(folder / "pool.parquet").to_pylist()


def test_a_plan_for_text_needs_no_validation():
    plan = plan_for("toolrl", {"model": "there"})
    assert plan.config("there", "vpo", 1e-5, 1).max_tokens == 200
    assert plan.config("there", "vpo", 1e-5, 1).problems is None
    assert set(SMALL) <= SETTINGS
