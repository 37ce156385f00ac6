"""Plans for language tasks: warmed up or not, rates chosen on held-out problems, tested on other data."""

import json
import re

import pyarrow.parquet
import pytest

pytest.importorskip("trl")

from tests.engines.tiny import save_tiny_model
from vpo.cli.main import main
from vpo.training.plan import SETTINGS, SMALL, plan_for
from vpo.training.runs import Run

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages

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
    return pyarrow.parquet.read_table(folder / "pool.parquet").to_pylist()


def test_a_plan_for_text_needs_no_validation():
    plan = plan_for("toolrl", {"model": "there"})
    assert plan.config("there", "vpo", 1e-5, 1).max_tokens == 200
    assert plan.config("there", "vpo", 1e-5, 1).problems is None
    assert set(SMALL) <= SETTINGS
