"""What `advantages` does with shapes, masks and rollouts whose reward is not known."""

import numpy as np
import pytest
import torch

from vpo import advantages
from vpo.methods import METHODS, get

# Methods whose advantage in one group does not depend on the rest of the batch.
BY_GROUP = [name for name in METHODS if name != "gdpo"]


def example(name, problems=3, rollouts=6, objectives=4):
    answers = 3 if METHODS[name].takes_sets else 1
    return np.random.default_rng(0).random((problems, rollouts, answers, objectives))


@pytest.mark.parametrize("name", METHODS)
def test_a_list_of_groups_is_the_same_batch(name):
    rewards = example(name)
    np.testing.assert_allclose(advantages(name, list(rewards)), advantages(name, rewards))


@pytest.mark.parametrize("name", BY_GROUP)
def test_groups_may_differ_in_their_objectives(name):
    groups = [example(name, problems=1, objectives=d)[0] for d in (2, 16, 5)]
    result = advantages(name, groups, seed=1)
    assert result.shape[:2] == (3, 6)
    np.testing.assert_allclose(result[:1], advantages(name, groups[:1], seed=1))
    tensors = advantages(name, [torch.tensor(group) for group in groups], seed=1)
    np.testing.assert_allclose(tensors, result, atol=1e-9)


def test_groups_of_different_objectives_with_a_target_each():
    groups = [example("grpo", problems=1, objectives=d)[0] for d in (2, 3)]
    result = advantages("grpo", groups, target=[[1, 0], [0, 0, 1]])
    np.testing.assert_allclose(result[0], advantages("grpo", groups[:1], target=[1, 0])[0])
    np.testing.assert_allclose(result[1], advantages("grpo", groups[1:], target=[0, 0, 1])[0])


@pytest.mark.parametrize("name", METHODS)
def test_rollouts_that_are_not_valid_take_no_part(name):
    rewards = example(name)
    valid = np.ones((3, 6), dtype=bool)
    valid[0, 2] = valid[1, 0] = valid[1, 5] = False
    spoiled = rewards.copy()
    spoiled[~valid] = np.nan  # an absent reward is neither zero nor NaN: it is not read
    result = advantages(name, spoiled, valid=valid)
    assert (result[~valid] == 0).all()
    # The same as groups that never had them; the key of a group is its position, so the first one is compared.
    left = [rewards[0][valid[0]]]
    alone = advantages(name, left)
    if name == "gdpo":  # divided by another batch's spread
        ratio = result[0][valid[0]] / alone[0]
        np.testing.assert_allclose(ratio, ratio[0])
    else:
        np.testing.assert_allclose(result[0][valid[0]], alone[0], atol=1e-12)
    np.testing.assert_allclose(advantages(name, torch.tensor(spoiled), valid=torch.tensor(valid)), result, atol=1e-9)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("left", [0, 1, 2])
def test_a_group_with_too_few_valid_rollouts_gets_zero(name, left):
    valid = np.ones((3, 6), dtype=bool)
    valid[1, left:] = False
    result = advantages(name, example(name), valid=valid)
    if left < METHODS[name].min_group_size:
        assert (result[1] == 0).all()
    assert np.isfinite(result).all()
    assert (result[0] != 0).any()


def test_a_group_with_too_few_rollouts_does_not_dilute_the_batch():
    """gdpo divides by the spread of the batch: a group that takes no part adds no zeros to it."""
    rewards = example("gdpo", problems=2)
    valid = [[1] * 6, [1, 0, 0, 0, 0, 0]]
    np.testing.assert_allclose(advantages("gdpo", rewards, valid=valid)[0], advantages("gdpo", rewards[:1])[0])


def test_half_precision_is_taken_everywhere():
    rewards = torch.tensor(example("vpo")).bfloat16()
    half = {"mask": torch.ones((3, 6, 3)).bfloat16(), "valid": torch.ones((3, 6)).half()}
    result = advantages("vpo", rewards, target=torch.full((4,), 0.25).bfloat16(), **half)
    assert result.dtype == torch.float32
    np.testing.assert_allclose(result, advantages("vpo", rewards.double()), atol=1e-4)


@pytest.mark.parametrize("name", METHODS)
def test_no_valid_rollout_at_all(name):
    assert (advantages(name, example(name), valid=np.zeros((3, 6))) == 0).all()


def test_an_explicit_k_gives_way_where_rollouts_are_missing():
    rewards = example("max_at_k", problems=1)
    valid = [[1, 1, 1, 0, 0, 0]]
    result = advantages(get("max_at_k", k=5), rewards, valid=valid)
    np.testing.assert_allclose(result[0, :3], advantages(get("max_at_k", k=2), rewards[:, :3])[0])


@pytest.mark.parametrize("name", METHODS)
def test_a_missing_answer_scores_nothing(name, rng):
    rewards = example(name)
    mask = rng.random(rewards.shape[:3]) < 0.7
    zeroed = np.where(mask[..., None], rewards, 0.0)
    spoiled = np.where(mask[..., None], rewards, np.nan)
    result = advantages(name, spoiled, mask=mask)
    # Zeros never win a maximum against rewards of 0 or more, and add nothing to a sum.
    np.testing.assert_allclose(result, advantages(name, zeroed), atol=1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: advantages("grpo", np.zeros((4, 1, 2))), r"rewards must be of rank 4, \(P, G, M, D\), not rank 3"),
        (lambda: advantages("grpo", [np.zeros((1, 2))]), r"rewards\[0\] must be of rank 3, \(G, M, D\)"),
        (lambda: advantages("grpo", []), "rewards must hold 1 or more problems, not 0"),
        (lambda: advantages("grpo", np.zeros((0, 4, 1, 2))), "rewards must hold 1 or more problems, not 0"),
        (lambda: advantages("grpo", np.zeros((1, 1, 1, 2))), "a group needs 2 or more rollouts for grpo, not 1"),
        (lambda: advantages("max_at_k", np.zeros((1, 2, 1, 2))), "a group needs 3 or more rollouts for max_at_k"),
        (lambda: advantages(get("max_at_k", k=4), np.zeros((1, 4, 1, 2))), "k must be less than the 4 rollouts"),
        (
            lambda: advantages("grpo", np.zeros((1, 4, 3, 2))),
            "grpo takes 1 answer per rollout, and rewards has 3",
        ),
        (lambda: advantages("vpo", np.zeros((1, 4, 3, 0))), r"rewards\[0\] must hold 1 or more answers and objectives"),
        (
            lambda: advantages("grpo", [np.zeros((4, 1, 2)), np.zeros((3, 1, 2))]),
            r"groups must be of one size: rewards\[1\] has 3 rollouts, rewards\[0\] has 4",
        ),
        (
            lambda: advantages("grpo", np.full((1, 4, 1, 2), np.nan)),
            r"rewards\[0\] must be finite: rewards\[0\]\[0, 0, 0\] is nan",
        ),
        (lambda: advantages("grpo", np.zeros((1, 4, 1, 2)), target=[0.5, 0.6]), "target must sum to 1"),
        (lambda: advantages("grpo", np.zeros((1, 4, 1, 2)), target=[1.5, -0.5]), "target must not be negative"),
        (lambda: advantages("vpo", np.zeros((1, 4, 2, 2)), target=[0.2, 0.2]), "target must sum to 1"),
        (lambda: advantages("grpo", np.zeros((1, 4, 1, 2)), target=[1.0]), "one weight for each of 2 objectives"),
        (lambda: advantages("grpo", np.zeros((1, 4, 1, 2)), target=0.5), "one weight for each of 2 objectives"),
        (lambda: advantages("grpo", np.zeros((3, 4, 1, 2)), target=[[1, 0]]), "target must have one entry for each"),
        (lambda: advantages("grpo", np.zeros((1, 4, 1, 2)), mask=[[1, 1]]), r"mask\[0\] must have shape \(4, 1\)"),
        (lambda: advantages("grpo", np.zeros((1, 4, 1, 2)), valid=[[1, 1]]), r"valid\[0\] must have shape \(4,\)"),
        (lambda: advantages("grpo", np.zeros((2, 4, 1, 2)), valid=[[1] * 4]), "valid must have one entry for each"),
        (
            lambda: advantages("grpo", np.zeros((2, 4, 1, 2)), valid=True),
            "valid must have one entry for each .* not True",
        ),
        (lambda: advantages("grpo", np.zeros((2, 4, 1, 2)), seed=1.5), "seed must be an integer, not 1.5"),
        (lambda: advantages("grpo", np.zeros((2, 4, 1, 2)), step=None), "step must be an integer, not None"),
        (lambda: advantages("grpo", np.zeros((2, 4, 1, 2)), problems=["a"]), "problems must have one entry for each"),
        (lambda: advantages("grpo", np.full((2, 4, 1, 2), 1e31)), r"rewards\[0\] must be at most 1e\+30 in size"),
        (
            lambda: advantages("grpo", [np.zeros((4, 1, 2)), torch.zeros((4, 1, 2))]),
            r"groups must be of one kind: rewards\[1\] is .*Tensor.*rewards\[0\] .*ndarray",
        ),
        (
            lambda: advantages("grpo", np.zeros((2, 4, 1, 2)), target=[[0.5, 0.5], [0.5, 0.6]]),
            r"target\[1\] must sum to 1 over the objectives, and it sums to 1.1",
        ),
        (lambda: advantages("grop", np.zeros((1, 4, 1, 2))), "did you mean 'grpo'"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
