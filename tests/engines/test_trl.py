"""The reward functions on a stock trl.GRPOTrainer, with a tiny random model; its settings, data sets and prompts."""

import numpy as np
import pytest

pytest.importorskip("trl")

from datasets import Dataset, DatasetDict

from tests.engines.letters import letters, own_reward
from tests.engines.tiny import save_tiny_model
from tests.engines.training import G, assert_advantages, run_trainer, swapped
from vpo import advantages
from vpo.engines.trl import ask_for, check, grpo_config, reward_function, task_dataset
from vpo.methods import METHODS, get
from vpo.tasks.answers import write
from vpo.tasks.maze import MazeTask
from vpo.util.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    return save_tiny_model(tmp_path_factory.mktemp("qwen3"))


@pytest.mark.parametrize("name", METHODS)
def test_a_stock_trainer_gets_the_advantages_of_the_method(name, tiny, tmp_path):
    method = get(name, **(METHODS[name].single_reward or {}))
    reward = own_reward(method, group=G, seed=7)
    _, (batch,), (seen,) = run_trainer(tiny, reward, tmp_path)
    step = 0 if name == "goal_conditioned" else batch.step  # its weightings were written into the prompts before
    expected_PG = advantages(method, batch.rewards, seed=7, step=step, problems=batch.problems, copies=batch.copies)
    assert np.abs(expected_PG).max() > 0
    expected = batch.by_text(expected_PG)
    assert_advantages(seen, expected)
    with pytest.raises(AssertionError):
        assert_advantages(seen, swapped(expected))


def test_everything_worth_watching_is_logged(tiny, tmp_path):
    trainer, _, _ = run_trainer(tiny, own_reward("vpo"), tmp_path, steps=2)
    logged = trainer.state.log_history[0]
    for name in ("objective/vowels", "objective/rest", "set_reward", "diversity", "parse_rate", "truncated"):
        assert 0 <= logged[f"vpo/{name}"] <= 3, name
    assert logged["vpo/parse_rate"] == logged["vpo/read_rate"] == 1
    assert logged["vpo/groups_without_spread"] in (0, 0.5, 1)
    assert logged["rewards/vpo/mean"] == pytest.approx(logged["vpo/set_reward"], abs=1e-5)


def test_a_llama_trains_on_a_task(tmp_path):
    task = MazeTask(size=7)
    problems = task.problems("train", count=4)
    model = save_tiny_model(tmp_path / "llama", "llama")
    trainer, _, _ = run_trainer(model, reward_function(task, "vpo", problems=problems), tmp_path)
    assert trainer.state.log_history[0]["vpo/parse_rate"] == 0  # it writes noise
    assert trainer.state.log_history[0]["vpo/objective/completion"] == 0


def test_the_prompt_states_the_weighting_of_the_reward():
    reward = own_reward("goal_conditioned", seed=4)
    rows = task_dataset(reward)
    for row in rows:
        weights = reward.prompt_weighting(row["problem"])
        assert f"vowels {weights[0]:.0%}, consonants {weights[1]:.0%}" in row["prompt"][-1]["content"]
        (value,) = reward(["p"], ["aaa"], problem=[row["problem"]])
        assert value == pytest.approx(weights[0], abs=1e-6)
    assert len({tuple(reward.prompt_weighting(row["problem"])) for row in rows}) == 4
    assert "vowels" not in task_dataset(own_reward("vpo"))[0]["prompt"][-1]["content"]
    own = reward_function(score=letters, objectives=list("abc"))
    with pytest.raises(ValueError, match="task_dataset takes a reward function of a task"):
        task_dataset(own)


def test_what_is_no_task_and_no_data_set_is_refused():
    with pytest.raises(InputError, match=r"task must be a task, not its name: vpo.tasks.get\('maze'\)"):
        reward_function("maze", problems=[])
    with pytest.raises(InputError, match="ask_for takes a data set of the package datasets"):
        ask_for([{"prompt": "x"}], answers=3)


@pytest.mark.parametrize(("group", "steps"), [(4, 1), (8, 1), (16, 2), (12, 3)])
def test_without_a_batch_size_whole_groups_fit_in_a_batch(group, steps, tmp_path):
    reward = reward_function(None, "vpo", score=letters, objectives=list("abc"), group=group)
    config = grpo_config(reward, output_dir=str(tmp_path))
    assert (config.num_generations, config.gradient_accumulation_steps) == (group, steps)
    assert config.generation_batch_size == 8 * steps
    assert (
        grpo_config(reward, output_dir=str(tmp_path), per_device_train_batch_size=group).generation_batch_size == group
    )


def test_evaluation_of_goal_conditioned_states_the_deployed_weighting():
    reward = own_reward("goal_conditioned", target=[0.5, 0.5, 0.0])
    row = task_dataset(reward, evaluation=True)[0]
    assert "vowels 50%, consonants 50%, rest 0%" in row["prompt"][-1]["content"]
    assert reward(["p"], ["aaa"], problem=[row["problem"]], deployed=[row["deployed"]]) == [0.5]
    assert reward(["p"], ["aaa"], problem=[row["problem"]], deployed=[False]) != [0.5]
    # To other methods a column of that name is a column like any other.
    sets = [write(["a", "b", "X"])]
    plain = reward_function(score=letters, objectives=list("abc"))
    assert plain(["p"], sets, deployed=[True]) == plain(["p"], sets)


def test_thinking_is_off_by_default(tmp_path):
    assert grpo_config("vpo", output_dir=str(tmp_path)).chat_template_kwargs == {"enable_thinking": False}
    chosen = grpo_config("vpo", output_dir=str(tmp_path), chat_template_kwargs={"enable_thinking": True})
    assert chosen.chat_template_kwargs == {"enable_thinking": True}


def test_a_first_batch_that_is_read_raises_no_alarm_in_the_second(recwarn):
    reward = reward_function(score=letters, objectives=list("abc"), answers=2)
    for texts in ([write(["a", "b"])] * 2, ["no tags"] * 2):
        reward(prompts=["p"] * 2, completions=texts)
    assert [each for each in recwarn.list if "could be read" in str(each.message)] == []


def test_text_prompts_become_messages_or_are_warned_of(recwarn):
    texts = Dataset.from_dict({"prompt": ["Question?", "Another?"], "solution": ["4", "5"]})
    with pytest.warns(UserWarning, match="the prompts are texts, to which trainers apply no chat template") as caught:
        asked = ask_for(texts, 3)
    assert len(caught) == 1
    recwarn.clear()
    assert ask_for(texts, 3, chat=False)["prompt"][:] == asked["prompt"][:]
    chat = ask_for(texts, 3, chat=True)
    assert chat[1] == {"prompt": [{"role": "user", "content": asked[1]["prompt"]}], "solution": "5"}
    messages = Dataset.from_dict({"prompt": [[{"role": "user", "content": "Question?"}]]})
    assert ask_for(messages, 3)[0]["prompt"] == ask_for(messages, 3, chat=True)[0]["prompt"] == chat[0]["prompt"]
    assert next(iter(ask_for(texts.to_iterable_dataset(), 3, chat=True))) == chat[0]
    assert len(ask_for(texts.select([]), 3)) == 0
    assert recwarn.list == []


def test_prompts_ask_for_m_answers():
    texts = ask_for(Dataset.from_dict({"prompt": ["Question?"], "solution": ["4"]}), 3, chat=False)
    assert texts[0]["prompt"].startswith("Question?\n\nGive 3 different answers")
    assert texts[0]["solution"] == "4"
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "Question?"}]
    prompt = ask_for(Dataset.from_dict({"prompt": [messages]}), 2)[0]["prompt"]
    assert prompt[0] == messages[0]
    assert "<answer_2>" in prompt[1]["content"]
    parts = [{"role": "user", "content": [{"type": "text", "text": "Question?"}]}]
    prompt = ask_for(Dataset.from_dict({"prompt": [parts]}), 2)[0]["prompt"]
    assert "<answer_2>" in prompt[0]["content"][1]["text"]
    with pytest.raises(ValueError, match="give one split of the data set, not all of them: train"):
        ask_for(DatasetDict(train=texts), 2)
    with pytest.raises(ValueError, match="the data set must have a column prompt, and has text"):
        ask_for(Dataset.from_dict({"text": ["x"]}), 2)


def test_a_trainer_with_another_methods_config_is_refused_before_its_first_update(tiny, tmp_path):
    from trl import GRPOTrainer

    args = grpo_config(
        "gdpo", output_dir=str(tmp_path), num_generations=G, per_device_train_batch_size=G, max_completion_length=8,
        report_to="none", use_cpu=True, max_steps=1,
    )  # fmt: skip
    reward = own_reward("vpo")
    trainer = GRPOTrainer(tiny, reward_funcs=reward, args=args, train_dataset=task_dataset(reward))
    with pytest.raises(ValueError, match="scale_rewards must be 'group' for vpo, not 'none'"):
        trainer.train()
    assert trainer.state.global_step == 0
    with pytest.raises(ValueError, match="scale_rewards must be 'group' for vpo"):
        check(own_reward("vpo"), args)
