"""What holds for every task, and how users add their own."""

import json
from importlib.util import find_spec
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tasks.rows import eureqa_row, musique_row, toolrl_row
from vpo import advantages, set_reward
from vpo.methods import get as get_method
from vpo.tasks import find, get, names, register, settings_of
from vpo.tasks.answers import write
from vpo.tasks.eureqa import EureqaTask
from vpo.tasks.eureqa import _problem as eureqa_problem
from vpo.tasks.math.competition import CompetitionTask
from vpo.tasks.math.competition import _problem as competition_problem
from vpo.tasks.math.countdown import CountdownProblem, CountdownTask
from vpo.tasks.math.gsm8k import Gsm8kTask
from vpo.tasks.math.gsm8k import _problem as gsm8k_problem
from vpo.tasks.maze import MazeTask
from vpo.tasks.musique import MusiqueTask
from vpo.tasks.musique import _problem as musique_problem
from vpo.tasks.toolrl import ToolrlTask
from vpo.tasks.toolrl.data import from_rlla

CALL = '<think>t</think><tool_call>\n{"name": "f", "parameters": {"x": [1, true], "y": "a b"}}\n</tool_call>'
PROBLEMS = {
    "maze": (MazeTask(), MazeTask().problems(count=1)[0]),
    "musique": (MusiqueTask(), musique_problem(musique_row(3), "here")),
    "eureqa": (EureqaTask(), eureqa_problem(eureqa_row(), "e", "here")),
    "toolrl": (ToolrlTask(), from_rlla(toolrl_row(CALL), "t", "here")),
    "countdown": (CountdownTask(), CountdownProblem("c", (3, 5, 10), 53)),
}
work = {"question": "What is twice 3 + 4?", "answer": "3 + 4 = <<3+4=7>>7\n7 * 2 = 14\n#### 14"}
PROBLEMS["gsm8k"] = Gsm8kTask(), gsm8k_problem(work, "g", "here")
if find_spec("math_verify"):
    boxed = {"problem": "What is half of one?", "solution": r"It is $\boxed{\frac{1}{2}}$."}
    PROBLEMS["math"] = CompetitionTask(), competition_problem(boxed, "m", "here")
PIECES = [
    *("<answer>", "</answer>", "<answer_1>", "</answer_1>", "<answer_2>", "</answer_2>", "<think>", "</think>"),
    *("<support>", "</support>", "<tool_call>", "</tool_call>", "<response>", "</response>", "\n", " ", "3", "99"),
    *('{"name": "f", "parameters": {"x": 1}}', '{"name": "f"', "[[[[", "null", "U", "RRRR", "A: Ada", "B:", "\x00"),
    *("#### ", r"\boxed{", "}", "3 + 4 = 7", "<<7*2=14>>", "14", "(", "5 * 10", r"\frac", "{1}", "50%", "^", "="),
]
anything = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=8))).map("".join)


@pytest.mark.parametrize("name", PROBLEMS)
@given(completion=anything, answers=st.integers(1, 4))
def test_any_text_yields_vectors_and_never_raises(name, completion, answers):
    task, problem = PROBLEMS[name]
    parsed = task.parse(completion, answers)
    assert len(parsed) == answers
    vectors = np.asarray(task.score_all([problem] * answers, parsed))
    assert vectors.shape == (answers, len(task.objectives))
    assert ((vectors >= 0) & (vectors <= 1)).all()
    for answer, vector in zip(parsed, vectors, strict=True):
        assert isinstance(task.solved(vector), bool)
        if answer is not None:
            hash(task.normal_form(answer))


@pytest.mark.parametrize("name", PROBLEMS)
@given(text=anything)
def test_any_answer_yields_a_vector(name, text):
    task, problem = PROBLEMS[name]
    vector = task.score(problem, text)
    assert len(vector) == len(task.objectives)
    assert all(0 <= score <= 1 for score in vector)


@pytest.mark.parametrize("name", PROBLEMS)
@given(texts=st.lists(anything, min_size=3, max_size=3), order=st.permutations(range(3)), copied=st.integers(0, 2))
def test_the_set_reward_of_any_answers_ignores_order_and_copies(name, texts, order, copied):
    task, problem = PROBLEMS[name]
    texts[copied] = task.gold(problem)
    rewards = np.asarray(task.score_all([problem] * 3, texts))
    assert set_reward(rewards[list(order)]) == pytest.approx(set_reward(rewards), abs=1e-12)
    with_copy = np.vstack([rewards, rewards[copied]])
    assert set_reward(with_copy) == pytest.approx(set_reward(rewards), abs=1e-12)
    weights = np.asarray(task.weights)
    assert (with_copy @ weights).sum() > (rewards @ weights).sum()  # the reward of multi_rlvr that counts copies


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_set_reward_and_multi_rlvr_ignore_order_and_duplicates(name):
    task, problem = PROBLEMS[name]
    gold = task.gold(problem)
    poor = {
        **{"maze": "R", "musique": "<answer>x</answer>", "eureqa": "A: x\nB: Long Film", "toolrl": CALL[:16]},
        **{"countdown": "3 + 5", "gsm8k": "3 + 4 = 7\n#### 15", "math": r"\boxed{2}"},
    }[name]

    def rewards(*texts):
        return np.asarray(task.score_all([problem] * 3, task.parse(write(texts), 3)))

    def total(matrix):
        return float((matrix @ np.asarray(task.weights)).sum())

    one, other = rewards(gold, poor, ""), rewards("", poor, gold)
    assert set_reward(one) == pytest.approx(set_reward(other))
    twice = rewards(gold, gold, "")
    assert set_reward(twice) == pytest.approx(set_reward(rewards(gold, "", "")))
    assert total(twice) == pytest.approx(2 * total(rewards(gold, "", "")))
    # In a group of three, a copy of the gold answer adds nothing, unless multi_rlvr is told to count it.
    group = np.stack([twice, rewards(gold, "", ""), rewards("", "", "")])[None]
    assert advantages("vpo", group)[0, 0] == pytest.approx(advantages("vpo", group)[0, 1])
    assert advantages("multi_rlvr", group)[0, 0] == pytest.approx(advantages("multi_rlvr", group)[0, 1])
    plain = advantages(get_method("multi_rlvr", count_copies=True), group)
    assert plain[0, 0] > plain[0, 1] + 0.5


@pytest.mark.parametrize("name", PROBLEMS)
def test_an_answer_in_the_answer_of_another_counts_once(name):
    task, problem = PROBLEMS[name]
    nested = f"<answer_1><answer_2><answer_3>{task.gold(problem)}</answer_3></answer_2></answer_1>"
    vectors = np.asarray(task.score_all([problem] * 3, task.parse(nested, 3)))
    assert (vectors.sum(axis=1) > 0).sum() == 1


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_very_long_answer_scores_no_more(name):
    task, problem = PROBLEMS[name]
    for text in (task.gold(problem) + " x" * 500_000, "x " * 500_000 + task.gold(problem), "<" * 1_000_000):
        assert sum(task.score(problem, text)) <= sum(task.expected(problem))


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_gold_answer_scores_as_it_should_and_solves(name):
    task, problem = PROBLEMS[name]
    assert list(task.validate([problem])) == [None]
    assert task.solved(task.score(problem, task.gold(problem)))
    assert not task.solved([0.0] * len(task.objectives))
    assert task.demonstrations(problem, 3, Random(0))


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_target_is_written_into_the_prompt(name):
    task, problem = PROBLEMS[name]
    target = [1.0] + [0.0] * (len(task.objectives) - 1)
    content = task.ask(problem, 2, target)[-1]["content"]
    assert f"{task.names[0]} 100%" in content
    assert f"{task.names[1]} 0%" in content
    assert f"{task.names[0]} 100%" not in task.ask(problem, 2)[-1]["content"]
    with pytest.raises(ValueError, match="target must hold"):
        task.ask(problem, 2, [1.0])
    with pytest.raises(ValueError, match="target must sum to 1"):
        task.ask(problem, 2, [2.0, *target[1:]])


@pytest.mark.parametrize("name", PROBLEMS)
def test_objectives_and_weights_fit(name):
    task, _ = PROBLEMS[name]
    assert task.name == name
    assert sum(task.weights) == pytest.approx(1)
    assert len(task.weights) == len(task.objectives)
    assert all(objective.meaning for objective in task.objectives)


def test_weights_are_as_published():
    assert MusiqueTask.weights == pytest.approx((1 / 7,) * 4 + (3 / 7,))
    for task in (MazeTask, EureqaTask, ToolrlTask):
        assert len(set(task.weights)) == 1


# Tasks of users

OWN = (Path(__file__).parents[2] / "examples" / "own_task.py").read_text()


@pytest.fixture
def own_file(tmp_path):
    path = tmp_path / "own_task.py"
    path.write_text(OWN)
    return path


def test_a_task_of_a_file(own_file):
    task = get(str(own_file), count=3)
    problems = task.problems(count=3)
    assert list(task.validate(problems)) == [None] * 3
    one = problems[0].numbers[0]
    vectors = np.asarray(
        task.score_all([problems[0]] * 4, task.parse(write([f"{one}", f"{one}, {one}, {one}", "none", ""]), 4))
    )
    assert vectors[0].tolist() == [one / problems[0].goal, pytest.approx(2 / 3)]
    assert vectors[2].tolist() == vectors[3].tolist() == [0, 0]
    assert "Choose some of" in task.ask(problems[0], 2)[0]["content"]
    assert settings_of(find(str(own_file))) == {"count": 6}


def test_a_registered_task_is_known_by_its_name(own_file, monkeypatch):
    monkeypatch.setattr("vpo.tasks.registry._REGISTERED", {})
    register(own_file)
    assert "reach" in names()
    assert get("reach").name == "reach"
    with pytest.raises(ValueError, match="task 'raech' is not known: did you mean 'reach'"):
        get("raech")


def test_tasks_of_other_packages_are_known_by_their_entry_point(tmp_path, monkeypatch):
    (tmp_path / "own_package.py").write_text(OWN)
    about = tmp_path / "own_package-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: own-package\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[vpo.tasks]\nreach = own_package:Reach\nbad = json:dumps\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert {"reach", "bad"} <= set(names())
    assert get("reach").problems(count=1)[0].id == "test-0"
    with pytest.raises(ValueError, match="entry point json:dumps: a task must be a subclass of"):
        get("bad")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: "x = 1", "must define one subclass of vpo.tasks.Task, not 0"),
        (
            lambda text: text.replace("(0.5, 0.5)", "(0.7, 0.7)"),
            "weights must sum to 1 over the objectives, and it sums to 1.4",
        ),
        (lambda text: text.replace("(0.5, 0.5)", "(1.0,)"), "weights must be 2 numbers"),
        (lambda text: text.replace("summary =", "other ="), "the task must define summary"),
        (lambda text: text.replace("(0.5, 0.5)", "(float('nan'), 1.0)"), "weights must be finite"),
        (
            lambda text: text.replace("objectives = (", "objectives = 'close', 'few'\n    others = ("),
            "objectives must be",
        ),
        (lambda text: text + "\nimport nowhere", "the file cannot be loaded .ModuleNotFoundError: No module named"),
        (lambda text: text + "\n)", "the file cannot be loaded .SyntaxError"),
        (lambda text: text.replace("def score(", "def scores("), "the task must implement score"),
    ],
)
def test_an_incomplete_task_is_refused(own_file, change, message):
    own_file.write_text(change(OWN))
    with pytest.raises(ValueError, match=message):
        get(str(own_file))


def test_settings_are_checked_against_their_defaults(own_file):
    for value in ("abc", 9.0, None, [9], True):
        with pytest.raises(ValueError, match="setting size of task maze must be of type int, not"):
            get("maze", size=value)
    with pytest.raises(ValueError, match="setting compact of task maze must be of type bool, not 'no'"):
        get("maze", compact="no")
    with pytest.raises(ValueError, match="setting data of task toolrl must be of type str, not 5"):
        get("toolrl", data=5)
    own_file.write_text("from __future__ import annotations\n" + OWN.replace("count: int = 6", "count: int"))
    with pytest.raises(ValueError, match="task reach needs the setting 'count'"):
        get(str(own_file))
    assert get(str(own_file), count=4).count == 4


def test_bad_names_are_refused(tmp_path, own_file):
    with pytest.raises(ValueError, match=r"no such file: .*nowhere.py"):
        get(str(tmp_path / "nowhere.py"))
    with pytest.raises(ValueError, match="task maze has no setting 'width': there are size, compact"):
        get("maze", width=3)
    own_file.write_text(OWN.replace('name = "reach"', 'name = "maze"'))
    with pytest.raises(ValueError, match="task 'maze' is built in"):
        register(own_file)


def test_validate_reports_what_does_not_score(tmp_path):
    row = musique_row()
    row["answer"] = "the"  # nothing is left of it in SQuAD's normal form
    row["answer_aliases"] = []
    (tmp_path / "dev.jsonl").write_text(json.dumps(row) + "\n" + json.dumps(musique_row()) + "\n")
    task = MusiqueTask(data=str(tmp_path))
    flaw, fine = task.validate(task.problems("dev"))
    assert fine is None
    assert flaw.problem == row["id"]
    lacking = ", ".join(f"{name} is 0, not 1" for name in task.names)
    assert flaw.reason == f"as a single answer: {lacking}; as one of a set: {lacking}"
