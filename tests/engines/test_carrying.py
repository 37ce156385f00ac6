"""What the engines of other trainers share."""

import pytest

from tests.engines.plugged import OBJECTIVES, paid_by, score
from vpo.engines.carrying import check_one_reward, filled
from vpo.engines.metrics import names
from vpo.engines.reward import reward_function
from vpo.methods import get


def test_a_method_that_pays_each_answer_is_refused_with_what_to_do():
    check_one_reward(get("vpo_anchored", anchor=0.5), "X")
    with pytest.raises(ValueError, match=r"vpo_anchored pays each answer by itself, and X has one advantage .* anchor"):
        check_one_reward(get("vpo_anchored"), "X")


def test_unknown_rewards_get_the_mean_of_the_others():
    assert filled([1.0, None, 0.0]) == [1.0, 0.5, 0.0]
    assert filled([0.1, None, 0.1]) == [0.1, 0.1, 0.1]
    assert filled([None, None]) == [0.0, 0.0]
    assert filled([]) == []


def test_metrics_have_the_names_that_were_promised():
    logged = {}
    paid_by("vpo")(["p"], ["<answer_1>4</answer_1>"], log_metric=logged.__setitem__, solution=["4"])
    assert set(logged) == {f"vpo/{name}" for name in names(OBJECTIVES)}
    unknown = {}
    reward = reward_function(score=lambda answer: None, objectives=OBJECTIVES)
    reward(["p"], ["<answer_1>4</answer_1>"], log_metric=unknown.__setitem__)
    assert set(unknown) < set(logged)
    assert score("?", "4") is None
