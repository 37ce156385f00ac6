"""The judge against local endpoints that are slow, down or rate-limited, and what it may spend."""

import json
import socket
import threading
import time
import warnings

import pytest

pytest.importorskip("openai")

from tests.endpoint import dripping, endpoint
from tests.rewards.judged import fine, make_judge, samples
from vpo.rewards import VectorReward

pytestmark = pytest.mark.filterwarnings("ignore:reward")  # each reason is said once


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((200, b"not json"), "no text in the reply"),
        ((200, b"{}"), "no text in the reply"),
        ((200, b'{"choices": []}'), "no text in the reply"),
        ((200, b'{"choices": [{"message": {"content": null}}]}'), "no text in the reply"),
        ((500, b"out of order"), "server error"),
        ((503, b""), "server error"),
        ((404, b"{}"), "refused"),
        ((401, b"{}"), "refused"),
        ((429, b"{}"), "rate limited"),
        ((429, b"{}", {"Retry-After": "3600"}), "rate limited"),
    ],
)
def test_replies_without_a_completion_are_counted(answer, reason):
    began = time.monotonic()
    with endpoint(lambda request, number: answer) as (address, _):
        judge = make_judge(address, tries=2)
        assert judge.score(samples(1)) == [(None, None)]
    assert judge.failures == {reason: 2}
    assert time.monotonic() - began < 5


def test_temporary_failures_are_retried_and_others_are_not():
    with endpoint(lambda request, number: (503, b"") if number < 2 else fine(request, number)) as (address, seen):
        assert make_judge(address, rubrics={"one": "r"}, tries=3).score(samples(1)) == [(1.0,)]
        assert len(seen) == 3
    with endpoint(lambda request, number: (404, b"")) as (address, seen):
        make_judge(address, rubrics={"one": "r"}, tries=3).score(samples(1))
        assert len(seen) == 1


def test_retry_after_is_obeyed():
    times = []

    def answer(request, number):
        times.append(time.monotonic())
        return fine(request, number) if number else (429, b"{}", {"Retry-After": "0.5"})

    with endpoint(answer) as (address, _):
        assert make_judge(address, rubrics={"one": "r"}, tries=2).score(samples(1)) == [(1.0,)]
    assert times[1] - times[0] >= 0.5


def test_a_slow_endpoint_times_out():
    def slow(request, number):
        time.sleep(2)
        return fine(request, number)

    began = time.monotonic()
    with endpoint(slow) as (address, _):
        judge = make_judge(address, limit=0.2)
        assert judge.score(samples(2)) == [(None, None)] * 2
        assert time.monotonic() - began < 1.5
    assert judge.failures == {"timeout": 4}
    assert judge.client.budget.tokens > 1000  # the server did not say what they cost
    with dripping() as address:
        judge = make_judge(address, rubrics={"one": "r"}, limit=0.3)
        assert judge.score(samples(1)) == [(None,)]
    assert judge.failures == {"timeout": 1}
    assert not [each for each in threading.enumerate() if each.name == "vpo-endpoint"]


def test_a_call_that_is_out_of_time_keeps_the_scores_that_arrived():
    def answer(request, number):
        time.sleep(5.0 if number >= 4 else 0)
        return fine(request, number)

    began = time.monotonic()
    with endpoint(answer) as (address, _):
        judge = make_judge(address, rubrics={"one": "r"}, concurrent=1, call_limit=1.0)
        scores = judge.score(samples(40))
    assert time.monotonic() - began < 4
    assert scores == [(1.0,)] * 4 + [(None,)] * 36
    assert judge.failures == {"out of time": 36}


def test_an_endpoint_that_is_down_gets_one_request_after_each_pause():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    judge = make_judge(f"http://127.0.0.1:{port}/v1", rubrics={"one": "r"}, concurrent=2, tries=2, pause=0.5)
    began = time.monotonic()
    with pytest.warns(UserWarning, match="endpoint down"):
        assert judge.score(samples(500)) == [(None,)] * 500
    assert time.monotonic() - began < 3
    assert judge.client.budget.requests < 10
    assert judge.client.budget.tokens == 0
    assert judge.failures["unreachable"] + judge.failures["endpoint down"] == 500
    assert judge.failures["endpoint down"] > 490

    up = threading.Event()

    with endpoint(lambda request, number: fine(request, number) if up.is_set() else (500, b"")) as (address, seen):
        judge = make_judge(address, rubrics={"one": "r"}, concurrent=2, pause=0.3)
        with pytest.warns(UserWarning, match="endpoint down"):
            judge.score(samples(50))
        assert len(seen) <= 5
        up.set()
        assert judge.score(samples(1)) == [(None,)]
        time.sleep(0.4)
        before = len(seen)
        assert judge.score(samples(1)) == [(1.0,)]
        assert judge.score(samples(5)) == [(1.0,)] * 5
        assert len(seen) == before + 6


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            (503, b'{"error": {"message": "loading"}}'),
            ["server error, HTTP 503", "loading", "see the log"],
        ),
        ((401, b"{}"), ["refused, HTTP 401", "check OPENAI_API_KEY"]),
        ((404, b"{}"), ["refused, HTTP 404", "check the address and the name of the model"]),
        (None, ["unreachable", "ConnectionRefusedError", "is the server running"]),
    ],
)
def test_the_warning_of_a_judge_that_is_down_shows_host_status_and_advice(answer, words):
    with endpoint(lambda request, number: answer) as (address, _):
        used = address if answer else "http://user:secret@127.0.0.1:9/v1"
        # With retries every request may end as `endpoint down`, and none with the status.
        judge = make_judge(used, rubrics={"one": "r"}, concurrent=2, tries=4)
        with pytest.warns(UserWarning, match="endpoint down") as warned:
            judge.score(samples(20))
    (text,) = [str(each.message) for each in warned if "endpoint down" in str(each.message)]
    for word in [used.split("//")[1].split("@")[-1].removesuffix("/v1"), *words]:
        assert word in text
    assert "secret" not in text
    assert "\n" not in text


def test_endless_rate_limits_open_the_circuit_breaker():
    with endpoint(lambda request, number: (429, b"")) as (address, seen):
        judge = make_judge(address, rubrics={"one": "r"}, concurrent=2, tries=2)
        with pytest.warns(UserWarning, match="endpoint down"):
            assert judge.score(samples(100)) == [(None,)] * 100
    assert len(seen) <= 12
    assert judge.failures["rate limited"] <= 6


def test_redirects_are_refused_and_large_replies_not_read():
    with endpoint(lambda request, number: (307, b"", {"Location": "/v1/chat/completions"})) as (address, seen):
        judge = make_judge(address, rubrics={"one": "r"}, max_requests=2)
        assert judge.score(samples(2)) == [(None,)] * 2
        assert len(seen) == judge.client.budget.requests == 2
    assert judge.failures == {"refused": 2}
    large = b'{"choices": [{"message": {"content": "' + b" " * 50_000_000 + b'{\\"answer_1\\": 3}"}}]}'
    with endpoint(lambda request, number: (200, large)) as (address, _):
        judge = make_judge(address, rubrics={"one": "r"})
        assert judge.score(samples(1)) == [(None,)]
    assert judge.failures == {"no text in the reply": 1}


def test_requests_are_never_more_than_their_limit():
    with endpoint(lambda request, number: (503, b"") if number % 3 == 0 else fine(request, number)) as (address, seen):
        judge = make_judge(address, max_requests=25, concurrent=8, tries=3)
        with pytest.warns(UserWarning, match="request limit reached .25 requests, "):
            scores = [score for row in judge.score(samples(30)) for score in row]
        assert len(seen) == judge.client.budget.requests == 25
        assert sum(judge.failures.values()) == scores.count(None) == 60 - 16  # of requests 0 to 24 nine failed
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # it is said once
            assert judge.score(samples(2)) == [(None, None)] * 2
    assert len(seen) == 25


@pytest.mark.parametrize("counted", [True, False])
def test_tokens_are_never_more_than_their_limit(counted):
    def answer(request, number):
        time.sleep(0.01)
        body = {"choices": [{"message": {"content": fine(request, number)}}]}
        usage = {"prompt_tokens": 290, "completion_tokens": 10, "total_tokens": 300}
        return 200, json.dumps({**body, "usage": usage} if counted else body).encode()

    with endpoint(answer) as (address, seen):
        judge = make_judge(address, max_tokens=9_000, concurrent=8, reply_tokens=50)
        with pytest.warns(UserWarning, match="token limit reached"):
            judge.score(samples(50))
    assert judge.client.budget.tokens <= 9_000
    assert judge.client.budget.requests == len(seen)
    # A request is at most 1,400 tokens, of which 300 are charged where they are counted.
    assert len(seen) >= (25 if counted else 6)
    assert judge.failures["token limit reached"] == 100 - len(seen)


@pytest.mark.parametrize("usage", ["lots", [], {"total_tokens": -5}, {"total_tokens": "7"}, {"total_tokens": True}])
def test_requests_without_a_token_count_are_charged_the_most(usage):
    body = {"choices": [{"message": {"content": '{"answer_1": 3}'}}], "usage": usage}
    with endpoint(lambda request, number: (200, json.dumps(body).encode())) as (address, _):
        judge = make_judge(address, rubrics={"one": "r"})
        assert judge.score(samples(1)) == [(0.5,)]
    assert judge.client.budget.tokens > 1000


def test_a_vector_reward_counts_what_a_judge_spends(tmp_path):
    with endpoint(fine) as (address, _):
        vector = VectorReward(make_judge(address, name="panel", cache=tmp_path))
        vector.score(samples(3))
        spent = {"requests/panel": (6, 0), "tokens/panel": (72, 0), "cached/panel": (0, 0)}
        assert vector.counted().items() >= spent.items()
        vector.score(samples(3))
        assert vector.counted().items() >= {"requests/panel": (0, 0), "cached/panel": (6, 0)}.items()
        with pytest.raises(ValueError, match="call_limit of brief must be below its time_limit, 60"):
            VectorReward(make_judge(address), time_limit=60)
