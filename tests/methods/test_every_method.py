"""What holds for every method, what each declares to trainers, and how methods are found by name."""

import re
from dataclasses import dataclass
from math import sqrt
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from vpo import advantages
from vpo.methods import METHODS, get, reference


def example(name, problems=3, rollouts=6):
    answers = 3 if METHODS[name].takes_sets else 1
    return np.random.default_rng(0).random((problems, rollouts, answers, 4))


@pytest.mark.parametrize("name", METHODS)
def test_no_spread_gives_exactly_zero(name):
    # 0.1 is not a sum of powers of two, so a mean of six would not be 0.1 to the last digit.
    answers = 3 if METHODS[name].takes_sets else 1
    rewards = np.full((2, 6, answers, 4), 0.1)
    result = advantages(name, rewards)
    assert (result == 0).all()


@pytest.mark.parametrize("name", ["multi_rlvr", "vpo", "vpo_anchored"])
@given(rewards=arrays(np.float64, (3, 4), elements=st.floats(0, 1)), order=st.permutations(range(1, 3)))
def test_rounding_noise_never_becomes_an_advantage(name, rewards, order):
    """Rollouts with the same answers in another order differ in the last digits at most, and have the same reward."""
    group = np.stack([rewards, rewards[[0, *order]], rewards])
    assert (advantages(name, group[None]) == 0).all()


@pytest.mark.parametrize("name", METHODS)
def test_numpy_and_torch_agree(name):
    rewards = example(name)
    result = advantages(name, rewards)
    tensor = advantages(name, torch.tensor(rewards))
    assert tensor.dtype == torch.float64
    np.testing.assert_allclose(tensor, result, atol=1e-9)
    short = advantages(name, torch.tensor(rewards, dtype=torch.float32))
    assert short.dtype == torch.float32
    np.testing.assert_allclose(short, result, atol=1e-4)


@pytest.mark.parametrize("name", METHODS)
def test_advantages_have_mean_zero_in_their_group(name):
    """A trainer that subtracts the group's mean leaves them as they are."""
    np.testing.assert_allclose(advantages(name, example(name)).mean(axis=1), 0, atol=1e-12)


@pytest.mark.parametrize("name", METHODS)
def test_what_a_trainer_must_know(name):
    method = get(name)
    assert method.name == name
    assert method.answers == (3 if name in ("multi_rlvr", "vpo", "vpo_anchored", "vpo_marginal") else 1)
    assert method.whole_group == (name in ("gdpo", "maxrl", "max_at_k", "vpo_marginal"))
    assert method.whole_batch == (name == "gdpo")
    assert method.target_in_prompt == (name == "goal_conditioned")
    assert method.scale_rewards == ("none" if method.whole_group or name == "dr_grpo" else "group")
    assert method.loss_type == ("dr_grpo" if name == "dr_grpo" else None)
    assert method.per_answer == (method.single_reward is not None) == (name in ("vpo_anchored", "vpo_marginal"))
    assert method.draws_weightings == (name in ("random_weighting", "goal_conditioned"))


@pytest.mark.parametrize("name", ["vpo_anchored", "vpo_marginal"])
def test_the_settings_for_one_reward_give_one(name):
    method = METHODS[name]
    assert not method(**method.single_reward).per_answer


def test_weightings_are_sampled_by_the_reward_alone():
    """Where the step is not known, a rollout is logged by a method that draws none, or whose prompt states it."""
    assert get("vpo", draws=7, answers=2).for_one_rollout() == get("vpo", answers=2)
    assert get("random_weighting").for_one_rollout() == get("grpo")
    for name in METHODS:
        alone = get(name).for_one_rollout()
        assert not alone.draws_weightings or alone.target_in_prompt


@dataclass(frozen=True, kw_only=True)
class Halved(METHODS["grpo"]):
    """A method of a user's own."""

    name = "halved"
    factor: float = 0.5

    def rewards(self, group):
        return self.factor * super().rewards(group)


def test_a_method_of_your_own_is_taken_wherever_a_name_is():
    path = f"{__name__}:Halved"
    assert get(path, factor=0.25) == Halved(factor=0.25)
    assert get(Halved()) == Halved()
    assert reference(Halved(factor=0.25)) == (path, {"answers": 1, "factor": 0.25})
    assert reference(get("vpo")) == ("vpo", {"answers": 3, "concentration": 1.0, "draws": None})
    # One problem, four rollouts of one answer: under the uniform w* 1, 1/2, 1/2, 0.
    rewards = np.array([[[[1.0, 1.0]], [[1.0, 0.0]], [[0.0, 1.0]], [[0.0, 0.0]]]])
    np.testing.assert_array_equal(advantages(Halved(), rewards), advantages(path, rewards))
    # Half of those: sample variance 1/24.
    step = 0.25 / (sqrt(1 / 24) + 1e-4)
    np.testing.assert_allclose(advantages(Halved(), rewards), [[step, 0, 0, -step]], atol=1e-7)


def local_method():
    class Local(METHODS["grpo"]):
        name = "local"

    return Local()


def test_there_are_eleven_methods():
    assert len(METHODS) == 11


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: get("gpro"), r"method 'gpro' is not known: did you mean 'grpo'\?"),
        (lambda: get("xyz"), "method 'xyz' is not known: there are grpo, dr_grpo"),
        (lambda: get("vpo", anchor=0.5), "vpo has no setting 'anchor': there are answers, concentration, draws"),
        (lambda: get("grpo", answers=3), "grpo takes 1 answer per rollout, not 3"),
        (lambda: get("vpo", answers=0), "answers must be 1 or more, not 0"),
        (lambda: get("vpo", draws=0), "draws must be 1 or more, not 0"),
        (lambda: get("vpo", concentration=0), "concentration must be finite and greater than 0, not 0"),
        (lambda: get("random_weighting", concentration=-1), "concentration must be finite and greater than 0"),
        (lambda: get("vpo_anchored", anchor=1.5), r"anchor must lie in 0\.\.1, not 1.5"),
        (lambda: get("max_at_k", k=2.5), "k must be an integer, not 2.5"),
        (lambda: get("vpo", answers=2.5), "answers must be an integer, not 2.5"),
        (lambda: get("vpo", concentration=1e9), r"concentration must lie in 1e-06\.\.1e\+06, not"),
        (lambda: get(None), "method None is not known"),
        (lambda: get("vpo.methods:Nothing"), "method 'vpo.methods:Nothing' cannot be imported"),
        (lambda: get("math:pi"), "method 'math:pi' must be a subclass of vpo.methods.Method"),
        (lambda: get(f"{__name__}:Halved", half=1), "has no setting 'half': there are answers, factor"),
        (lambda: get(Halved(), factor=1.0), "halved has its settings already"),
        (lambda: reference(local_method()), "method local must be a class of an importable module"),
        (lambda: get("max_at_k", k=1), "k must be 2 or more, not 1"),
    ],
)
def test_bad_settings_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_every_method_has_a_section_with_its_paper_and_its_command():
    text = (Path(__file__).parent.parent.parent / "docs" / "paper_index.md").read_text()
    sections = {part.split("\n", 1)[0]: part for part in text.split("\n## ")[1:]}
    assert list(sections) == [*METHODS, "base"]
    for name in METHODS:
        assert f"`vpo train maze --method {name}" in sections[name]
        paper = re.search(r"arXiv \d{4}\.\d{5}", METHODS[name].__doc__)
        assert paper is None or paper.group() in sections[name]
