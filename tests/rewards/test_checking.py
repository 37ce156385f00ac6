import json

import pytest

from vpo.cli.main import main

REWARDS = """
[size]
kind = "function"
function = "mine.py:size"
calibration = {range = [0, 4]}

[short]
kind = "length"
most = 2
"""
SIZE = """
def size(completions, **kwargs):
    return [None if text == "?" else len(text) / (text != "!") for text in completions]
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "mine.py").write_text(SIZE)
    (tmp_path / "rewards.toml").write_text(REWARDS)

    def write(*answers):
        rows = [{"prompt": "Say it.", "answer": answer} for answer in answers]
        (tmp_path / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return ["rewards", str(tmp_path / "rewards.toml"), str(tmp_path / "answers.jsonl")]

    return write


def test_the_quantiles_and_the_clipped_share(files, capsys):
    assert main([*files("a", "abc", "abcdef", ""), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    size, short = result["objectives"]
    assert result["answers"] == 4
    assert size == {
        "name": "size",
        "abstained": 0,
        "clipped": 0.25,  # abcdef
        "mean": 0.5,  # of 0.25, 0.75, 1 and 0
        "least": 0.0,
        "lower": 0.1875,
        "median": 0.5,
        "upper": 0.8125,
        "most": 1.0,
    }
    assert (short["clipped"], short["mean"]) == (None, 1.0)
    assert result["scoring"]["scorers"][0]["calibration"] == {"size": {"range": [0.0, 4.0]}}


def test_a_reward_that_abstains_exits_with_1(files, capsys):
    assert main(files("ab", "?")) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "2 answers"
    assert lines[2].split() == ["size", "0.500", "0.500", "0.500", "0.500", "0.500", "0.500", "0.0%", "1"]
    assert main(files("?")) == 1
    assert main(files("ab", "!")) == 1
    assert "vpo: warning: reward size raised ZeroDivisionError: " in capsys.readouterr().err
    assert main(files("?")) == 1
    assert "size" in capsys.readouterr().out


def test_a_file_without_answers_is_refused(files, capsys):
    assert main(files()) == 2
    assert "must hold 1 or more answers" in capsys.readouterr().err


RIGHT = """
def right(completions, answer, **kwargs):
    return [float(text == gold) for text, gold in zip(completions, answer, strict=True)]
"""


def test_the_text_to_score_is_not_the_column_of_correct_answers(tmp_path, capsys):
    (tmp_path / "mine.py").write_text(RIGHT)
    rewards, answers = tmp_path / "rewards.toml", tmp_path / "answers.jsonl"
    rewards.write_text('[right]\nkind = "function"\nfunction = "mine.py:right"\n')
    answers.write_text(json.dumps({"prompt": "1 + 1?", "answer": "3"}))
    assert main(["rewards", str(rewards), str(answers)]) == 2
    error = capsys.readouterr().err
    assert "needs the column 'answer' in every row; the text to score may stand in completion" in error
    rows = [{"prompt": "1 + 1?", "answer": "2", "completion": text} for text in ("2", "3", "2", "5")]
    answers.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["rewards", str(rewards), str(answers), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["objectives"][0]["mean"] == 0.5
