"""Scoring code of users that raises or returns numbers outside [0, 1]: nothing of it is silent."""

import math
import warnings

import pytest

pytest.importorskip("trl")

from tests.engines.letters import LettersTask, Word
from tests.engines.tiny import save_tiny_model
from vpo.cli.main import main
from vpo.engines.reward import reward_function
from vpo.engines.user_errors import MOST_IN_A_ROW
from vpo.tasks.answers import write
from vpo.tasks.maze import MazeTask
from vpo.training.runs import Run
from vpo.util.errors import InputError


def fragile(answer):
    return [1 / len(answer.replace("bad", "")), 1.0]


def test_an_answer_on_which_score_raises_has_an_unknown_reward():
    reward = reward_function(score=fragile, objectives=["a", "b"], answers=2)
    completions = [write(["x", "y"]), write(["x", "bad"]), write(["bad", "bad"]), write(["xx", "yy"])]
    logged = {}
    with pytest.warns(UserWarning, match="raised") as caught:
        rewards = reward(["p"] * 4, completions, log_metric=logged.__setitem__)
    assert rewards == [1.0, None, None, 0.75]
    (message,) = {str(each.message) for each in caught}
    assert message.startswith("score raised ZeroDivisionError: division by zero (test_user_errors.py:")
    assert "on 'bad': the reward is unknown" in message
    assert logged["vpo/raised"] == 2  # the rest of a set is not scored
    assert logged["vpo/unknown"] == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it has warned of that line
        reward(["p"], [write(["bad", "x"])], log_metric=logged.__setitem__)
    assert logged["vpo/raised"] == 1
    reward(["p"], [write(["x", "x"])], log_metric=logged.__setitem__)
    assert logged["vpo/raised"] == 0


def test_score_that_always_raises_ends_the_training():
    reward = reward_function(score=lambda answer: [1 / 0], objectives=["a"], answers=1, method="grpo")
    completion = "<answer>so it goes</answer>"
    with pytest.warns(UserWarning, match="raised"):
        assert reward(["p"] * (MOST_IN_A_ROW - 1), [completion] * (MOST_IN_A_ROW - 1)) == [None] * (MOST_IN_A_ROW - 1)
    with pytest.raises(
        InputError,
        match=rf"score raised on {MOST_IN_A_ROW} answers in a row, last ZeroDivisionError.* on 'so it goes'$",
    ) as raised:
        reward(["p"], [completion])
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


def test_one_answer_that_is_scored_starts_the_count_again():
    reward = reward_function(score=fragile, objectives=["a", "b"], answers=1, method="grpo")
    completions = (["<answer>bad</answer>"] * (MOST_IN_A_ROW - 1) + ["<answer>x</answer>"]) * 3
    with pytest.warns(UserWarning, match="raised"):
        assert reward(["p"] * len(completions), completions).count(None) == 3 * (MOST_IN_A_ROW - 1)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, InputError("no such column")])
def test_what_is_meant_to_end_the_training_does(error):
    def score(answer):
        raise error

    reward = reward_function(score=score, objectives=["a"], answers=1, method="grpo")
    with pytest.raises(error if isinstance(error, type) else type(error)):
        reward(["p"], ["<answer>x</answer>"])


class FragileTask(LettersTask):
    def score(self, problem, answer):
        if "7" in answer:
            raise LookupError("seven")
        return super().score(problem, answer)


def test_a_task_of_a_user_may_raise_too():
    task = FragileTask()
    reward = reward_function(task, "vpo", problems=task.problems())
    logged = {}
    with pytest.warns(UserWarning, match=r"task letters raised LookupError: seven .* on 'a7a' \| 'bbb' \| 'ccc'"):
        rewards = reward(["p"] * 2, ["a7abbbccc", "aaabbbccc"], problem=["one"] * 2, log_metric=logged.__setitem__)
    assert rewards[0] is None
    assert rewards[1] > 0
    assert logged["vpo/raised"] == 1
    with pytest.raises(InputError, match=f"task letters raised on {MOST_IN_A_ROW} answers in a row"):
        reward(["p"] * 99, ["777777777"] * 99, problem=["one"] * 99)


def test_rewards_that_are_mostly_unknown_raise_an_alarm_once():
    reward = reward_function(score=fragile, objectives=["a", "b"], answers=1, method="grpo")
    texts = [f"<answer>{text}</answer>" for text in ("bad", "bad", "x")]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(8):
            reward(["p"] * 3, texts)
    (message,) = [str(each.message) for each in caught if "have a known reward" in str(each.message)]
    assert message.startswith("only 33% of the completions have a known reward, and few in the last 5 batches: score ")
    assert "raised ZeroDivisionError" in message


OWN_TASK = """
from tests.engines.letters import LettersTask

class Mine(LettersTask):
    name = "mine"

    def score(self, problem, answer):
        {code}
        return super().score(problem, answer)
"""


@pytest.mark.filterwarnings("ignore")
def test_a_run_on_a_task_that_raises_continues_or_ends_with_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    save_tiny_model(tmp_path / "tiny")
    few = [*("--model", "tiny", "--steps", "2", "--prompts-per-step", "2", "--group", "4"), *("--max-tokens", "8")]
    (tmp_path / "some.py").write_text(OWN_TASK.format(code="assert '7' not in answer"))
    assert main(["train", "--task-file", "some.py", *few, "--out", "some"]) == 0
    steps = Run(tmp_path / "some").steps()
    assert sum(row["vpo/raised"] for row in steps) == sum(row["vpo/unknown"] for row in steps) > 0
    capsys.readouterr()
    (tmp_path / "all.py").write_text(OWN_TASK.format(code="raise OverflowError('too much')"))
    assert main(["train", "--task-file", "all.py", *few, "--out", "all"]) == 2
    error = capsys.readouterr().err
    assert "Traceback" not in error
    assert (
        "no reward was known in 2 batches in a row, up to step 2 (task mine raised OverflowError: too much (all.py:8))"
        in error.splitlines()[-1]
    )


def test_a_fault_of_a_task_of_ours_is_a_bug(monkeypatch):
    task = MazeTask(size=7)
    maze = task.problems(count=1)[0]
    reward = reward_function(task, "grpo", problems=[maze])

    def rewarded(result):
        monkeypatch.setattr(MazeTask, "score", lambda *_: result() if callable(result) else result)
        return reward(["p"], ["<answer>R</answer>"], problem=[maze.id])

    assert rewarded((0.5, 1.0, 0.0, 1 + 1e-9)) != [None]
    with pytest.raises(
        RuntimeError, match=r"task maze, problem .*: scores must lie in \[0, 1\], not from 0\.5 to 1\.5"
    ):
        rewarded((0.5, 0.5, 0.5, 1.5))
    with pytest.raises(LookupError):
        rewarded(lambda: {}[1])


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        ((1.0, math.nan, 0.0), "scores must be finite numbers"),
        ((1.0, 0.0), "an answer must have 3 scores, not 2"),
    ],
)
def test_a_task_of_a_user_returns_a_finite_number_for_each_objective(scores, words):
    task = LettersTask()
    task.score = lambda problem, answer: scores
    reward = reward_function(task, "vpo", problems=[Word("one")])
    with pytest.raises(InputError, match=f"task letters, problem 'one': {words}"):
        reward(["p"], ["abcabcabc"], problem=["one"])


def messages(reward, texts, **columns):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        reward(["p"] * len(texts), [f"<answer>{text}</answer>" for text in texts], **columns)
    return [str(each.message) for each in caught]


def test_each_objective_outside_of_0_to_1_is_named_once():
    def score(answer):
        value = float(answer)
        return {"fine": value / 100, "points": value, "more": 10 * value}

    reward = reward_function(score=score, objectives=["fine", "points", "more"], answers=1, method="grpo")
    assert messages(reward, ["0", "0.1"]) == []
    assert messages(reward, ["0", "0.5"]) == [
        "some scores are above 1, up to 5 of objective 'more': the larger its numbers, the more an objective outweighs "
        "the others; scale all to [0, 1], for example by a calibration of vpo.rewards, unless they share that scale"
    ]
    (message,) = messages(reward, ["7", "100"])
    assert "up to 100 of objective 'points'" in message
    (message,) = messages(reward, ["-3", "0"])
    assert message.startswith(
        "some scores are below 0, down to -0.03 of objective 'fine', and an answer that is missing"
    )
    assert messages(reward, ["-7", "700"]) == []


def test_rounding_errors_are_no_scores_outside_of_0_to_1():
    reward = reward_function(score=lambda _: [1 + 1e-9, -1e-9], objectives=["a", "b"], answers=1, method="grpo")
    assert messages(reward, ["x"]) == []


def test_tasks_whose_problems_differ_in_their_objectives_are_checked_as_a_whole():
    class Ragged(LettersTask):
        ragged = True

        def names_of(self, problem):
            return ("vowels", "rest")

        def score(self, problem, answer):
            return (2.0, 0.0)

    task = Ragged()
    reward = reward_function(task, "vpo", problems=task.problems())
    (message,) = messages(reward, ["x"], problem=["one"])
    assert message.startswith("some scores are above 1, up to 2: ")
    assert messages(reward, ["x"], problem=["one"]) == []
