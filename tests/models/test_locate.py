"""A model by name, and its prompt format: as requested, or as it was trained with."""

import subprocess
import sys

import pytest

from vpo.models.locate import locate
from vpo.models.prompt_format import PromptFormat
from vpo.tasks.forms import FORMS
from vpo.util.errors import InputError

OWN = """
from vpo.tasks import Objective, Task
from vpo.tasks.forms import FORMS

class Own(Task):
    name = "own"
    summary = "a task with a form of its own"
    objectives = (Objective("length", "long"),)
    weights = (1.0,)
    form = FORMS["headings"]

    def problems(self, split="test", *, count=None):
        return []

    def question(self, problem):
        return [{"role": "user", "content": "?"}]

    def score(self, problem, answer):
        return (1.0,)
"""


def test_defaults_are_those_that_the_model_was_trained_with():
    model = locate("embedded", "maze", {"size": 7}).resolve()
    assert model.task.name == "maze"
    assert (model.answers, model.max_tokens) == (3, model.format.max_tokens) == (3, 29)
    assert model.located.settings == {"size": 7, "compact": True}


def test_explicit_settings_override_those_of_training():
    model = locate("embedded", "maze", {"size": 7}).resolve(answers=5, max_tokens=12)
    assert (model.answers, model.max_tokens) == (5, 12)
    example = [{"role": "user", "content": "?"}]
    trained = model.trained_format(example, target={"completion": 1.0})
    assert (trained.answers, trained.max_tokens, trained.most_answers) == (5, 12, 8)
    assert (trained.task, trained.task_name, trained.example) == ("maze", "maze", example)
    assert trained.target == {"completion": 1.0}


def test_a_model_of_which_nothing_is_known_has_the_defaults(tmp_path):
    model = locate(str(tmp_path), "maze", {}).resolve()
    assert (model.answers, model.max_tokens) == (1, 256)
    assert model.format == PromptFormat(task="maze")


def test_the_form_of_several_answers_is_remembered(tmp_path):
    located = locate(str(tmp_path), "countdown", {})
    assert located.settings == {"format": "tags-shot"}  # a record of them stays valid when the default changes
    trained = located.resolve(answers=3).trained_format([])
    assert trained.task_settings == {"format": "tags-shot"}
    trained.save(tmp_path)
    assert locate(str(tmp_path), None, {}).resolve().task.form is FORMS["tags-shot"]
    assert locate(str(tmp_path), None, {"format": "json"}).resolve().task.form is FORMS["json"]
    PromptFormat(task="countdown", task_name="countdown", answers=3).save(tmp_path)  # it names none: trained with tags
    assert locate(str(tmp_path), None, {}).resolve().task.form is FORMS["tags"]
    assert locate(str(tmp_path), "toolrl", {}).resolve().trained_format([]).task_settings == {}


def test_an_own_task_keeps_its_own_form(tmp_path):
    file = tmp_path / "own.py"
    file.write_text(OWN)
    PromptFormat(task=str(file), task_name="own", answers=3).save(tmp_path)
    assert locate(str(tmp_path), None, {}).resolve().task.form is FORMS["headings"]


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"answers": 9}, "answers must be at most 8 for this model, not 9"),
        ({"answers": 0}, "answers must be 1 or more, not 0"),
        ({"max_tokens": 0}, "max_tokens must be 1 or more, not 0"),
    ],
)
def test_numbers_that_the_model_does_not_support_are_refused(numbers, message):
    with pytest.raises(InputError, match=message):
        locate("embedded", "maze", {"size": 7}).resolve(**numbers)


def test_importing_the_package_imports_no_torch():
    heavy = "{'torch', 'transformers', 'trl', 'datasets'} & set(sys.modules)"
    code = f"import sys, vpo.models, vpo.models.warmup, vpo.models.build, vpo.models.serve; print({heavy})"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "set()"
