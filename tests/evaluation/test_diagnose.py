import numpy as np
import pytest

from tests.evaluation.test_measure import make_pool
from vpo import geometry
from vpo.evaluation.diagnose import diagnose
from vpo.evaluation.diagnosis_text import VERDICTS, diagnosis_text
from vpo.evaluation.headroom import trade_offs


def pool_of(tmp_path, scores_PnD, names):
    return make_pool(tmp_path / "pool.jsonl", np.asarray(scores_PnD)[:, :, None, :], names=names)


def test_specialists_are_worth_vpo(tmp_path):
    # Each answer is good at one of three objectives: the single best leaves E_w[max] = 11/18 against 1/3.
    diagnosis = diagnose(pool_of(tmp_path, [np.eye(3)] * 5, ("a", "b", "c")))
    assert diagnosis.verdict == "yes"
    assert diagnosis.ideal == pytest.approx(11 / 18, abs=1e-3)
    assert diagnosis.single == pytest.approx(1 / 3)
    assert diagnosis.headroom.mean == pytest.approx(11 / 18 - 1 / 3, abs=1e-3)
    assert diagnosis.average == pytest.approx(1 / 3)
    assert diagnosis.relative_headroom == pytest.approx(1)  # every answer alone is average
    assert diagnosis.shares[:3] == pytest.approx((1 / 3,) * 3, abs=1e-2)
    assert diagnosis.winners == 3
    assert {pair[:2] for pair in diagnosis.opposed} == {("a", "b"), ("a", "c"), ("b", "c")}
    assert "Verdict: yes" in diagnosis_text(diagnosis)


# Two objectives, w uniform over [0, 1], so E[max(w, 1 − w)] = 3/4. Each line: the answers to a problem, the value of
# the best single one, of the set and of an average one, and the share of what choosing well gains that needs a set.
HAND_MADE = {
    "yes": ([[1, 0], [0, 1]], 1 / 2, 3 / 4, 1 / 2, 1),
    # (1, 0.8) and (0.8, 1) among ten: 0.9, 0.8 + 0.2 · 3/4, 0.18; 0.05 of 0.77.
    "weak": ([[1, 0.8], [0.8, 1], *[[0, 0]] * 8], 0.9, 0.95, 0.18, 0.05 / 0.77),
    "no": ([[1, 1], [0.5, 0], [0, 0.5]], 1, 1, 1 / 2, 0),
    "flat": ([[0.5, 0.25], [0.5, 0.25]], 3 / 8, 3 / 8, 3 / 8, 0),
}


@pytest.mark.parametrize("verdict", HAND_MADE)
def test_the_verdict_on_hand_made_pools(tmp_path, verdict):
    scores, single, ideal, average, relative = HAND_MADE[verdict]
    diagnosis = diagnose(pool_of(tmp_path, [scores] * 3, ("a", "b")))
    assert diagnosis.verdict == verdict
    assert (diagnosis.single, diagnosis.ideal, diagnosis.average) == pytest.approx((single, ideal, average), abs=1e-3)
    assert diagnosis.relative_headroom == pytest.approx(relative, abs=1e-3)
    assert diagnosis.headroom.mean == pytest.approx(ideal - single, abs=1e-3)
    assert VERDICTS[verdict].format(needs=f"{diagnosis.relative_headroom:.0%}") in diagnosis_text(diagnosis)


def test_collinear_objectives_are_not(tmp_path, rng):
    quality = rng.random((10, 8, 1))
    diagnosis = diagnose(pool_of(tmp_path, np.concatenate([quality, 0.5 * quality + 0.2], axis=2), ("style", "taste")))
    assert diagnosis.verdict == "no"
    assert diagnosis.effective_rank == pytest.approx(1, abs=1e-3)
    assert diagnosis.same == (("style", "taste", pytest.approx(1)),)
    text = diagnosis_text(diagnosis)
    assert "says the same      style and taste (correlation +1.00)" in text
    assert "Verdict: no. One answer is best" in text


def test_a_little_disagreement_is_weak(tmp_path, rng):
    quality = rng.random((50, 10, 1))
    noise = rng.normal(0, 0.2, (50, 10, 2))
    diagnosis = diagnose(pool_of(tmp_path, quality + noise, ("a", "b")))
    assert diagnosis.verdict == "weak"
    assert "Verdict: weak" in diagnosis_text(diagnosis)


def test_answers_that_all_score_alike_are_flat(tmp_path):
    diagnosis = diagnose(pool_of(tmp_path, np.full((3, 5, 2), 0.5), ("a", "b")))
    assert diagnosis.verdict == "flat"
    assert diagnosis.constant == ("a", "b")
    text = diagnosis_text(diagnosis)
    assert "All answers of a problem score alike" in text
    assert "only 1.0 different score vectors" in text


@pytest.mark.parametrize(("scale", "shift"), [(1, 0), (0.01, 0.9), (10, -20)])
def test_the_verdict_does_not_depend_on_shift_and_scale(tmp_path, scale, shift):
    specialists = scale * np.eye(2) + shift
    diagnosis = diagnose(pool_of(tmp_path, [specialists] * 3, ("a", "b")))
    assert diagnosis.verdict == "yes"
    assert diagnosis.relative_headroom == pytest.approx(1)


def test_one_best_answer_is_no_trade_off_whatever_the_sign(tmp_path):
    diagnosis = diagnose(pool_of(tmp_path, [[[0.0, 0.0], [-1.0, -2.0], [-3.0, -1.0]]] * 3, ("a", "b")))
    assert diagnosis.verdict == "no"
    assert diagnosis.relative_headroom == 0


@pytest.mark.parametrize(("headroom", "verdict"), [(0.11, "yes"), (0.09, "weak"), (0.021, "weak"), (0.019, "no")])
def test_verdicts_by_the_share_that_needs_a_set(headroom, verdict):
    assert trade_offs(1.0, headroom) == verdict
    assert trade_offs(0.0, headroom) == "flat"


def test_objectives_that_agree_half_the_time_are_not_the_same(tmp_path, rng):
    shared = rng.random((20, 8, 1))
    diagnosis = diagnose(pool_of(tmp_path, shared + 0.5 * rng.random((20, 8, 2)), ("a", "b")))
    assert diagnosis.same == ()


def test_too_few_answers_say_nothing_about_pairs(tmp_path):
    diagnosis = diagnose(pool_of(tmp_path, [[[1.0, 0.0], [0.0, 1.0]]] * 3, ("a", "b")))
    assert diagnosis.same == diagnosis.opposed == ()
    one = diagnose(pool_of(tmp_path, [[[1.0, 0.0]]] * 3, ("a", "b")))
    assert "With one answer a problem there is nothing to compare" in diagnosis_text(one)


def test_a_pool_of_zeros_is_flat(tmp_path):
    assert diagnose(pool_of(tmp_path, np.zeros((3, 5, 2)), ("a", "b"))).verdict == "flat"


def test_an_objective_that_never_varies_is_named(tmp_path, rng):
    scores = rng.random((5, 6, 2))
    scores[..., 1] = rng.random((5, 1))  # differs between problems, not within one
    diagnosis = diagnose(pool_of(tmp_path, scores, ("a", "b")))
    assert diagnosis.constant == ("b",)
    assert "never varies       b" in diagnosis_text(diagnosis)


def test_one_problem_agrees_with_the_core(tmp_path, rng):
    scores = rng.random((1, 12, 4))
    diagnosis = diagnose(pool_of(tmp_path, scores, tuple("abcd")))
    expected = geometry(scores[0])
    assert diagnosis.effective_rank == pytest.approx(expected.effective_rank)
    assert diagnosis.headroom.mean == pytest.approx(float(expected.headroom))
    assert diagnosis.headroom.low is None
    assert sum(diagnosis.shares) == pytest.approx(1)


def test_the_target_picks_the_single_answer(tmp_path):
    # Under the mean, (0.6, 0.6) is best; under b alone, (0, 1), whose expected score is 0.5.
    scores = [[[0.6, 0.6], [0.0, 1.0]]]
    pool = pool_of(tmp_path, scores, ("a", "b"))
    assert diagnose(pool).single == pytest.approx(0.6)
    assert diagnose(pool, target={"b": 1.0}).single == pytest.approx(0.5)
    with pytest.raises(ValueError, match="target names 'c'"):
        diagnose(pool, target={"c": 1.0})


def test_copies_of_an_answer_do_not_split_its_share(tmp_path):
    scores = [[[1.0, 0.0]] * 10 + [[0.0, 1.0]]]
    diagnosis = diagnose(pool_of(tmp_path, scores, ("a", "b")))
    assert diagnosis.shares[:2] == pytest.approx((0.5, 0.5))
    assert diagnosis.distinct == 2


def test_objectives_that_differ_between_problems(tmp_path):
    from vpo import read_pool, write_pool

    rows = [
        {
            "problem": problem,
            "generation": generation,
            "position": 1,
            "scores": {f"test_{d}": float(generation == d) for d in range(dimensions)},
        }
        for problem, dimensions in (("p", 2), ("q", 4))
        for generation in range(4)
    ]
    write_pool(tmp_path / "pool.jsonl", rows)
    diagnosis = diagnose(read_pool(tmp_path / "pool.jsonl"))
    assert diagnosis.objectives is None
    assert diagnosis.dimensions == 3
    assert diagnosis.same == diagnosis.opposed == diagnosis.constant == ()
    assert diagnosis.verdict == "yes"
    assert "3.0 objectives, different from problem to problem" in diagnosis_text(diagnosis)
