"""Warnings of rewards and completions from which nothing can be learned."""

import warnings

import pytest

pytest.importorskip("trl")

from tests.engines.letters import letters
from vpo.engines.trl import reward_function
from vpo.tasks.answers import write

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages


def test_scores_that_it_is_better_not_to_have_are_named_once(recwarn):
    reward = reward_function(score=lambda answer: [-len(answer), 1], objectives=["short", "there"], answers=2)
    for _ in range(2):
        reward(prompts=["p"] * 2, completions=[write(["ab", "c"]), "nothing"])
    assert [str(each.message)[:24] for each in recwarn.list] == ["some scores are below 0,"]


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
