"""Plan files of `vpo reproduce`, and methods with a learning rate of their own."""

from dataclasses import replace

import pytest

pytest.importorskip("trl")

from tests.launch import ROOT
from tests.training.test_reproduce import ONE_RUN
from vpo.cli.main import main
from vpo.training.plan import SMALL, plan_for, read_plan
from vpo.training.reproduce import chosen_rates, reproduce, validation_jobs, write_plan

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages


def written(tmp_path, text):
    path = tmp_path / "plan.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("path", sorted((ROOT / "examples" / "plans").glob("*.toml")), ids=lambda path: path.stem)
def test_the_plans_of_the_examples_can_be_read(path):
    settings = read_plan(path)
    assert plan_for(settings.pop("task"), {}, planned=settings).reference


def test_options_come_before_a_small_plan_and_that_before_a_file(tmp_path):
    path = written(tmp_path, 'task = "maze"\nsteps = 70\nseeds = 5\nkl = 0.5\nmethods = ["vpo", "grpo:rate=3e-5"]\n')
    settings = read_plan(path)
    assert settings.pop("task") == "maze"
    plan = plan_for("maze", {"steps": 9}, planned=settings, small=True)
    assert (plan.steps, plan.seeds, plan.kl) == (9, SMALL["seeds"], 0.5)
    assert plan.methods == ("vpo", "grpo:rate=3e-5")
    assert plan_for("maze", {}, planned=settings).steps == 70


def test_a_method_with_a_rate_of_its_own_is_not_tried_with_others(tmp_path):
    plan = plan_for("maze", {"methods": ("vpo", "grpo:group=4:rate=3e-5"), "rates": (1e-4, 2e-4)})
    jobs = validation_jobs(plan, tmp_path, "embedded")
    assert [(job.method, job.rate) for job in jobs] == [("vpo", 1e-4), ("vpo", 2e-4)]
    assert chosen_rates(plan, tmp_path, "embedded") == {"grpo:group=4:rate=3e-5": {"rate": 3e-5, "validation": {}}}
    assert plan.config("embedded", "grpo:group=4:rate=3e-5", 3e-5, 1).group == 4
    alone = plan_for("maze", {"methods": ("grpo:rate=3e-5",), "validation_problems": 0})
    assert not alone.chooses_rates


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("stpes = 3", "setting 'stpes' is not known: did you mean 'steps'?"),
        ("steps = [", "the file is not TOML"),
        ('steps = "3"', "steps must be an integer, not '3'"),
        ("methods = [1]", "methods must be a list of texts, not (1,)"),
        ('rates = ["1e-4"]', "rates must be a list of numbers, not ('1e-4',)"),
        ("start = 3", "start must be a table, not 3"),
        ('methods = ["grpo:rate=true"]', "rate of grpo must be a number, not True"),
        ('reference = "vop"', "reference must be one of the methods"),
        ('task = "toolrl"', "is a plan for task toolrl, not maze"),
        ("task = 5", "task must be text, not 5"),
        ("set_steps = 3", "reproduce maze has no --set-steps"),
    ],
)
def test_a_bad_plan_file_is_one_line(tmp_path, text, message, capsys):
    arguments = ["reproduce", "maze", "--plan", str(written(tmp_path, text)), "--out", str(tmp_path / "out")]
    assert main([*arguments, "--jobs", "0"]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_the_plan_of_a_folder_repeats_it(tmp_path):
    plan = plan_for("maze", {"size": 11, "methods": ("vpo", "grpo:rate=3e-5"), "reference": "grpo:rate=3e-5"})
    write_plan(plan, tmp_path)
    settings = read_plan(tmp_path / "plan.toml")
    assert plan_for(settings.pop("task"), {}, planned=settings) == plan


def test_the_reference_comes_first(tmp_path):
    plan = replace(ONE_RUN, methods=("grpo", "vpo:answers=2"), reference="vpo:answers=2")
    _, _, results = reproduce(plan, tmp_path / "out", 1)
    assert results["names"] == ["vpo:answers=2", "base", "base_single", "grpo"]
