"""Strategies: which moves they choose, and what they keep."""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from vpo.search.candidates import Candidate, Move, SearchProblem
from vpo.search.generators import EndpointGenerator, TransformersGenerator, VllmGenerator
from vpo.search.goals import goals_of
from vpo.search.operators import check_operators, default_operators, request_for_move
from vpo.search.strategies import PARENTS, BestOfN, Evolve
from vpo.tasks.maze import MazeTask

SHARES = {"fresh": 0.25, "regrow": 0.5, "extend": 0.25}
TASK = MazeTask(size=7)
CASE = SearchProblem(TASK.problems("test", count=1)[0], goals_of(TASK, ["gold=1"])[0])


def candidate(number, scores, value=None, answer="UU"):
    value = scores[0] if value is None and scores else value or 0.0
    return Candidate(number, 0, "fresh", None, 1, answer, scores, value, False)


def evolve_after(*candidates, forms=None, **settings):
    strategy = Evolve(operators=SHARES, **settings)
    strategy.tell(candidates, forms or [each.number for each in candidates])
    return strategy


def test_best_of_n_requests_only_fresh_samples():
    strategy = BestOfN()
    strategy.tell([candidate(0, (1.0, 1.0))], ["a"])
    assert strategy.ask(3, Random(0)) == [Move("fresh")] * 3


def test_evolve_begins_with_fresh_samples():
    assert Evolve(operators={"regrow": 1.0}).ask(2, Random(0)) == [Move("fresh")] * 2


def test_operators_are_used_in_proportion():
    strategy = evolve_after(candidate(0, (0.5, 0.5)), candidate(1, (1.0, 0.0)))
    used = Counter(move.operator for move in strategy.ask(4000, Random(0)))
    assert {name: round(count / 4000, 1) for name, count in used.items()} == pytest.approx(
        {"fresh": 0.2, "regrow": 0.5, "extend": 0.2}, abs=0.11
    )
    for move in strategy.ask(100, Random(1)):
        assert (move.parent is None) == (move.operator == "fresh")
        assert 0 <= move.kept < 2  # characters of "UU"


def test_the_same_seed_makes_the_same_requests():
    strategy = evolve_after(*(candidate(n, (n / 10, 1 - n / 10)) for n in range(10)))
    assert strategy.ask(20, Random("a")) == strategy.ask(20, Random("a"))
    assert strategy.ask(20, Random("a")) != strategy.ask(20, Random("b"))


def test_the_archive_holds_what_nothing_dominates():
    strategy = evolve_after(
        candidate(0, (0.2, 0.9)), candidate(1, (0.9, 0.2)), candidate(2, (0.1, 0.8)), candidate(3, (0.2, 0.9)), size=1
    )
    assert [each.number for each in strategy.archive] == [0, 1]
    assert [each.number for each in strategy.population] == [1]
    strategy.tell([candidate(4, (1.0, 1.0))], ["new"])
    assert [each.number for each in strategy.archive] == [4]
    assert {move.parent.number for move in strategy.ask(50, Random(0)) if move.parent} == {4}


def test_repeated_unread_and_unscored_answers_are_not_kept():
    strategy = evolve_after(
        candidate(0, (0.5, 0.5)), candidate(1, (0.5, 0.5)), candidate(2, (0.9, 0.9)), candidate(3, None),
        forms=["a", "a", None, "b"],
    )  # fmt: skip
    assert [each.number for each in strategy.population] == [0]
    strategy.tell([candidate(4, (0.5, 0.5))], ["a"])
    assert [each.number for each in strategy.population] == [0]


@pytest.mark.parametrize("parents", PARENTS)
def test_parents_are_chosen_by_the_setting(parents):
    # 0 has the best value, 1 and 2 each the best of an objective, 3 to 9 crowd together.
    crowd = [candidate(n, (0.5, 0.5), 0.1) for n in range(3, 10)]
    strategy = evolve_after(
        candidate(0, (0.5, 0.5), 1.0), candidate(1, (1.0, 0.0), 0.1), candidate(2, (0.0, 1.0), 0.1), *crowd,
        parents=parents,
    )  # fmt: skip
    chosen = Counter(move.parent.number for move in strategy.ask(2000, Random(0)) if move.parent)
    if parents == "target":
        assert chosen[0] == max(chosen.values())
    elif parents == "best":
        assert set(chosen) == {0}
    else:
        assert chosen[1] + chosen[2] > 0.45 * sum(chosen.values())
    if parents in ("lexicase", "weighting"):
        assert set(chosen) == {1, 2}


@pytest.mark.parametrize("parents", PARENTS)
def test_one_candidate_is_the_parent(parents):
    strategy = evolve_after(candidate(7, (0.5, 0.5)), parents=parents)
    assert {move.parent.number for move in strategy.ask(50, Random(0)) if move.parent} == {7}


def test_settings_are_checked():
    with pytest.raises(
        ValueError, match="parents must be chosen by target, best, weighting, lexicase, novelty, not 'worst'"
    ):
        Evolve(operators=SHARES, parents="worst")
    with pytest.raises(ValueError, match="size must be 1 or more, not 0"):
        Evolve(operators=SHARES, size=0)


def test_a_second_parent_is_the_best_where_the_first_is_worse():
    first, middling, other = (
        candidate(0, (1.0, 1.0, 0.0, 0.0)),
        candidate(1, (0, 0, 0.4, 0.4)),
        candidate(2, (0, 0, 1, 0)),
    )
    strategy = Evolve(operators={"cross": 1.0}, parents="best")
    strategy.tell([replace(first, value=1.0), middling, other], ["a", "b", "c"])
    (move,) = strategy.ask(1, Random(0))
    assert (move.operator, move.parent.number, move.second.number) == ("cross", 0, 2)  # 1.0 better, not 0.8


def test_one_parent_is_repaired_where_no_other_is_better_anywhere():
    strategy = Evolve(operators={"cross": 1.0})
    strategy.tell([candidate(0, (1.0, 0.5)), candidate(1, (0.5, 0.5))], ["a", "b"])
    moves = {(move.operator, move.second) for move in strategy.ask(30, Random(0)) if move.parent.number == 0}
    assert moves == {("repair", None)}


def test_parents_by_weighting_are_as_frequent_as_their_share_of_the_simplex():
    # With two objectives uniform weights are w, 1 - w: (0.6, 0.6) is best where 0.6 > max(w, 1 - w), a fifth.
    corners = [candidate(0, (1.0, 0.0)), candidate(1, (0.0, 1.0)), candidate(2, (0.6, 0.6)), candidate(3, (0.5, 0.5))]
    strategy = Evolve(operators={"repair": 1.0}, parents="weighting")
    strategy.tell(corners, list("abcd"))
    chosen = Counter(move.parent.number for move in strategy.ask(5000, Random(0)))
    assert [chosen[n] / 5000 for n in range(4)] == pytest.approx([0.4, 0.4, 0.2, 0.0], abs=0.02)


def test_an_objective_of_a_larger_scale_does_not_outweigh_the_others():
    """Each is the best in one objective, and so under about half of the weightings."""
    known = [candidate(0, (1.0, 10.0)), candidate(1, (0.0, 1000.0))]
    chosen = Counter(PARENTS["weighting"](known, Random(seed)).number for seed in range(200))
    assert min(chosen.values()) > 60


# Operators


@pytest.mark.parametrize("answers", [1, 3])
def test_moves_become_prompts(answers):
    parent = candidate(0, (1.0, 0.5, 0.0, 1.0), answer="UURRDD")
    tag = "answer_1" if answers > 1 else "answer"
    plain = TASK.ask(CASE.problem, answers)
    assert request_for_move(TASK, CASE, Move("fresh"), answers, None).messages == plain
    regrown = request_for_move(TASK, CASE, Move("regrow", parent, kept=3), answers, None)
    assert (regrown.messages, regrown.prefix, regrown.known) == (plain, f"<{tag}>UUR", 0)
    assert regrown.avoided == ""
    branched = request_for_move(TASK, CASE, Move("branch", parent, kept=3), answers, None)
    assert replace(branched, avoided="") == regrown
    assert branched.avoided.rstrip() == f"RDD</{tag}>"
    repaired = request_for_move(TASK, CASE, Move("repair", parent), answers, None)
    prompt = repaired.messages[-1]["content"]
    question = TASK.question(CASE.problem)[-1]["content"]
    assert prompt.startswith(f"{question}\n\nAn earlier answer:\n\nUURRDD\n\n")
    assert prompt.endswith(plain[-1]["content"].removeprefix(question))  # the form stands last
    assert "completion 1.00, gold 0.50" in prompt
    assert "falls short on: gold, diamond" in prompt
    assert "gold=1" in prompt
    assert repaired.prefix == ""
    if answers > 1:
        extended = request_for_move(TASK, CASE, Move("extend", parent), answers, None)
        assert (extended.prefix, extended.known) == ("<answer_1>UURRDD</answer_1>\n", 1)


@pytest.mark.parametrize(
    ("operators", "answers", "generator", "message"),
    [
        ({"regow": 1.0}, 3, TransformersGenerator, "operator 'regow' is not known: did you mean 'regrow'"),
        ({"regrow": -1.0}, 3, TransformersGenerator, "the share of operator regrow must be 0 or more, not -1.0"),
        (
            {"regrow": 1.0},
            3,
            EndpointGenerator,
            "operator regrow starts the completion with a prefix, which a chat endpoint does not support",
        ),
        (
            {"branch": 1.0},
            3,
            VllmGenerator,
            "operator branch forbids a token at one position, which vLLM does not support",
        ),
        (
            {"extend": 1.0},
            1,
            TransformersGenerator,
            "operator extend needs 2 or more answers per generation, not 1",
        ),
        ({"fresh": 0.0}, 3, TransformersGenerator, "operators must name 1 or more with a share above 0"),
        ({}, 3, TransformersGenerator, "operators must name 1 or more with a share above 0"),
    ],
)
def test_operators_that_cannot_be_used_are_refused(operators, answers, generator, message):
    with pytest.raises(ValueError, match=message):
        check_operators(operators, answers, generator.unsupported)


@pytest.mark.parametrize("answers", [1, 3])
@pytest.mark.parametrize(
    ("generator", "varied"),
    [(TransformersGenerator, "branch"), (VllmGenerator, "regrow"), (EndpointGenerator, "repair")],
)
def test_the_operators_that_are_used_without_others_can_be(answers, generator, varied):
    chosen = default_operators(TASK, answers, generator.unsupported)
    assert check_operators(chosen, answers, generator.unsupported) == chosen
    assert {"fresh", varied} <= set(chosen)
    assert ("extend" in chosen) == (answers > 1 and generator is not EndpointGenerator)
    assert sum(chosen.values()) == pytest.approx(1)
