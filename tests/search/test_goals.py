"""What a search looks for, as users write it."""

import re

import pytest

from vpo.search.goals import ConditionGoal, WeightingGoal, goals_of
from vpo.tasks.maze import MazeTask

TASK = MazeTask(size=7)
PROBLEM = TASK.problems("test", count=1)[0]


def solves(goal, vector):
    return goal.solved(PROBLEM, "", vector, goal.value(PROBLEM, "", vector))


def test_a_weighting_is_solved_at_the_oracle():
    goal = WeightingGoal("gold=2,diamond=1", TASK)
    assert goal.weights_of(PROBLEM) == pytest.approx((0, 2 / 3, 1 / 3, 0))
    assert goal.value(PROBLEM, "", (1.0, 0.5, 1.0, 0.0)) == pytest.approx(2 / 3)
    best = TASK.best(PROBLEM, goal.weights_of(PROBLEM))
    route = TASK.gold(PROBLEM)
    assert goal.value(PROBLEM, route, TASK.score(PROBLEM, route)) <= best + 1e-9
    reached = (1.0, best * 1.5, 0.0, 0.0)
    assert solves(goal, reached)
    assert not solves(goal, (1.0, best * 1.5 - 0.01, 0.0, 0.0))


def test_a_weighting_without_an_oracle_is_solved_at_1():
    class Blind(MazeTask):
        def best(self, problem, target=None):
            return None

    goal = WeightingGoal("gold=1", Blind(size=7))
    assert solves(goal, (1.0, 1.0, 0.0, 0.0))
    assert not solves(goal, (1.0, 0.99, 0.0, 0.0))


@pytest.mark.parametrize(
    ("text", "vector", "value", "solved"),
    [
        ("diamond>=1, completion>=1", (1.0, 0.0, 1.0, 0.0), 1.0, True),
        ("diamond>=1, completion>=1", (1.0, 0.0, 0.5, 0.0), 0.75, False),
        ("gold>=0.5", (0.0, 0.25, 0.0, 0.0), 0.5, False),
        ("gold<=0.5", (0.0, 0.75, 0.0, 0.0), 0.5, False),
        ("gold<0.5", (0.0, 0.5, 0.0, 0.0), 1.0, False),
        ("gold>0", (0.0, 0.0, 0.0, 0.0), 0.0, False),
        ("gold > 0,gold<1", (0.0, 0.5, 0.0, 0.0), 1.0, True),
    ],
)
def test_conditions(text, vector, value, solved):
    goal = ConditionGoal(text, TASK)
    assert goal.value(PROBLEM, "", vector) == pytest.approx(value)
    assert solves(goal, vector) == solved


def test_the_task_itself_is_the_goal_without_another():
    (goal,) = goals_of(TASK)
    assert goal.value(PROBLEM, "", (1.0, 1.0, 0.0, 1.0)) == 0.75
    assert solves(goal, (1.0,) * 4)
    assert not solves(goal, (1.0, 0.9, 0.9, 1.0))


def test_a_function_of_ones_own(tmp_path):
    file = tmp_path / "short.py"
    file.write_text(
        "def short(answer, scores, problem):\n    return scores['completion'] * (1 - len(answer) / problem.budget)\n"
        "def odd(answer, scores, problem):\n    return None\n"
    )
    short, odd = goals_of(TASK, functions=[f"{file}:short", f"{file}:odd"])
    assert short.value(PROBLEM, "UU", (1.0, 0, 0, 0)) == pytest.approx(1 - 2 / PROBLEM.budget)
    assert not short.solved(PROBLEM, "", (1.0, 0, 0, 0), 0.9)
    with pytest.raises(ValueError, match="the function must return a finite number, not None"):
        odd.value(PROBLEM, "UU", (1.0, 0, 0, 0))


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"targets": ["golf=1"]}, "target names 'golf', and the objectives are completion, gold"),
        ({"targets": ["gold"]}, "target must be written NAME=WEIGHT"),
        ({"conditions": ["golf>=1"]}, "goal names 'golf', and the objectives are completion, gold"),
        ({"conditions": ["gold=1"]}, "goal must be written NAME>=NUMBER,… (or <=, >, <), not 'gold=1'"),
        ({"conditions": ["gold>=much"]}, "not 'gold>=much'"),
        ({"conditions": ["gold>=nan"]}, "not 'gold>=nan'"),
        ({"conditions": [""]}, "not ''"),
        ({"functions": ["nowhere.py:f"]}, "no such file: nowhere.py (reward functions)"),
        ({"functions": ["f"]}, "function must be file.py:NAME or module:NAME, not 'f'"),
        ({"targets": ["gold=1", "gold=1"]}, "goals must be given once each"),
    ],
)
def test_what_is_no_goal_is_refused(texts, message):
    import re

    with pytest.raises(ValueError, match=re.escape(message)):
        goals_of(TASK, **texts)


def test_a_file_that_cannot_be_run_is_one_line(tmp_path):
    file = tmp_path / "bad.py"
    file.write_text("def f(:\n")
    with pytest.raises(ValueError, match=r"the functions cannot be loaded .SyntaxError"):
        goals_of(TASK, functions=[f"{file}:f"])
    file.write_text("g = 1\n")
    for name in "fg":
        with pytest.raises(ValueError, match=f"bad.py has no function '{name}'"):
            goals_of(TASK, functions=[f"{file}:{name}"])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("gold>=5", "scores of gold lie in 0..1, and never >= 5"),
        ("gold>1", "scores of gold lie in 0..1, and never > 1"),
        ("gold>=1.001", "scores of gold lie in 0..1, and never >= 1.001"),
        ("gold<0", "scores of gold lie in 0..1, and never < 0"),
        ("gold<=-1", "scores of gold lie in 0..1, and never <= -1"),
        ("completion>=1, gold>=5", "scores of gold lie in 0..1, and never >= 5"),
        ("gold>=0.8,gold<=0.2", "no score is both gold>=0.8 and gold<=0.2"),
        ("gold>0.5,gold<=0.5", "no score is both gold>0.5 and gold<=0.5"),
        ("gold<0.5,diamond>0,gold>=0.5", "no score is both gold>=0.5 and gold<0.5"),
    ],
)
def test_a_condition_that_nothing_can_reach_is_refused_with_the_range(text, reason):
    with pytest.raises(ValueError, match=re.escape(f"goal {text!r} cannot be reached: {reason}")):
        goals_of(TASK, conditions=[text])


@pytest.mark.parametrize(
    "text", ["gold>=1", "gold<=0", "gold>0.5,gold<0.6", "gold>=0.5,gold<=0.5", "gold>=0", "gold<1"]
)
def test_a_condition_at_the_ends_of_the_range_is_no_error(text):
    assert goals_of(TASK, conditions=[text])[0].name == text


def test_a_condition_beyond_what_the_oracle_knows_is_refused():
    class Capped(MazeTask):
        """Half of the gold can be reached at most, and gold and diamonds exclude each other."""

        def best(self, problem, target=None):
            return max(0.5 * target[1], target[2])

    task = Capped(size=7)
    problems = task.problems("test", count=3)
    for text, reason in (
        ("gold>=0.6", "has gold>=0.6, since gold is at most 0.5"),
        ("completion>=0, gold>0.6", "has gold>0.6, since gold is at most 0.5"),
        ("gold>=0.5,diamond>=1", "has gold>=0.5 and diamond>=1, since the mean of these scores is at most 0.5"),
    ):
        (goal,) = goals_of(task, conditions=[text])
        with pytest.raises(ValueError, match=re.escape(f"no answer to any of the 3 problems {reason}")):
            goal.check_reachable(problems)
    for text in ("gold>=0.5", "diamond>=1", "gold<=0.6", "gold>=0.1,diamond>=0.2"):
        goals_of(task, conditions=[text])[0].check_reachable(problems)


def test_what_a_task_does_not_know_is_not_refused():
    class Blind(MazeTask):
        def best(self, problem, target=None):
            return None

    task = Blind(size=7)
    for goal in goals_of(task, targets=["gold=1"], conditions=["gold>=1,diamond>=1", "gold>=5"]):
        goal.check_reachable(task.problems("test", count=1))
    with pytest.raises(ValueError, match="no score is both"):
        goals_of(task, conditions=["gold>=2,gold<=1"])
