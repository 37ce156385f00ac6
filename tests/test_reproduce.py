"""Every method side by side: planned, trained, evaluated, and not done twice."""

import json
import re
from dataclasses import replace

import pytest

pytest.importorskip("trl")

from vpo.cli import main
from vpo.plan import SMALL, Plan, split_method
from vpo.reproduce import reproduce

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages

TINY = ["--model", "embedded", "--methods", "grpo,vpo_anchored:anchor=0.8", "--rates", "1e-4,2e-4", "--seeds", "2"]
TINY += ["--steps", "1", "--prompts", "2", "--group", "2", "--problems", "4", "--validation", "3", "--test", "4"]
TINY += ["--pool", "6"]


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
    for place, name in enumerate(results["names"]):
        measures = {(each["section"], each["by"], each["at"]): each["values"][place] for each in results["measures"]}
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
        *(["grpo", 0], ["grpo", 1], ["base", 0], ["base_single", 0]),
        *(["vpo_anchored:anchor=0.8", 0], ["vpo_anchored:anchor=0.8", 1]),
    ]
    (rated,) = [table for title, table in tables.items() if title.startswith("Learning rates")]
    assert rated["head"] == ["method", "chosen", "0.0001", "0.0002"]
    assert rated["rows"][0][2:] == list(rates["validation"].values())
    before = {path: path.stat().st_mtime_ns for path in (out / "runs").rglob("eval.json")}
    assert main(arguments) == 0
    assert {path: path.stat().st_mtime_ns for path in (out / "runs").rglob("eval.json")} == before
    assert main([*arguments, "--steps", "2"]) == 2
    assert "there is another plan in it already" in capsys.readouterr().err


def test_a_run_that_fails_is_named_and_the_others_are_done(tmp_path):
    plan = replace(
        SMALL, model="embedded", methods=("goal_conditioned", "grpo"), steps=1, prompts=2, group=2, problems=2,
        validation=2, test=2, pool=3,
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"1 of 4 runs failed: .*goal_conditioned.* never learned to read"):
        reproduce(plan, tmp_path, 1)
    assert (tmp_path / "runs" / "grpo-0.0002-0" / "validation" / "eval.json").is_file()


def test_methods_have_settings():
    assert split_method("vpo") == ("vpo", {})
    assert split_method("vpo_anchored:anchor=0.7:answers=4") == ("vpo_anchored", {"anchor": 0.7, "answers": 4})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"methods": ("gpro",)}, "method 'gpro' is not known: did you mean 'grpo'"),
        ({"methods": ("vpo:anchor=1",)}, "vpo has no setting 'anchor'"),
        ({"methods": ("vpo_anchored:anchor",)}, "a setting of a method must be written KEY=NUMBER, not 'anchor'"),
        ({"methods": ()}, "methods must name 1 or more"),
        ({"rates": ()}, "rates must name 1 or more"),
        ({"seeds": 0}, "seeds must be 1 or more, not 0"),
    ],
)
def test_bad_plans_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Plan(**settings)


def test_another_task_is_refused(capsys):
    assert main(["reproduce", "toolrl"]) == 2
    assert "there is nothing to reproduce of task 'toolrl'" in capsys.readouterr().err
