import numpy as np
import pytest

from tests.evaluation.test_diagnose import pool_of
from vpo.evaluation.decompose import decompose
from vpo.evaluation.decomposition_text import decomposition_text, recommendation
from vpo.evaluation.diagnose import diagnose
from vpo.evaluation.objective_sets import all_of
from vpo.util.errors import InputError


@pytest.fixture
def scores_PnD(rng):  # noqa: N802  (a shape suffix)
    """20 problems of 8 answers with two objectives that are independent."""
    return rng.random((20, 8, 2))


def with_column(scores_PnD, column_Pn):
    return np.concatenate([scores_PnD, np.asarray(column_Pn)[..., None]], axis=2)


def test_specialists_are_kept_apart_and_their_sum_is_worth_nothing(tmp_path):
    # Answers (1, 0, 0), (0, 1, 0), (0, 0, 1), each an average one: all of what choosing well gains needs a set.
    result = decompose(pool_of(tmp_path, [np.eye(3)] * 5, ("a", "b", "c")))
    assert (result.constant, result.groups, result.sums, result.recommended) == ((), (), (), "all")
    everything, scalar = result.proposal("all"), result.proposal("one sum")
    assert everything.headroom.mean == pytest.approx(11 / 18 - 1 / 3, abs=1e-3)
    assert everything.relative_headroom.mean == pytest.approx(1)
    assert (scalar.objectives, scalar.headroom.mean, scalar.verdict) == (("a+b+c",), 0, "flat")  # 1/3, all of them
    # a+b and c: (½, 0) twice and (0, 1). E[max(w/2, 1 − w)] = ∫₀^⅔ (1 − w) dw + ∫_⅔^1 w/2 dw = 4/9 + 5/36 = 7/12.
    pair = next(each for each in result.proposals if each.merged == (("a", "b"),))
    assert pair.headroom.mean == pytest.approx(7 / 12 - 1 / 2, abs=1e-3)
    assert result.proposals[0] is everything
    assert "keep all 3" in recommendation(result)


def test_a_copy_is_merged_back_to_what_was_there_before(tmp_path, scores_PnD):
    before = decompose(pool_of(tmp_path, scores_PnD, ("a", "b")))
    for scale, shift in ((1, 0), (0.5, 3)):
        copied = with_column(scores_PnD, scores_PnD[..., 0] * scale + shift)
        result = decompose(pool_of(tmp_path, copied, ("a", "b", "copy")))
        assert result.groups == (("a", "copy"),)
        assert result.recommended == "merged"
        assert result.proposal("merged").objectives == ("a+copy", "b")
        if scale == 1:
            merged, whole = result.proposal("merged"), before.proposal("all")
            assert merged.headroom.mean == pytest.approx(whole.headroom.mean, abs=1e-12)
            assert merged.relative_headroom.mean == pytest.approx(whole.relative_headroom.mean, abs=1e-12)
            assert merged.effective_rank == pytest.approx(whole.effective_rank)


def test_all_is_what_the_diagnosis_says(tmp_path, scores_PnD):
    pool = pool_of(tmp_path, scores_PnD, ("a", "b"))
    whole, result = decompose(pool).proposal("all"), diagnose(pool)
    assert whole.headroom == result.headroom
    assert whole.relative_headroom.mean == result.relative_headroom
    assert whole.relative_headroom.low < result.relative_headroom < whole.relative_headroom.high
    assert (whole.effective_rank, whole.verdict) == (result.effective_rank, result.verdict)


def test_the_order_of_objectives_changes_nothing(tmp_path, rng):
    scores = rng.random((10, 6, 4))
    scores[..., 3] = 0.5 * scores[..., 0] + 0.5 * scores[..., 1]
    names = np.asarray(["a", "b", "c", "sum"])
    first = decompose(pool_of(tmp_path, scores, tuple(names)))
    order = [3, 1, 0, 2]
    second = decompose(pool_of(tmp_path, scores[..., order], tuple(names[order])))
    assert [each.objectives for each in first.proposals] == [each.objectives for each in second.proposals]
    for one, other in zip(first.proposals, second.proposals, strict=True):
        assert one.headroom.mean == pytest.approx(other.headroom.mean, abs=1e-12)
        assert one.relative_headroom.high == pytest.approx(other.relative_headroom.high, abs=1e-12)
    assert [each.objective for each in first.sums] == [each.objective for each in second.sums] == ["sum"]


def test_shifts_of_each_and_a_common_scale_change_no_share(tmp_path, rng):
    scores = rng.random((10, 6, 3))
    shifts = rng.normal(0, 5, (10, 1, 3))  # another one for each problem and objective
    first = decompose(pool_of(tmp_path, scores, ("a", "b", "c")))
    second = decompose(pool_of(tmp_path, 7 * scores + shifts, ("a", "b", "c")))
    for one, other in zip(first.proposals, second.proposals, strict=True):
        assert one.objectives == other.objectives
        assert one.relative_headroom.mean == pytest.approx(other.relative_headroom.mean, abs=1e-9)
        assert 7 * one.headroom.mean == pytest.approx(other.headroom.mean, abs=1e-9)


def test_what_never_varies_is_dropped_at_no_loss(tmp_path, scores_PnD, rng):
    still = np.repeat(rng.random((20, 1)), 8, axis=1)  # differs between problems alone
    result = decompose(pool_of(tmp_path, with_column(scores_PnD, still), ("a", "b", "still")))
    assert result.constant == ("still",)
    assert result.recommended == "varying"
    kept, whole = result.proposal("varying"), result.proposal("all")
    assert kept.objectives == ("a", "b")
    # The share of weightings that goes to it is lost to both headroom and gain: a third, E[w].
    assert whole.headroom.mean == pytest.approx(kept.headroom.mean * 2 / 3, abs=2e-3)
    assert whole.relative_headroom.mean == pytest.approx(kept.relative_headroom.mean, abs=2e-3)
    assert "drop still, which never varies; use a, b" in recommendation(result)


def test_a_sum_is_split_into_its_parts(tmp_path, scores_PnD, rng):
    total = 0.3 * scores_PnD[..., 0] + 0.7 * scores_PnD[..., 1] + rng.normal(0, 0.005, (20, 8))
    pool = pool_of(tmp_path, with_column(scores_PnD, total), ("a", "b", "total"))
    result = decompose(pool)
    (split,) = result.sums
    assert split.objective == "total"
    assert split.parts == {"a": pytest.approx(0.3, abs=0.02), "b": pytest.approx(0.7, abs=0.02)}
    assert split.explained > 0.98
    assert result.proposal("split").objectives == ("a", "b")
    assert result.recommended == "split"
    assert "drop total, which a and b add up to; use a, b" in recommendation(result)
    assert "sum of others      total = 0.30 a + 0.70 b" in decomposition_text(result)
    # Its weight in w* goes to its parts.
    target = decompose(pool, target={"total": 1.0}).proposal("split").target
    assert target == {"a": pytest.approx(0.3, abs=0.02), "b": pytest.approx(0.7, abs=0.02)}


@pytest.mark.parametrize("noise", [0.3, 3.0])
def test_noise_on_a_sum_makes_it_an_objective_of_its_own(tmp_path, scores_PnD, rng, noise):
    total = scores_PnD.sum(axis=2) + rng.normal(0, noise, (20, 8))
    assert decompose(pool_of(tmp_path, with_column(scores_PnD, total), ("a", "b", "total"))).sums == ()


def test_too_few_answers_prove_no_sum_and_no_pair(tmp_path, rng):
    scores = rng.random((3, 2, 3))  # three differences for three objectives: any fit is perfect
    result = decompose(pool_of(tmp_path, scores, ("a", "b", "c")))
    assert (result.sums, result.groups) == ((), ())
    assert {each.kind for each in result.proposals} == {"all", "one sum"}


def test_every_two_of_a_group_agree(tmp_path, rng):
    # b agrees with c at 0.92 and with a at 0.89, and these two with each other at 0.64.
    one, other = rng.normal(size=(2, 40, 10))
    scores = np.stack([one, (one + 0.5 * other) / 1.1, (one + 1.2 * other) / 1.5], axis=2)
    groups = decompose(pool_of(tmp_path, scores, ("a", "b", "c")), same=0.85).groups
    assert groups == (("b", "c"),)
    assert decompose(pool_of(tmp_path, scores, ("a", "b", "c")), same=0.55).groups == (("a", "b", "c"),)


def test_a_merged_objective_keeps_the_target(rng):
    scores_nD = rng.random((50, 3))
    whole = all_of(("a", "b", "c"), {"a": 0.1, "b": 0.3, "c": 0.6})
    merged = whole.merge(("b", "a"))
    assert merged.mixes["a+b"] == {"a": pytest.approx(0.25), "b": pytest.approx(0.75)}
    assert merged.target == {"c": 0.6, "a+b": pytest.approx(0.4)}
    mixed = 0.25 * scores_nD[:, 0] + 0.75 * scores_nD[:, 1]
    assert 0.4 * mixed + 0.6 * scores_nD[:, 2] == pytest.approx(scores_nD @ [0.1, 0.3, 0.6])
    assert all_of(("a", "b"), {"c": 1.0}).merge(("a", "b")).mixes["a+b"] == {"a": 0.5, "b": 0.5}
    assert whole.drop("c").target == {"a": pytest.approx(0.25), "b": pytest.approx(0.75)}
    assert all_of(("a", "b"), {"a": 1.0}).drop("a").target is None


def test_objectives_that_say_the_same_leave_a_scalar(tmp_path, rng):
    quality = rng.random((10, 8, 1))
    result = decompose(pool_of(tmp_path, np.concatenate([quality, 0.5 * quality], axis=2), ("style", "taste")))
    assert result.recommended == "merged"
    assert "what is left is style+taste, a scalar reward" in recommendation(result)
    noisy = quality + rng.normal(0, 0.05, (10, 8, 3))
    text = recommendation(decompose(pool_of(tmp_path, noisy, ("a", "b", "c")), same=1.0))
    assert text.startswith("Objectives: a single sum will do: with a, b, c kept apart, only ")


def test_one_objective_has_nothing_to_propose(tmp_path, scores_PnD):
    result = decompose(pool_of(tmp_path, scores_PnD[..., :1], ("a",)))
    assert [each.kind for each in result.proposals] == ["all"]
    assert "a scalar reward" in recommendation(result)


def test_a_flat_pool_says_nothing(tmp_path):
    result = decompose(pool_of(tmp_path, np.full((3, 5, 2), 0.5), ("a", "b")))
    assert not result.applies
    assert "none varies" in decomposition_text(result)


def test_objectives_that_differ_between_problems_have_no_sets(tmp_path):
    from vpo import read_pool, write_pool

    row = {"generation": 0, "position": 1}
    rows = [{**row, "problem": "p", "scores": {"a": 1}}, {**row, "problem": "q", "scores": {"b": 1}}]
    write_pool(tmp_path / "pool.jsonl", rows)
    pool = read_pool(tmp_path / "pool.jsonl")
    assert "they differ between problems" in decomposition_text(decompose(pool))
    with pytest.raises(InputError, match="objectives differ between problems, so none can be merged"):
        decompose(pool, drop=["a"])


def test_a_set_by_hand(tmp_path, rng):
    pool = pool_of(tmp_path, rng.random((10, 6, 4)), ("a", "b", "c", "d"))
    result = decompose(pool, merge=[["b", "a"]], drop=["d"])
    assert result.proposal("by hand").objectives == ("a+b", "c")
    assert result.recommended == "all"
    assert "by hand: a+b, c" in decomposition_text(result)
    # The same set by hand and by rule is listed under both names.
    assert "by hand" in {each.kind for each in decompose(pool, merge=[["a", "b"]]).proposals}
    kinds = [
        each.kind for each in decompose(pool, merge=[["a", "b"]]).proposals if each.objectives == ("a+b", "c", "d")
    ]
    assert kinds == ["by hand"]  # not a pair too


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"merge": [["a", "gold"]]}, "no objective 'gold': there are a, b"),
        ({"merge": [["a"]]}, "merge must name 2 or more objectives, such as a,b, not 'a'"),
        ({"merge": [["a", "a"]]}, "a,a names one twice"),
        ({"drop": ["c"]}, "no objective 'c'"),
        ({"drop": ["a", "b"]}, "must keep 1 or more objectives, and 'b' is its last one"),
        ({"same": 0.0}, "same must be a correlation greater than 0, at most 1, not 0.0"),
        ({"same": 1.5}, "at most 1, not 1.5"),
    ],
)
def test_bad_input(tmp_path, scores_PnD, options, message):
    with pytest.raises(InputError, match=message):
        decompose(pool_of(tmp_path, scores_PnD, ("a", "b")), **options)


def test_many_objectives_try_the_pairs_that_agree_best(tmp_path, rng):
    scores = rng.random((5, 10, 8))
    scores[..., 7] = scores[..., 2] + 0.6 * rng.random((5, 10))
    result = decompose(pool_of(tmp_path, scores, tuple("abcdefgh")))
    pairs = [each.merged[0] for each in result.proposals if each.kind == "pair"]
    assert len(pairs) == 10
    assert ("c", "h") in pairs
    assert "(7 more pairs that were tried are in --json)" in decomposition_text(result)
