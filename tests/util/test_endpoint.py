"""Requests to an endpoint: what fails them, and retries."""

import asyncio

import pytest

from tests.endpoint import endpoint
from vpo.util.endpoint import Endpoint
from vpo.util.errors import InputError
from vpo.util.retries import REFUSED, SERVER_ERROR, RequestError, retry, retry_after_seconds


@pytest.mark.parametrize(
    "address",
    [
        "nonsense",
        "",
        "ftp://host/v1",
        "http://",
        "http://u:secret@host:bad/v1",
        "http://u:se/cret@host/v1",
        "http://h:0",
    ],
)
def test_a_wrong_address_is_refused_and_not_repeated(address):
    with pytest.raises(InputError, match=r"^endpoint must be an address such as http://localhost:8000/v1$"):
        Endpoint(address, "m", concurrent=1, timeout=1)


def waits(monkeypatch, *, tries=4, backoff=1.0, max_wait=3.0, seed=0, **error):
    """Seconds waited between attempts that all fail."""
    seconds_waited = []

    async def sleep(seconds):
        seconds_waited.append(seconds)

    async def attempt():
        raise RequestError(**{"reason": SERVER_ERROR, "detail": "no", "status": 500, **error})

    monkeypatch.setattr(asyncio, "sleep", sleep)
    with pytest.raises(RequestError):
        asyncio.run(retry(attempt, tries=tries, backoff=backoff, max_wait=max_wait, seed=seed))
    return seconds_waited


def test_waits_double_up_to_max_wait_and_follow_from_the_seed(monkeypatch):
    seconds_waited = waits(monkeypatch, tries=6)
    assert len(seconds_waited) == 5
    for wait, most in zip(seconds_waited, (1, 2, 4, 8, 16), strict=True):
        assert min(most / 2, 3) <= wait <= min(most, 3)
    assert waits(monkeypatch, tries=6) == seconds_waited
    assert waits(monkeypatch, tries=6, seed=1) != seconds_waited


def test_retry_after_is_obeyed_up_to_max_wait(monkeypatch):
    assert waits(monkeypatch, tries=3, retry_after=2.5) == [2.5, 2.5]
    assert waits(monkeypatch, tries=3, retry_after=3.1) == []


def test_refused_requests_are_not_retried(monkeypatch):
    assert waits(monkeypatch, reason=REFUSED, status=404) == []
    assert len(waits(monkeypatch, reason=REFUSED, status=408)) == 3


def test_retry_after_is_seconds_or_a_date():
    assert retry_after_seconds(None) is None
    assert retry_after_seconds("2.5") == 2.5
    assert retry_after_seconds("-1") == 0
    assert retry_after_seconds("nan") is None
    assert retry_after_seconds("soon") is None
    assert retry_after_seconds("Wed, 21 Oct 2015 07:28:00 GMT") == 0
    assert 3e9 < retry_after_seconds("Wed, 21 Oct 2199 07:28:00 GMT") < 1e10


def refusal(answer):
    """The error of one request."""
    with endpoint(answer) as (address, _), Endpoint(address, "m", concurrent=1, timeout=5.0).connect() as client:
        with pytest.raises(RequestError) as raised:
            client.submit(client.chat([{"role": "user", "content": "hello"}])).result()
        return raised.value


def test_a_key_that_a_server_repeats_is_not_in_the_error(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret\n")
    error = refusal(lambda request, number: (401, b'{"error": {"message": "sk-secret is no key"}}'))
    assert (error.reason, str(error)) == (REFUSED, "AuthenticationError: Error code: 401 - … is no key")


def test_an_empty_key_sends_requests_all_the_same(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "")
    assert refusal(lambda request, number: (500, b"")).reason == SERVER_ERROR
