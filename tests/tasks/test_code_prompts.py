"""What reads only the prompts of problems does not wait for their solutions to be run."""

import json
import subprocess
import sys

import pytest

from tests.tasks import code_rows
from vpo.cli.main import main
from vpo.engines.prompts import task_rows
from vpo.engines.reward import reward_function
from vpo.engines.verl.export import Export, write_export
from vpo.tasks import get
from vpo.tasks.code import CodeTask
from vpo.tasks.code.answers import extract_program
from vpo.tasks.forms import FORMS


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Rows of which only the first can be run."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    rows = [code_rows.mbppplus_row()]
    rows += [
        code_rows.mbppplus_row(task_id=f"Mbpp/{number}", canonical_solution="def (") for number in range(9002, 9005)
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.fixture
def no_sandbox(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a program was run")

    monkeypatch.setattr("vpo.sandbox.shared", refuse)


@pytest.mark.parametrize("method", ["vpo", "grpo", "vpo_marginal"])
def test_the_prompts_of_a_reward_function_run_nothing(data, no_sandbox, method):
    task = CodeTask(data=data)
    assert len(task_rows(reward_function(task, method, problems=task.problems(), group=4))) == 4


def test_an_export_for_verl_runs_nothing(data, no_sandbox, tmp_path):
    export = Export(task="code", task_settings={"data": data})
    assert write_export(export, tmp_path / "out", train="test") == {"train.parquet": 4}


def test_prompts_that_state_a_weighting_need_the_number_of_tests(data):
    task = CodeTask(data=data)
    reward = reward_function(task, "goal_conditioned", problems=task.problems(count=1), group=4)
    (row,) = task_rows(reward)
    assert "test_16" in row["prompt"][-1]["content"]


@pytest.mark.parametrize("form", FORMS)
def test_a_problem_that_reads_standard_input_has_an_example_that_does(form, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(code_rows.codecontests_row()))
    task = get("code", data=str(path), format=form)
    (problem,) = task.problems()
    text = "".join(message["content"] for message in task.ask(problem, 3))
    example = task.example_for(problem)
    assert FORMS[form].write(example.answers) in text
    assert "def mean" not in text
    assert task.read(FORMS[form].write(example.answers), 3).strict == [True] * 3
    programs = [extract_program(each) for each in example.answers]
    assert [run_program(each, "3 4 -2\n") for each in programs] == ["5\n"] * 3
    forms = [task.normal_form(each) for each in example.answers]
    assert None not in forms
    assert len(set(forms)) == 3


def run_program(source, text):
    done = subprocess.run([sys.executable, "-c", source], input=text, capture_output=True, text=True, check=True)
    return done.stdout


def test_showing_a_problem_runs_no_solution_but_its_own(data, capsys):
    assert main(["tasks", "show", "code", "--data", data, "--answers", "3"]) == 0
    assert "test_1 1" in capsys.readouterr().out
