"""The prompt format that is saved beside a model."""

import json

import pytest

from vpo.models.prompt_format import FILE, PromptFormat, format_of


def test_a_format_is_read_back_as_it_was_written(tmp_path):
    prompt_format = PromptFormat(task="maze", answers=3, max_tokens=29, target={"gold": 1.0})
    prompt_format.save(tmp_path)
    assert format_of(tmp_path) == prompt_format
    assert format_of(tmp_path / "elsewhere") is None


def test_the_format_of_an_earlier_model_is_read_by_its_former_names(tmp_path):
    (tmp_path / FILE).write_text(json.dumps({"task": "maze", "answers": 3, "tokens_per_answer": 29}))
    assert format_of(tmp_path) == PromptFormat(task="maze", answers=3, max_tokens=29)


@pytest.mark.parametrize("text", ["no JSON", "3", "{}", '{"task": "maze", "length": 3}'])
def test_another_file_of_that_name_is_refused(tmp_path, text):
    (tmp_path / FILE).write_text(text)
    with pytest.raises(ValueError, match=r"vpo\.json: this is not the prompt format of a model"):
        format_of(tmp_path)
