"""Several scorers: concurrent, within limits, and abstaining where they fail."""

import threading
import time
import warnings

import pytest

from tests.rewards.small import sample
from vpo.rewards import FunctionReward, Length, Limited, VectorReward
from vpo.rewards.calls import MAX_FAILURES
from vpo.rewards.vector import MAX_HANGING


class Fixed:
    """Scores answers by a function of theirs."""

    def __init__(self, *names, score):
        self.names, self.function = names, score
        self.calls = []

    def score(self, samples):
        self.calls.append(len(samples))
        return [self.function(each) for each in samples]

    def described(self):
        return {"kind": "fixed"}


def half(each):
    return (0.5,)


def test_objectives_stand_in_the_order_of_their_scorers():
    def quarter(completions, **kwargs):
        return [0.25] * len(completions)

    vector = VectorReward(Fixed("a", "b", score=lambda each: (0.1, 0.2)), quarter, Length("short", most=1))
    assert vector.names == ("a", "b", "quarter", "short")
    assert vector.weights == (0.25,) * 4
    assert vector.score([sample("x"), sample("x y")]) == [(0.1, 0.2, 0.25, 1.0), (0.1, 0.2, 0.25, 0.0)]
    assert vector.score([]) == []


def test_names_must_differ_and_weights_name_them():
    with pytest.raises(ValueError, match="different names, not a, a"):
        VectorReward(Fixed("a", score=half), Fixed("a", score=half))
    with pytest.raises(ValueError, match="not none"):
        VectorReward()
    with pytest.raises(ValueError, match="1 or more different names"):
        VectorReward(Fixed("", score=half))
    with pytest.raises(ValueError, match="must be a scorer or a function, not 3"):
        VectorReward(3)
    with pytest.raises(ValueError, match="'c'"):
        VectorReward(Fixed("a", score=half), weights={"c": 1})
    assert VectorReward(Fixed("a", score=half), Fixed("b", score=half), weights={"b": 2}).weights == (0, 1)


def test_a_scorer_that_raises_abstains_on_that_answer_alone():
    def fragile(each):
        if each.answer == "bad":
            raise ValueError("no\nsuch thing")
        return (0.5,)

    vector = VectorReward(Fixed("fragile", score=fragile), Fixed("solid", score=half))
    samples = [sample("good")] * 30 + [sample("bad")] + [sample("good")]
    with pytest.warns(UserWarning, match="fragile raised ValueError: no such thing; it is called again on fewer"):
        vectors = vector.score(samples)
    assert vectors == [(0.5, 0.5)] * 30 + [None, (0.5, 0.5)]
    assert vector.failures == {("fragile", "raises"): 1}
    assert vector.counted() == {"abstained/fragile": (1, 0), "abstained/solid": (0, 0)}
    assert vector.counted() == {"abstained/fragile": (0, 0), "abstained/solid": (0, 0)}
    assert vector.why_unknown() == "fragile: raised ValueError: no such thing × 1"
    vector.score(samples)  # it is said once, and filterwarnings would make an error of it
    assert vector.failures == {("fragile", "raises"): 2}


@pytest.mark.filterwarnings("ignore:reward")
@pytest.mark.parametrize("error", [RuntimeError, SystemExit, KeyError, KeyboardInterrupt, GeneratorExit])
def test_a_scorer_that_always_raises_is_given_up(error):
    def broken(each):
        raise error("out of order")

    scorer = Fixed("broken", score=broken)
    vector = VectorReward(scorer, Fixed("solid", score=half))
    assert vector.score([sample("x")] * 1000) == [None] * 1000
    assert len(scorer.calls) == MAX_FAILURES
    assert vector.failures == {("broken", "raises"): 1}
    assert [row[1] for row in vector.scores([sample("x")] * 3)] == [0.5] * 3


@pytest.mark.parametrize("nonsense", [1.5, -0.1, float("nan"), float("inf"), "0.5", [0.5]])
def test_scores_outside_of_0_to_1_abstain(nonsense):
    vector = VectorReward(Fixed("odd", score=lambda each: (nonsense,)))
    with pytest.warns(UserWarning, match=r"reward odd returned .*, not a number in \[0, 1\]"):
        assert vector.score([sample("x")]) == [None]
    assert vector.failures == {("odd", "invalid"): 1}


@pytest.mark.parametrize(
    ("score", "message"), [(lambda each: (0.1, 0.2), "not 1 scores"), (lambda each: 0.5, "not 1 scores")]
)
def test_scores_of_the_wrong_shape_abstain(score, message):
    with pytest.warns(UserWarning, match=message):
        assert VectorReward(Fixed("odd", score=score)).score([sample("x")]) == [None]


def test_too_few_scores_abstain():
    def reward(completions, **kwargs):
        return [0.5]

    with pytest.warns(
        UserWarning, match="must return a number for each of 2 answers, and returned 1; it is called again"
    ):
        assert VectorReward(reward).score([sample("x")] * 2) == [(0.5,), (0.5,)]  # each is scored separately


@pytest.mark.parametrize("returned", [{"a": [0.5]}, 0.5, "good"])
def test_what_is_no_list_of_numbers_is_named(returned):
    def reward(completions, **kwargs):
        return returned

    with pytest.warns(UserWarning, match="it must return a list with a number for each answer, not"):
        assert VectorReward(reward).score([sample("x")]) == [None]


@pytest.mark.parametrize("calibration", [None, {"range": [0, 1]}])
def test_nan_is_a_warning_and_none_is_not(calibration):
    def reward(completions, **kwargs):
        return [None if text == "?" else float("nan") for text in completions]

    vector = VectorReward(FunctionReward("odd", function=reward, calibration=calibration))
    assert vector.score([sample("?")]) == [None]
    assert vector.failures == {}
    with pytest.warns(UserWarning, match=r"reward odd returned nan, not a number in \[0, 1\]; it abstains"):
        assert vector.score([sample("?"), sample("x")]) == [None, None]


def test_rounding_is_forgiven():
    assert VectorReward(Fixed("sum", score=lambda each: (1 + 1e-9,))).score([sample("x")]) == [(1.0,)]


def test_a_scorer_that_hangs_is_abandoned_and_the_others_count(monkeypatch):
    release = threading.Event()

    def hang(each):
        release.wait(60)
        return (0.5,)

    scorer = Fixed("hung", score=hang)
    vector = VectorReward(Limited(scorer, time_limit=0.1), Fixed("solid", score=half), concurrent=1)
    began = time.monotonic()
    with pytest.warns(UserWarning, match="reward hung takes longer than its time limit"):
        assert vector.scores([sample("x")] * 2) == [(None, 0.5)] * 2
    for _ in range(MAX_HANGING - 1):
        vector.score([sample("x")])
    assert time.monotonic() - began < 20
    assert len(scorer.calls) == MAX_HANGING
    assert vector.score([sample("x")]) == [None]  # it is not called again while it hangs in so many calls
    assert len(scorer.calls) == MAX_HANGING
    release.set()
    for thread in vector.hanging[0]:
        thread.join()
    assert vector.score([sample("x")]) == [(0.5, 0.5)]  # but is once they have ended
    assert vector.counted()["abstained/hung"] == (2 + MAX_HANGING, 0)


def test_scores_from_before_a_scorer_hung_count():
    release = threading.Event()

    def hang(each):
        if each.answer == "hang":
            release.wait(60)
        if each.answer == "raise":
            raise ValueError("split")
        return (0.5,)

    vector = VectorReward(Limited(Fixed("hung", score=hang), call_size=2, time_limit=0.2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        vectors = vector.score([sample("x"), sample("x"), sample("raise"), sample("x"), sample("hang"), sample("x")])
    release.set()
    assert vectors == [(0.5,), (0.5,), None, (0.5,), None, None]


def test_slow_rewards_run_concurrently_within_a_limit():
    running, most, lock = 0, 0, threading.Lock()

    def slow(each):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.05)
        with lock:
            running -= 1
        return (float(each.answer) / 10,)

    scorers = [Limited(Fixed(name, score=slow), call_size=1) for name in "ab"]
    vectors = VectorReward(*scorers, concurrent=3).score([sample(str(n)) for n in range(6)])
    assert vectors == [(n / 10, n / 10) for n in range(6)]  # in their order
    assert most == 3


def test_a_function_may_have_limits_too():
    def half(completions, **kwargs):
        return [0.5] * len(completions)

    vector = VectorReward(Limited(half, call_size=1), time_limit=7)
    assert (vector.names, vector.limited[0].time_limit) == (("half",), 7)
    assert vector.score([sample("a"), sample("b")]) == [(0.5,), (0.5,)]


def test_invalid_limits_are_refused():
    for seconds in (0, float("inf"), float("nan")):
        with pytest.raises(ValueError, match="time_limit must be above 0 and finite"):
            Limited(Fixed("a", score=half), time_limit=seconds)
    assert VectorReward(Fixed("a", score=half), time_limit=1e15).score([sample("x")]) == [
        (0.5,)
    ]  # longer than clocks go
    with pytest.raises(ValueError, match="call_size must be"):
        Limited(Fixed("a", score=half), call_size=0)
    with pytest.raises(ValueError, match="concurrent must be"):
        VectorReward(Fixed("a", score=half), concurrent=0)


def test_a_task_out_of_rows():
    seen = []

    def look(each):
        seen.append((each.problem, each.answer, each.others, each.index, each.row["n"]))
        return (len(each.answer) / 10,)

    task = VectorReward(Fixed("long", score=look), weights={"long": 1}).task(
        [{"prompt": f"question {n}", "n": n} for n in range(20)]
    )
    assert task.names == ("long",)
    assert task.target == {"long": 1.0}
    assert [len(task.problems(split)) for split in ("train", "test", "all")] == [18, 2, 20]
    assert [problem.id for problem in task.problems("test")] == ["10", "20"]
    first, second = task.problems("train", count=2)
    assert task.question(second) == [{"role": "user", "content": "question 1"}]
    assert task.score_sets([first, second], [["a", None, "abc"], ["ab"]]) == [[(0.1,), (0.0,), (0.3,)], [(0.2,)]]
    assert seen == [("1", "a", ("abc",), 0, 0), ("1", "abc", ("a",), 2, 0), ("2", "ab", (), 0, 1)]
    assert task.score_all([first, first], [None, "ab"]) == [(0.0,), (0.2,)]
    assert task.score(first, "abcd") == (0.4,)


def test_splits_by_a_column():
    rows = [{"prompt": "a", "split": "train"}, {"prompt": "b", "split": "test"}, {"prompt": "c", "split": "other"}]
    task = VectorReward(Length("short", most=3)).task(rows)
    assert [problem.id for problem in task.problems("train")] == ["1"]
    assert [problem.id for problem in task.problems("test")] == ["2"]
    with pytest.raises(ValueError, match="no split 'dev' in prompts"):
        task.problems("dev")
    with pytest.raises(ValueError, match="has no rows for this split"):
        VectorReward(Length("short", most=3)).task([{"prompt": "a"}]).problems("test")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"prompt": 3}, "row 1: prompt must be text or a list of messages, not int"),
        ({}, "row 1: prompt must be text or a list of messages, not missing"),
        ({"prompt": [{"role": "user"}]}, "row 1: a message of prompt must have a role and a content"),
        ({"prompt": [{"role": "system", "content": "x"}]}, "row 1: the last message of prompt must be the user's"),
        ("text", "row 1: a row must be an object"),
    ],
)
def test_rows_that_are_no_prompts_are_refused(row, message):
    with pytest.raises(ValueError, match=message):
        VectorReward(Length("short", most=3)).task([row])


def test_a_column_that_a_reward_needs_must_be_there():
    def right(completions, answer):
        return [1.0] * len(completions)

    with pytest.raises(ValueError, match="reward right needs the column 'answer', which prompt '2' lacks"):
        VectorReward(right).task([{"prompt": "a", "answer": "1"}, {"prompt": "b"}])
