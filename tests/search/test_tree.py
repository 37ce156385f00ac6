"""The tree of prefixes: what it keeps of answers, and which prefix it continues."""

import math
from collections import Counter
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from vpo.search import tree as tree_module
from vpo.search.candidates import START, Candidate, Move, SearchProblem
from vpo.search.generators import EndpointGenerator, TransformersGenerator, VllmGenerator
from vpo.search.goals import goals_of
from vpo.search.tree import Tree, tree_operators
from vpo.tasks.math.countdown import CountdownProblem, CountdownTask

TASK = CountdownTask()
NUMBERS = CountdownProblem("p", (3, 5, 10), 50)
BRANCH = {"branch": 1.0}


def new_tree(operators=BRANCH, target="closeness=1", task=TASK):
    return Tree(task=task, problem=SearchProblem(NUMBERS, goals_of(task, [target])[0]), operators=operators)


def candidate(number, answer, parent=None, kept=0, tree=None, **settings):
    """A candidate with the scores of its task, and the value that it has by the goal of a tree."""
    scores = TASK.score(NUMBERS, answer)
    value = (tree or new_tree()).problem.goal.value(NUMBERS, answer, scores)
    operator = "fresh" if parent is None else "branch"
    return Candidate(number, 0, operator, parent, 1, answer, scores, value, False, kept=kept, **settings)


def tell(tree, *candidates):
    tree.tell(candidates, ["any"] * len(candidates))


def by_text(tree):
    return {each.origin.answer[: each.end] if each.origin else "": each for each in tree.prefixes}


def test_answers_share_their_prefixes():
    tree = new_tree()
    tell(tree, candidate(0, "5 * 10"), candidate(1, "5 * 3"), candidate(2, "5 + 3"))
    known = by_text(tree)
    assert list(known) == ["", "5", "5 *", "5 * 10", "5 * 3", "5 +", "5 + 3"]
    assert [each.visits for each in known.values()] == [3, 3, 2, 1, 1, 1, 1]
    # The target is 50: 5 * 10 is at it, 5 * 3 = 15 away by 35, 5 + 3 = 8 by 42.
    assert [each.best for each in known.values()] == pytest.approx([1, 1, 1, 1, 0.3, 0.16, 0.16])
    assert known["5 *"].origin.number == 0
    assert known["5 +"].most_value == 1.0


def test_tries_are_those_of_the_prefix_that_was_continued():
    tree = new_tree()
    tell(tree, candidate(0, "5 * 10 - 3"))
    tell(tree, candidate(1, "5 * 3", parent=0, kept=3))
    failed = Candidate(2, 1, "branch", 0, 1, None, None, 0.0, False, "the completion has no such answer", kept=3)
    second = Candidate(3, 1, "branch", 0, 2, "3", TASK.score(NUMBERS, "3"), 0.0, False, kept=3)  # of the same set
    start = Candidate(4, -1, START, None, 1, "3 + 5", TASK.score(NUMBERS, "3 + 5"), 0.0, False)
    tell(tree, failed, second, start)
    assert {text: each.tries for text, each in by_text(tree).items() if each.tries} == {"": 1, "5 *": 2}


def test_the_first_samples_are_fresh():
    assert new_tree().ask(3, Random(0)) == [Move("fresh")] * 3
    tree = new_tree()
    tell(tree, Candidate(0, 0, "fresh", None, 1, None, None, 0.0, False, "the completion has no such answer"))
    assert tree.ask(2, Random(0)) == [Move("fresh")] * 2


def test_operators_have_their_shares():
    tree = new_tree({"fresh": 0.25, "regrow": 0.75})
    tell(tree, candidate(0, "5 + 3"))
    used = Counter(move.operator for move in tree.ask(2000, Random(0)))
    assert used["fresh"] / 2000 == pytest.approx(0.25, abs=0.03)


def test_the_choice_is_by_the_formula(monkeypatch):
    """With the goal's value alone, worked by hand."""
    monkeypatch.setattr(tree_module, "GOAL_SHARE", 1.0)
    tree = new_tree()
    first, second = candidate(0, "10 + 3"), candidate(1, "5 + 3")  # 13 and 8: closeness 0.26 and 0.16
    tell(tree, first, second)
    # Of every prefix the most is 1, and n = 1: (0.26 + 1) / 2 against (0.16 + 1) / 2, and no tries but those of "".
    chosen = {(move.parent.number, move.kept) for move in tree.ask(1, Random(0))}
    assert chosen <= {(0, 2), (0, 4), (0, 6)}
    # With one try of each of these and two of "", log(6) = 1.79: 0.63 + 0.3 * sqrt(1.79 / 2) = 0.91 against
    # 0.58 + 0.3 * sqrt(1.79) = 0.98.
    tell(tree, *(candidate(number, "10 + 3", parent=0, kept=2 * (number - 1)) for number in (2, 3, 4)))
    assert {(move.parent.number, move.kept) for move in tree.ask(1, Random(0))} <= {(1, 1), (1, 3), (1, 5)}


def test_one_iteration_continues_different_prefixes():
    tree = new_tree()
    tell(tree, candidate(0, "5 + 3 + 10"))
    moves = tree.ask(4, Random(0))  # nothing beats "5 + 3 + 10", whose end is the fifth
    assert len({move.kept for move in moves}) == 4
    assert tree.ask(4, Random(0)) == moves


def test_prefixes_that_can_reach_no_better_answer_are_left_out(monkeypatch):
    monkeypatch.setattr(tree_module, "GOAL_SHARE", 1.0)
    tree = new_tree()
    tell(tree, candidate(0, "5 + 5 + 10"))  # "5 + 5" has a number twice
    kept = {move.kept for move in tree.ask(200, Random(0))}
    assert kept == {1, 3}  # "5", "5 +"; of "5 + 5 +" no answer has a closeness
    solved = new_tree()
    tell(solved, candidate(0, "5 * 10"))
    assert {move.operator for move in solved.ask(20, Random(0))} == {"fresh"}


def test_values_below_0_are_compared(monkeypatch):
    monkeypatch.setattr(tree_module, "GOAL_SHARE", 1.0)
    monkeypatch.setattr(TASK.__class__, "score_partial", lambda *_: None)
    tree = new_tree()
    low, high = candidate(0, "3 + 5"), candidate(1, "10 - 3")
    tell(tree, replace(low, value=-5.0), replace(high, value=-0.1))
    chosen = Counter(
        move.parent.number for move in (tree.ask(1, Random(seed))[0] for seed in range(100)) if move.parent
    )
    assert chosen[1] == sum(chosen.values()) > 50


def test_the_tasks_own_goal_leaves_out_only_what_scores_nothing(monkeypatch):
    """An answer may solve a problem without having the best value."""
    monkeypatch.setattr(tree_module, "GOAL_SHARE", 1.0)
    monkeypatch.setattr(TASK.__class__, "score_partial", lambda *_: (1.0, 1.0, 0.5, 0.0))
    tree = Tree(task=TASK, problem=SearchProblem(NUMBERS, goals_of(TASK)[0]), operators=BRANCH)
    tell(tree, replace(candidate(0, "5 * 10"), value=0.9))
    assert all(move.parent for move in tree.ask(20, Random(0)))


def test_a_long_answer_has_a_limited_number_of_steps():
    tree = new_tree()
    tell(tree, Candidate(0, 0, "fresh", None, 1, "1+" * 4000, (0.0,) * 4, 0.0, False))
    assert len(tree.prefixes) == 1 + tree_module.MOST_STEPS


def test_without_partial_scores_no_prefix_is_left_out(monkeypatch):
    monkeypatch.setattr(CountdownTask, "score_partial", lambda *_: None)
    tree = new_tree()
    tell(tree, candidate(0, "5 + 5 + 10"))
    assert {move.kept for move in tree.ask(200, Random(0))} == {1, 3, 5, 7, 10}
    assert all(math.isinf(each.most_value) for each in tree.prefixes)


def test_random_weights_continue_what_is_best_for_each_objective(monkeypatch):
    monkeypatch.setattr(tree_module, "GOAL_SHARE", 0.0)
    monkeypatch.setattr(tree_module, "EXPLORATION", 0.0)
    monkeypatch.setattr(CountdownTask, "score_partial", lambda *_: None)
    tree = new_tree(target="exact=1")
    tell(tree, candidate(0, "10 * 5"), candidate(1, "3 + 5 + 10"))  # close; all numbers
    chosen = Counter(move.parent.number for move in tree.ask(400, Random(0)))
    # (1, 0, 1, 0) against (1, 1, 0.36, 0): the second is better where w_numbers > 0.64 w_closeness, with 1 / 1.64.
    assert chosen[1] / 400 == pytest.approx(1 / 1.64, abs=0.08)


@pytest.mark.parametrize(
    ("goal", "rises"),
    [(["closeness>=0.5"], True), (["closeness>=0.5, valid<=0.5"], False)],
)
def test_a_goal_that_falls_with_a_score_has_no_bound(goal, rises):
    (goal,) = goals_of(TASK, conditions=goal)
    tree = Tree(task=TASK, problem=SearchProblem(NUMBERS, goal), operators=BRANCH)
    assert np.isfinite(tree.prefixes[0].most_value) == rises


def test_a_function_is_not_called_for_prefixes(tmp_path):
    (tmp_path / "goal.py").write_text("def value(answer, scores, problem):\n    raise SystemExit\n")
    (goal,) = goals_of(TASK, functions=[f"{tmp_path}/goal.py:value"])
    tree = Tree(task=TASK, problem=SearchProblem(NUMBERS, goal), operators=BRANCH)
    tell(tree, candidate(0, "5 + 3"))
    assert len(tree.prefixes) == 4
    assert len(tree.ask(5, Random(0))) == 5


def test_operators_of_a_tree():
    assert tree_operators(None, TransformersGenerator.unsupported) == {"fresh": 0.25, "branch": 0.75}
    assert tree_operators(None, VllmGenerator.unsupported) == {"fresh": 0.25, "regrow": 0.75}
    assert tree_operators({"regrow": 1.0, "cross": 0.0}, {}) == {"regrow": 1.0, "cross": 0.0}
    with pytest.raises(ValueError, match="strategy tree starts the completion with a prefix, which a chat endpoint"):
        tree_operators(None, EndpointGenerator.unsupported)
    with pytest.raises(ValueError, match="strategy tree uses the operators fresh, regrow, branch, not 'repair'"):
        tree_operators({"repair": 1.0}, {})
