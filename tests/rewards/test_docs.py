"""The examples of docs/rewards.md."""

import re
import textwrap
from dataclasses import fields

import pytest

from tests.launch import ROOT
from vpo.cli.main import main
from vpo.rewards import JudgeConfig, VectorReward

DOCS = (ROOT / "docs" / "rewards.md").read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", DOCS, re.DOTALL)


def test_the_first_example_prints_what_the_page_shows(tmp_path, capsys):
    (tmp_path / "my_rewards.py").write_text(blocks("python")[0])
    (tmp_path / "rewards.toml").write_text(blocks("toml")[0])
    (tmp_path / "answers.jsonl").write_text(blocks("json")[0])
    assert main(["rewards", str(tmp_path / "rewards.toml"), str(tmp_path / "answers.jsonl")]) == 0
    shown = re.search(r"    3 answers\n(?:    .*\n)+", DOCS).group()
    assert capsys.readouterr().out == textwrap.dedent(shown)


def test_the_scorer_of_the_page_sees_the_other_answers():
    namespace = {}
    exec(blocks("python")[2], namespace)
    task = VectorReward(namespace["Rare"]()).task([{"prompt": "Ask for tea."}])
    assert task.score_sets(task.problems("train"), [["a", "a", "b"]]) == [[(0.5,), (0.5,), (1.0,)]]


@pytest.mark.parametrize("setting", [field.name for field in fields(JudgeConfig)])
def test_every_setting_of_a_judge_is_in_its_table(setting):
    table = DOCS.partition("## A judge")[2].partition("**Prompt.**")[0]
    assert f"`{setting}`" in table
