"""When an endpoint is asked again, and how long is waited for that."""

import asyncio

import pytest

from tests.search.endpoint import endpoint
from vpo.util.endpoint import REFUSED, SERVER_ERROR, Endpoint, UnansweredError, _seconds, retried


def waits(monkeypatch, *, tries=4, backoff=1.0, longest=3.0, seed=0, **error):
    """Return how long is waited between attempts that all fail."""
    found = []

    async def sleep(seconds):
        found.append(seconds)

    async def attempt():
        raise UnansweredError(**{"reason": SERVER_ERROR, "detail": "no", "status": 500, **error})

    monkeypatch.setattr(asyncio, "sleep", sleep)
    with pytest.raises(UnansweredError):
        asyncio.run(retried(attempt, tries=tries, backoff=backoff, longest=longest, seed=seed))
    return found


def test_waits_double_up_to_the_longest_and_follow_from_the_seed(monkeypatch):
    found = waits(monkeypatch, tries=6)
    assert len(found) == 5
    for wait, most in zip(found, (1, 2, 4, 8, 16), strict=True):
        assert min(most / 2, 3) <= wait <= min(most, 3)
    assert waits(monkeypatch, tries=6) == found
    assert waits(monkeypatch, tries=6, seed=1) != found


def test_a_server_is_waited_for_as_long_as_it_asks_within_reason(monkeypatch):
    assert waits(monkeypatch, tries=3, after=2.5) == [2.5, 2.5]
    assert waits(monkeypatch, tries=3, after=3.1) == []


def test_what_was_refused_is_not_asked_again(monkeypatch):
    assert waits(monkeypatch, reason=REFUSED, status=404) == []
    assert len(waits(monkeypatch, reason=REFUSED, status=408)) == 3


def test_patience_may_be_asked_for_in_many_ways():
    assert _seconds(None) is None
    assert _seconds("2.5") == 2.5
    assert _seconds("-1") == 0
    assert _seconds("nan") is None
    assert _seconds("soon") is None
    assert _seconds("Wed, 21 Oct 2015 07:28:00 GMT") == 0
    assert 3e9 < _seconds("Wed, 21 Oct 2199 07:28:00 GMT") < 1e10


def refusal(answer):
    """Return what is raised where an endpoint is asked once."""
    with endpoint(answer) as (address, _), Endpoint(address, "m", at_once=1, limit=5.0).line() as line:
        with pytest.raises(UnansweredError) as raised:
            line.submit(line.once([{"role": "user", "content": "hello"}])).result()
        return raised.value


def test_a_key_that_a_server_repeats_is_not_told(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret\n")
    error = refusal(lambda request, number: (401, b'{"error": {"message": "sk-secret is no key"}}'))
    assert (error.reason, str(error)) == (REFUSED, "AuthenticationError: Error code: 401 - … is no key")


def test_no_key_is_no_hindrance(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "")
    assert refusal(lambda request, number: (500, b"")).reason == SERVER_ERROR
