"""Reward functions as TRL has them, unchanged."""

import sys

import pytest

from tests.rewards.small import sample
from vpo.rewards import FunctionReward, Sample
from vpo.rewards.functions import load_function

CHAT = Sample("p", [{"role": "user", "content": "Hi"}], "ab", {"prompt": [{"role": "user", "content": "Hi"}]})


def short(completions, **kwargs):
    return [1 / (1 + len(text)) for text in completions]


def test_a_function_of_texts():
    assert FunctionReward("short", function=short).score([sample("a"), sample("abc")]) == [(0.5,), (0.25,)]


def test_a_function_of_conversations_gets_messages_where_the_prompts_are_messages():
    seen = {}

    def reward(prompts, completions, **columns):
        seen.update(prompts=prompts, completions=completions, **columns)
        return [len(each[0]["content"]) / 10 for each in completions]

    assert FunctionReward("long", function=reward).score([CHAT]) == [(0.2,)]
    assert seen == {
        "prompts": [[{"role": "user", "content": "Hi"}]],
        "completions": [[{"role": "assistant", "content": "ab"}]],
    }
    assert FunctionReward("short", function=short, form="text").score([CHAT]) == [(1 / 3,)]


def test_columns_are_passed_as_lists_and_only_where_they_are_parameters():
    def right(completions, answer):
        return [float(text == due) for text, due in zip(completions, answer, strict=True)]

    function = FunctionReward("right", function=right)
    assert function.columns == ("answer",)
    samples = [sample("4", answer="4", source="x"), sample("5", answer="4", source="x")]
    assert function.score(samples) == [(1.0,), (0.0,)]


def test_none_abstains_and_async_functions_are_awaited():
    async def reward(completions, **kwargs):
        return [None if text == "?" else 1.0 for text in completions]

    assert FunctionReward("known", function=reward).score([sample("?"), sample("a")]) == [(None,), (1.0,)]


def test_numbers_of_any_size_are_calibrated():
    def size(completions, **kwargs):
        return [len(text) for text in completions]

    function = FunctionReward("size", function=size, calibration={"range": [0, 4]})
    assert function.score([sample("a"), sample("abcdef")]) == [(0.25,), (1.0,)]
    assert function.counted() == {"size": (1.0, 2)}
    assert function.described()["calibration"] == {"size": {"range": [0.0, 4.0]}}


def test_functions_of_trl_itself():
    pytest.importorskip("trl")
    function = FunctionReward("format", function="trl.rewards:think_format_reward", form="messages")
    assert function.score([sample("<think>a</think>b"), sample("b")]) == [(1.0,), (0.0,)]


def test_a_function_of_a_file_is_identified_by_the_hash_of_the_file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "def polite(completions, **kwargs):\n    return [float('please' in each) for each in completions]\n"
    )
    function = FunctionReward("polite", function=f"{path}:polite")
    assert function.score([sample("please"), sample("now")]) == [(1.0,), (0.0,)]
    before = function.described()
    path.write_text(path.read_text().replace("please", "thanks"))
    assert function.described() == before  # it is still what was loaded
    changed = FunctionReward("polite", function=f"{path}:polite")
    assert changed.score([sample("please"), sample("thanks")]) == [(0.0,), (1.0,)]
    assert changed.described()["sha256"] != before["sha256"]


def test_the_functions_of_a_file_share_what_it_loads(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").write_text(f"model = ['{folder}']\ndef one(): ...\ndef two(): ...\n")
    one, two, other = (
        load_function(f"{tmp_path}/{location}") for location in ("a/mine.py:one", "a/mine.py:two", "b/mine.py:one")
    )
    assert one.__globals__["model"] is two.__globals__["model"]
    assert other.__globals__["model"] == ["b"]
    assert sys.modules[one.__module__] is not sys.modules[other.__module__]


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("polite", "must be file.py:NAME or module:NAME"),
        ("nowhere.py:polite", "no such file: .*nowhere.py"),
        ("json:polite", "json has no function 'polite'"),
        ("no_such_module:polite", "cannot be loaded .ModuleNotFoundError"),
        ("builtins:max", "builtins:max has no signature"),
        ("EXITS.py:polite", "cannot be loaded .SystemExit: 3"),
    ],
)
def test_invalid_locations_of_functions_are_refused(location, message, tmp_path):
    (tmp_path / "exits.py").write_text("raise SystemExit(3)")
    location = location.replace("EXITS.py", str(tmp_path / "exits.py"))
    with pytest.raises(ValueError, match=message):
        FunctionReward("polite", function=location)


def test_a_function_of_whole_completions_is_refused():
    def overlong(completion_ids, **kwargs):
        return []

    with pytest.raises(ValueError, match="needs completion_ids, which an answer within a set does not have"):
        FunctionReward("overlong", function=overlong)
