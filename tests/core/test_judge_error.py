"""Scenarios of scores that may be wrong: their rates, by Bayes' rule."""

import numpy as np
import pytest

from vpo import InputError, greedy_cover
from vpo.core.judge_error import possible_scores, score_prior


def test_without_error_every_scenario_is_the_score():
    scores = np.random.default_rng(0).random((5, 3))
    assert (possible_scores(scores, error=0, size=4) == scores).all()


def test_a_score_is_wrong_as_often_as_bayes_rule_says():
    """Of 7000 answers 3000 are judged good, so that p = (3/7 − 0.2) / 0.6 of them are."""
    scores = np.array([[1.0]] * 3000 + [[0.0]] * 4000)
    prior = score_prior(scores, error=0.2)
    p = (3 / 7 - 0.2) / 0.6
    assert prior.patterns_VD.tolist() == [[-5], [5]]
    assert prior.shares_CV[0] == pytest.approx([1 - p, p], abs=1e-3)
    good, bad = possible_scores([[1.0], [0.0]], error=0.2, prior=prior, size=1000).mean(axis=0)[:, 0]
    assert good == pytest.approx(0.8 * p / (0.8 * p + 0.2 * (1 - p)), abs=2e-3)
    assert bad == pytest.approx(0.2 * p / (0.2 * p + 0.8 * (1 - p)), abs=2e-3)


def test_the_rates_are_right_where_the_model_holds():
    """True vectors of which gold and diamond exclude each other, flipped: the scenarios have the true shares."""
    rng = np.random.default_rng(1)
    kinds = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 0.75], [0.0, 0.0, 0.0]])
    truth = kinds[rng.choice(3, 3000, p=[0.5, 0.3, 0.2])]
    judged = np.where(rng.random(truth.shape) < 0.2, 1 - truth, truth)
    scenarios = possible_scores(judged, error=0.2)
    for vector in np.unique(judged, axis=0):
        which = (judged == vector).all(axis=1)
        if which.sum() > 60:
            assert scenarios[:, which].mean(axis=(0, 1)) == pytest.approx(truth[which].mean(axis=0), abs=0.15)
    assert ((scenarios.mean(axis=0) - truth) ** 2).mean() < 0.5 * ((judged - truth) ** 2).mean()


def test_classes_of_answers_may_differ():
    """The same score of 1 is an error in a class where nearly all are judged bad, and right in the other."""
    scores = np.array([[1.0]] * 450 + [[0.0]] * 50 + [[1.0]] * 110 + [[0.0]] * 390)
    classes = np.array([0] * 500 + [1] * 500)
    prior = score_prior(scores, error=0.2, classes=classes)
    one = possible_scores([[1.0], [1.0]], error=0.2, prior=prior, classes=[0, 1]).mean(axis=0)[:, 0]
    assert one[0] > 0.9
    assert one[1] < 0.5


def test_all_scores_of_an_answer_may_be_wrong_together():
    """(1, 0) is never mixed up with (0, 0): only with its opposite, which is as common."""
    scores = np.array([[1.0, 0.0]] * 500 + [[0.0, 1.0]] * 500 + [[1.0, 1.0]] * 20)
    scenarios = possible_scores(scores, error=0.2, whole=True)
    assert {tuple(each) for each in scenarios[:, 0]} == {(1.0, 0.0), (0.0, 1.0)}
    assert scenarios[:, 0, 0].mean() == pytest.approx(0.8, abs=0.02)
    assert possible_scores(scores, error=0.2)[:, 0, 0].mean() > 0.9  # two errors at once are rarer


def test_scores_that_no_known_vector_explains_stand():
    prior = score_prior([[0.0], [1.0]], error=0.2)
    assert (possible_scores([[0.7]], error=0.2, prior=prior) == 0.7).all()


def test_graded_scores_flip_to_their_opposite():
    scenarios = possible_scores([[0.9], [0.1], [0.2], [0.8]], error=0.3, size=100)
    assert set(np.round(scenarios[:, 0, 0], 9)) == {0.9, 0.1}
    assert set(np.round(scenarios[:, 2, 0], 9)) == {0.2, 0.8}


def test_it_depends_on_the_seed_alone():
    scores = np.random.default_rng(0).integers(0, 2, (6, 3)).astype(float)
    assert (possible_scores(scores, error=0.2) == possible_scores(scores, error=0.2)).all()
    assert (possible_scores(scores, error=0.2) != possible_scores(scores, error=0.2, seed=1)).any()


def test_a_second_answer_that_is_judged_good_is_a_hedge():
    """Two answers are judged perfect: with errors, the second adds more than an answer that is judged poor."""
    scores = np.array([[1.0, 1.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]])
    assert greedy_cover(possible_scores(scores, error=0.2), 2).order.tolist() == [0, 2]


@pytest.mark.parametrize(
    ("scores", "error", "message"),
    [
        ([[0.5]], 0.5, "error must be 0 or more and below 0.5, not 0.5"),
        ([[0.5]], -0.1, "error must be 0 or more and below 0.5, not -0.1"),
        ([[2.0]], 0.1, r"scores must lie in 0\.\.1 for a judge that errs, and hold 2"),
        ([0.5], 0.1, "scores must be of rank 2"),
        (np.zeros((0, 2)), 0.1, "scores must hold 1 or more answers"),
    ],
)
def test_wrong_arguments_are_named(scores, error, message):
    with pytest.raises(InputError, match=message):
        possible_scores(scores, error=error)


def test_a_prior_of_other_objectives_is_refused():
    prior = score_prior([[0.0, 1.0]], error=0.2)
    with pytest.raises(InputError, match="prior must have 1 objectives and more than 0 classes, not 2 and 1"):
        possible_scores([[1.0]], error=0.2, prior=prior)
    with pytest.raises(InputError, match=r"prior must be for error 0\.1 and whole False, not 0\.2 and False"):
        possible_scores([[1.0, 0.0]], error=0.1, prior=prior)
    with pytest.raises(InputError, match="classes must be 1 integers of 0 or more"):
        score_prior([[1.0]], error=0.2, classes=[0.5])
