"""The reward functions on a stock trl.GRPOTrainer, with a tiny random model."""

import warnings

import numpy as np
import pytest

pytest.importorskip("trl")

from datasets import Dataset, DatasetDict

from tests.engines.letters import letters, own_reward
from tests.engines.tiny import save_tiny_model
from tests.engines.training import G, assert_advantages, run_trainer, swapped
from vpo import advantages, set_reward
from vpo.engines.rows import text_of
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


# Without a trainer


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


def test_rewards_are_those_of_the_method():
    task = MazeTask(size=7)
    maze = task.problems(count=1)[0]
    gold = task.gold(maze)
    completions = [write([gold, "R", "x"]), write([gold, gold, gold]), "nothing"]
    reward = reward_function(task, "vpo", problems=[maze])
    rewards = reward(prompts=["p"] * 3, completions=completions, problem=[maze.id] * 3)
    value = float(set_reward([task.score(maze, gold)]))
    assert rewards == pytest.approx([value, value, 0.0], abs=1e-6)
    multi = reward_function(task, "multi_rlvr", problems=[maze])
    total = sum(task.score(maze, gold)) / 4
    assert multi(prompts=["p"] * 3, completions=completions, problem=[maze.id] * 3) == pytest.approx([total, total, 0])
    plain = reward_function(task, get("multi_rlvr", count_copies=True), problems=[maze])
    assert plain(prompts=["p"] * 3, completions=completions, problem=[maze.id] * 3) == pytest.approx(
        [total, 3 * total, 0]
    )


def test_copies_are_told_by_the_answers_and_not_by_their_scores():
    task = MazeTask(size=7)
    maze = task.problems(count=1)[0]
    gold = task.gold(maze)
    further = f"{gold} U"  # moves after the end change the route, and not its score
    sets = [[gold, gold.lower(), f" {gold}"], [gold, further, gold], ["no route", "no  route", "x"]]
    reward = reward_function(task, "multi_rlvr", problems=[maze])
    total = sum(task.score(maze, gold)) / 4
    assert task.score(maze, further) == task.score(maze, gold)
    rewards = reward(prompts=["p"] * 3, completions=[write(each) for each in sets], problem=[maze.id] * 3)
    assert rewards == pytest.approx([total, 2 * total, 0])


def test_copies_of_a_score_function_are_answers_with_the_same_words():
    reward = reward_function(score=lambda answer: [0.5], objectives=["any"], answers=3, method="multi_rlvr")
    texts = [write(["x y", "x  y", "x y"]), write(["x", "y", "z"]), write(["x", "y", "x"])]
    assert reward(prompts=["p"] * 3, completions=texts) == [0.5, 1.5, 1.0]


def test_messages_are_read_as_texts():
    reward = reward_function(score=lambda answer: [len(answer)], objectives=["length"], answers=2)
    completion = [{"role": "assistant", "content": write(["ab", "abcd"])}]
    assert reward(prompts=[["p"]], completions=[completion]) == [4.0]


def test_a_method_that_one_answer_leaves_nothing_of_says_so(monkeypatch):
    monkeypatch.setattr("vpo.methods.compute._WARNED", set())
    with pytest.warns(UserWarning, match="vpo with one answer per rollout is"):
        reward_function(score=letters, objectives=list("abc"), answers=1)


def test_what_is_no_task_and_no_data_set_is_refused():
    with pytest.raises(InputError, match=r"task must be a task, not its name: vpo.tasks.get\('maze'\)"):
        reward_function("maze", problems=[])
    with pytest.raises(InputError, match="ask_for takes a data set of the package datasets"):
        ask_for([{"prompt": "x"}], answers=3)


def test_scores_that_it_is_better_not_to_have_are_named_once(recwarn):
    reward = reward_function(score=lambda answer: [-len(answer), 1], objectives=["short", "there"], answers=2)
    for _ in range(2):
        reward(prompts=["p"] * 2, completions=[write(["ab", "c"]), "nothing"])
    assert [str(each.message)[:24] for each in recwarn.list] == ["some scores are below 0,"]


def test_a_scorer_gets_the_columns_that_it_names():
    def score(answer, solution, prompt):
        return {"right": float(answer == solution), "short": 1.0 if len(answer) < len(prompt) else 0.0}

    reward = reward_function(None, "grpo", score=score, objectives=["short", "right"])
    rewards = reward(
        prompts=["a long prompt", "p"],
        completions=["<answer>4</answer>", "<answer>5</answer>"],
        solution=["4", "4"],
        other=[1, 2],
    )
    assert rewards == [1.0, 0.0]


def test_a_reward_that_is_not_known_is_none_and_takes_no_part():
    def score(answer):
        return None if answer == "?" else [float(answer)]

    texts = [f"<answer>{text}</answer>" for text in ("1", "?", "0", "0.5")]
    plain = reward_function(None, "grpo", score=score, objectives=["x"])
    assert plain(prompts=["p"] * 4, completions=texts) == [1.0, None, 0.0, 0.5]
    whole = reward_function(None, "max_at_k", score=score, objectives=["x"], group=4)
    rewards = whole(prompts=["p"] * 4, completions=texts)
    expected = advantages("max_at_k", np.array([[1.0], [0.0], [0.5]]).reshape(1, 3, 1, 1))[0]
    assert rewards[1] is None
    assert [rewards[0], *rewards[2:]] == pytest.approx(expected.tolist())


def test_draw_weightings_follow_the_problem_and_the_step():
    class State:
        global_step = 5

    reward = reward_function(None, "random_weighting", score=letters, objectives=list("abc"), seed=2)
    texts = [f"<answer>{text}</answer>" for text in ("aaa", "bbb", "aaa")]
    rewards = reward(prompts=["p", "p", "q"], completions=texts, problem=["x", "x", "y"], trainer_state=State)
    alone = reward(prompts=["q"], completions=texts[2:], problem=["y"], trainer_state=State)
    assert rewards[2] == alone[0]
    assert rewards[0] != rewards[2]


@pytest.mark.parametrize(
    ("completion", "text"),
    [
        ("a", "a"),
        ([{"role": "assistant", "content": "a"}], "a"),
        ([{"role": "assistant", "content": None}], ""),
        ([{"role": "assistant", "tool_calls": []}], ""),
        ([{"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "image"}, {"text": "b"}]}], "ab"),
        ([], ""),
    ],
)
def test_completions_of_any_form_have_a_text(completion, text):
    assert text_of(completion) == text


def test_a_scorer_may_share_a_name_with_a_column_and_return_one_number():
    reward = reward_function(None, "grpo", score=lambda answer, **more: len(answer) / 2, objectives=["length"])
    assert reward(["p"], ["<answer>x</answer>"], answer=["gold"], other=[1]) == [0.5]


def test_one_answer_needs_no_change_to_the_prompt():
    """`vpo_marginal` with one answer on plain completions: its rewards are the advantages of `vpo.advantages`."""
    method = get("vpo_marginal", answers=1)
    reward = reward_function(method=method, score=letters, objectives=list("abc"), group=4)
    texts = ["aab", "<think>b</think>bbb", "ab!", ""]
    answers = ["aab", "bbb", "ab!"]
    vectors = np.array([letters(answer) for answer in answers] + [[0.0] * 3])[None, :, None]
    mask = np.array([[[True]] * 3 + [[False]]])
    np.testing.assert_allclose(reward(["p"] * 4, texts), advantages(method, vectors, mask=mask)[0], atol=1e-12)


@pytest.mark.parametrize(("group", "steps"), [(4, 1), (8, 1), (16, 2), (12, 3)])
def test_without_a_batch_size_whole_groups_fit_in_a_batch(group, steps, tmp_path):
    reward = reward_function(None, "vpo", score=letters, objectives=list("abc"), group=group)
    config = grpo_config(reward, output_dir=str(tmp_path))
    assert (config.num_generations, config.gradient_accumulation_steps) == (group, steps)
    assert config.generation_batch_size == 8 * steps
    assert (
        grpo_config(reward, output_dir=str(tmp_path), per_device_train_batch_size=group).generation_batch_size == group
    )


def test_what_is_logged_follows_masks_and_groups():
    logged = {}
    reward = reward_function(score=lambda answer: [-1.0, -1.0], objectives=["a", "b"], group=2)
    completions = [write(["x", "y", "z"]), "<answer_1>x</answer_1>"] * 2
    reward(["p"] * 4, completions, log_metric=logged.__setitem__)
    assert logged["vpo/set_reward"] == pytest.approx(-1)  # a missing answer does not raise it to 0
    assert logged["vpo/target"] == pytest.approx((-1 - 1 / 3) / 2)
    # The same prompt twice in a batch, two groups of two: each without spread.
    single = reward_function(None, "grpo", score=float, objectives=["x"], group=2)
    single(["p"] * 4, [f"<answer>{x}</answer>" for x in (1, 1, 0, 0)], log_metric=logged.__setitem__)
    assert logged["vpo/groups_without_spread"] == 1


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


def test_a_low_read_rate_raises_an_alarm_once():
    reward = reward_function(score=letters, objectives=list("abc"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(8):
            reward(prompts=["p"], completions=["no tags"])
    alarms = [str(each.message) for each in caught if "could be read" in str(each.message)]
    assert len(alarms) == 1
    assert "raise max_completion_length" in alarms[0]


UNREAD = "Sure!\x1b[31m\n\u202e" + "x" * 5000 + " the end"


@pytest.mark.parametrize("method", ["vpo", "vpo_marginal"])
def test_a_first_batch_without_answers_warns_at_once_and_shows_a_completion(method, recwarn):
    reward = reward_function(method=method, score=letters, objectives=list("abc"), answers=2, group=2)
    for _ in range(8):
        reward(prompts=["p"] * 2, completions=[UNREAD, "no tags"])
    (message,) = [str(each.message) for each in recwarn.list if "could be read" in str(each.message)]
    assert message.startswith("none of the answers of the first batch could be read")
    assert r"one of the completions: Sure!\x1b[31m\n\u202exxx" in message
    assert message.endswith("xxx the end")
    assert " … 4,6" in message
    assert message.isprintable()
    assert len(message) < 1000


def test_nearly_no_answers_in_the_first_batch_are_enough_for_the_warning(recwarn):
    def alarms(readable, completions, batches=1):
        recwarn.clear()
        reward = reward_function(score=letters, objectives=list("abc"), answers=1, method="grpo")
        for _ in range(batches):
            texts = ["a"] * readable + [""] * (completions - readable)
            reward(prompts=["p"] * completions, completions=texts)
        return [str(each.message) for each in recwarn.list if "could be read" in str(each.message)]

    (message,) = alarms(1, 20)
    assert message.startswith("only 5% of the answers of the first batch could be read")
    assert message.endswith("one of the completions: (empty)")
    assert alarms(2, 20) == []
    assert alarms(0, 1) == []  # an engine that passes one completion at a time
    (message,) = alarms(4, 20, batches=7)
    assert message.startswith("only 20% of the answers could be read, and few in the last 5 batches")


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
