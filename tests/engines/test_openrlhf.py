"""The reward function in OpenRLHF: on its own, and from the real package's loader to its advantages."""

import asyncio
import importlib
import json
from types import SimpleNamespace

import numpy as np
import pytest

from tests.engines import gpu_packages
from tests.engines.letters import letters, own_reward
from tests.engines.plugged import (
    ANSWERS,
    OBJECTIVES,
    SOLUTIONS,
    completions,
    expected,
    method_of,
    plugin,
    reward_by,
    score,
)
from vpo.engines.metrics import metric_names
from vpo.engines.openrlhf import SampleGroup, add_rewards, agent, columns_of, sample_rewards
from vpo.engines.reward import reward_function
from vpo.methods import METHODS
from vpo.tasks.answers import write

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages

SUPPORTED = [name for name in METHODS if name not in ("gdpo", "goal_conditioned")]  # the latter needs a task
LABEL = json.dumps({"solution": "4"})


def test_a_group_is_scored_together():
    outputs = sample_rewards(reward_by("vpo"), "first", LABEL, completions("first", 2))
    rewards = [output["reward"] for output in outputs]
    assert all(type(reward) is np.float64 for reward in rewards)  # float32 would not do: see below
    assert rewards == reward_by("vpo")(["first"] * 4, completions("first", 2), solution=["4"] * 4)
    assert [output["scores"] for output in outputs] == rewards
    names = {f"vpo/{name}" for name in metric_names(OBJECTIVES, reward_by("vpo").method)}
    assert all(set(output["extra_logs"]) == names for output in outputs)


def test_scores_are_no_advantages():
    """Dynamic filtering keeps a group whose mean score lies within bounds: here w*·r is 1, 0.5, 0.5 and 1."""
    outputs = sample_rewards(reward_by("max_at_k"), "first", LABEL, completions("first", 1))
    assert sum(output["reward"] for output in outputs) == pytest.approx(0)
    assert [output["scores"] for output in outputs] == [0.75] * 4


def test_an_answer_that_the_token_budget_cut_off_has_no_reward():
    class Output(dict):
        """As OpenRLHF's executor makes it, with a token for each letter."""

        def __init__(self, text, truncated):
            tokens = [ord(letter) for letter in f"first{text}"]
            super().__init__(observation_tokens=tokens, action_ranges=[(5, len(tokens))], truncated=truncated)

    whole, cut = write(["4"]), "<answer>4"
    outputs = [Output(whole, False), Output(whole, True), Output(cut, False), Output(cut, True)]
    add_rewards(reward_by("grpo"), Letters(), "first", LABEL, 0, outputs)
    assert [output["reward"] for output in outputs] == [1.0, 1.0, 1.0, 0.0]
    assert {output["extra_logs"]["vpo/truncated"] for output in outputs} == {0.5}


def test_unknown_rewards_get_the_mean_of_the_group_and_the_same_logs():
    some = sample_rewards(reward_by("grpo"), "first", LABEL, [write(["4"]), write(["?"]), write(["5555"])])
    assert [output["reward"] for output in some] == [1.0, 0.5, 0.0]
    none = sample_rewards(reward_by("grpo"), "first", LABEL, [write(["?"])] * 3)
    assert [output["reward"] for output in none] == [0.0] * 3
    assert none[0]["extra_logs"].keys() == some[0]["extra_logs"].keys()
    assert (some[0]["extra_logs"]["vpo/unknown"], none[0]["extra_logs"]["vpo/unknown"]) == (1, 3)


def test_each_group_draws_its_own_weighting():
    reward, texts = reward_by("random_weighting"), completions("first", 1)
    groups = [sample_rewards(reward, "first", LABEL, texts, step) for step in (0, 0, 1)]
    first, again, later = [[output["reward"] for output in outputs] for outputs in groups]
    assert first == again != later


def test_the_reward_is_under_the_weighting_that_the_prompt_states():
    reward = own_reward("goal_conditioned", seed=3)
    (output,) = sample_rewards(reward, "one", '{"problem": "one", "deployed": false}', ["ae4XYZ"], step=5)
    wanted = np.dot(reward.prompt_weighting("one"), letters("ae4XYZ"))
    assert output["reward"] == pytest.approx(wanted, abs=1e-6)


def test_a_label_carries_columns():
    assert columns_of('{"solution": "4", "depth": 2}') == {"solution": "4", "depth": 2}
    assert columns_of({"solution": "4"}) == {"solution": "4"}
    assert columns_of("4") == {"label": "4"}
    assert columns_of("{1, 2}") == {"label": "{1, 2}"}


def test_unsupported_methods_are_refused():
    with pytest.raises(ValueError, match="gdpo divides by the spread of the whole batch, and an agent of OpenRLHF"):
        agent(reward_by("gdpo"))
    with pytest.raises(ValueError, match="vpo_anchored has an advantage for each answer, and OpenRLHF has one"):
        agent(reward_function(None, "vpo_anchored", score=score, objectives=OBJECTIVES))
    with pytest.raises(ValueError, match=r"maxrl .*n_samples_per_prompt must be 4, the group of the reward, not 8"):
        sample_rewards(reward_by("maxrl"), "first", LABEL, completions("first", 1) * 2)


def together(samples, add_rewards=lambda outputs: None):
    """Run samples as a group; returns the output or the error of each."""

    async def main():
        group = SampleGroup(add_rewards, None)
        return await asyncio.gather(*(group.add(sample) for sample in samples), return_exceptions=True)

    return asyncio.run(asyncio.wait_for(main(), 20))


async def sample(number, waits=0.0, error=None):
    if waits:
        await asyncio.sleep(waits)
    if error is not None:
        raise error
    return {"number": number}


def test_samples_wait_for_their_group():
    seen = []
    outputs = together(
        [sample(0, 0.02), sample(1), sample(2, 0.01)],
        lambda outputs: seen.append([output["number"] for output in outputs]),
    )
    assert seen == [[1, 2, 0]]
    assert outputs == [{"number": 0}, {"number": 1}, {"number": 2}]


def test_a_sample_that_fails_leaves_no_other_waiting():
    lost, failed, late = together([sample(0), sample(1, 0.01, OSError("gone")), sample(2, 0.02)])
    assert isinstance(failed, OSError)
    assert isinstance(lost, asyncio.CancelledError)
    assert isinstance(late, BaseException)

    def refuse(outputs):
        raise ValueError("no")

    first, last = together([sample(0), sample(1, 0.01)], refuse)
    assert isinstance(last, ValueError)
    assert isinstance(first, asyncio.CancelledError)


@pytest.fixture(scope="module")
def openrlhf():
    """The modules of OpenRLHF that load an agent, make samples of its outputs, and compute their advantages."""
    pytest.importorskip("openrlhf")
    for name in ("accelerate", "datasets", "peft", "transformers"):  # they look for packages that are not installed
        importlib.import_module(name)
    from transformers import PreTrainedModel, Trainer  # noqa: F401

    with gpu_packages.importable():
        parts = {
            "engine": "openrlhf.trainer.ray.vllm_engine",
            "samples": "openrlhf.trainer.ppo_utils.samples_generator",
            "maker": "openrlhf.trainer.ppo_utils.experience_maker",
        }
        yield SimpleNamespace(**{short: importlib.import_module(name) for short, name in parts.items()})


class Letters:
    """A tokenizer with a token for each letter."""

    def __call__(self, text, **_):
        import torch

        return {"input_ids": torch.tensor([[ord(letter) for letter in text]])}

    def decode(self, ids, **_):
        return "".join(map(chr, ids))


class Engine:
    """Writes the completions of each prompt in turn, the last one first."""

    def __init__(self, executor, count):
        self.executor, self.count, self.started = executor, count, dict.fromkeys(ANSWERS, 0)

    async def generate(self, ids, params, **_):
        prompt = "".join(map(chr, ids))
        index = self.started[prompt]
        self.started[prompt] += 1
        await asyncio.sleep(0.01 * (4 - index))
        text = completions(prompt, self.count)[index]
        output = SimpleNamespace(token_ids=[ord(letter) for letter in text], finish_reason="stop", logprobs=None)
        return SimpleNamespace(outputs=[output])


def responses(openrlhf, file, count):
    """OpenRLHF's samples of both prompts, generated at the same time in one actor."""
    engine = Engine(openrlhf.engine._load_agent_executor(str(file)), count)
    generate = openrlhf.engine.RolloutRayActor.generate_responses

    async def main():
        groups = [
            generate(
                engine,
                prompt=prompt,
                label=json.dumps({"solution": SOLUTIONS[prompt]}),
                sampling_params=SimpleNamespace(max_tokens=64, logprobs=None),
                max_length=256,
                hf_tokenizer=Letters(),
                num_samples=4,
            )
            for prompt in ANSWERS
        ]
        return await asyncio.wait_for(asyncio.gather(*groups), 30)

    return [response for group in asyncio.run(main()) for response in group]


def advantages_of(openrlhf, samples, estimator, group=4):
    """The advantages that OpenRLHF makes of samples, (P, G)."""
    import torch

    generator = openrlhf.samples.SamplesGenerator.__new__(openrlhf.samples.SamplesGenerator)
    experiences = [generator._process_response_into_experience(response, max_len=256) for response in samples]
    for index, experience in enumerate(experiences):
        experience.index, experience.kl = [index], torch.zeros(experience.action_mask.shape)
    maker = openrlhf.maker.RemoteExperienceMaker.__new__(openrlhf.maker.RemoteExperienceMaker)
    advantage = SimpleNamespace(estimator=estimator, gamma=1.0, lambd=1.0, no_std_norm=False)
    penalties = SimpleNamespace(clip_range=(-10, 10), overlong_buffer_len=None, stop_properly_penalty_coef=None)
    rollout = SimpleNamespace(n_samples_per_prompt=group)
    maker.args = SimpleNamespace(rollout=rollout, algo=SimpleNamespace(advantage=advantage), reward=penalties)
    maker.strategy, maker.advantage_estimator = SimpleNamespace(args=maker.args), estimator
    maker.kl_ctl = SimpleNamespace(value=0.0)
    made = maker.compute_advantages_and_returns(experiences)
    assert {experience.advantages.dtype for experience in made} == {torch.float32}
    return np.asarray([float(experience.advantages[0, -1]) for experience in made]).reshape(-1, group)


@pytest.mark.parametrize("name", SUPPORTED)
def test_openrlhf_gets_the_advantages_of_the_method(openrlhf, tmp_path, monkeypatch, name):
    monkeypatch.setattr("vpo.methods.normalize.EPSILON", 1e-9)  # what OpenRLHF adds to a spread
    file = plugin(tmp_path, name, "from vpo.engines.openrlhf import agent\nAgentExecutor = agent(reward_of_vpo)\n")
    samples = responses(openrlhf, file, method_of(name).answers)
    estimator = "dr_grpo" if name in ("dr_grpo", "maxrl", "max_at_k") else "group_norm"
    result = advantages_of(openrlhf, samples, estimator)
    if name == "random_weighting":  # each prompt of an actor is a step of its own
        steps = [expected(name, step=step, problems=["'first'", "'second'"]) for step in (0, 1)]
        want = np.stack([steps[0][0], steps[1][1]])
    else:
        want = expected(name)
    assert np.abs(want).max() > 0.1
    np.testing.assert_allclose(result, want, atol=1e-6)


def test_equal_rewards_give_no_advantage_in_openrlhf(openrlhf):
    """With group_norm in float32, equal rewards get advantages up to the clip."""
    sample = {"observation_tokens": [1, 2], "action_ranges": [(1, 2)], "rollout_log_probs": None, "prompt": "p"}
    equal = [float(np.float32(number)) for number in np.random.default_rng(0).random(64) for _ in range(8)]
    plain = [{**sample, "label": "", "reward": number, "scores": number} for number in equal]
    wide = [{**each, "reward": np.float64(each["reward"])} for each in plain]
    assert np.abs(advantages_of(openrlhf, plain, "group_norm", 8)).max() > 1
    assert np.abs(advantages_of(openrlhf, wide, "group_norm", 8)).max() == 0


def test_openrlhf_shows_what_went_wrong(openrlhf, tmp_path):
    last = """
        from dataclasses import replace
        from vpo.engines.openrlhf import agent
        AgentExecutor = agent(replace(reward_of_vpo, group=8))
    """
    file = plugin(tmp_path, "maxrl", last)
    with pytest.raises(ValueError, match="n_samples_per_prompt must be 8, the group of the reward, not 4"):
        responses(openrlhf, file, 1)
