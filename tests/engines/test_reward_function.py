"""What a reward function returns and logs, without a trainer."""

import numpy as np
import pytest

pytest.importorskip("trl")

from tests.engines.letters import letters
from vpo import advantages, set_reward
from vpo.engines.rows import text_of
from vpo.engines.trl import reward_function
from vpo.methods import get
from vpo.tasks.answers import write
from vpo.tasks.maze import MazeTask

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages


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
