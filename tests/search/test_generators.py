"""Searches with an endpoint: one that works, and ones that do not."""

import asyncio
import json
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

pytest.importorskip("openai")

from tests.endpoint import dripping, endpoint
from vpo.models import embedded, vllm_model
from vpo.models.generate import Sampling
from vpo.search import generators
from vpo.search.config import SearchConfig
from vpo.search.generators import EndpointGenerator
from vpo.search.log import CANDIDATES, GENERATIONS
from vpo.search.operators import GenerationRequest
from vpo.search.run import search_into
from vpo.search.setup import SearchSetup
from vpo.tasks.maze import MazeTask

TREQUEST = MazeTask(size=7)
REQUEST = GenerationRequest([{"role": "user", "content": "hello"}])


def generator(address, **settings):
    return EndpointGenerator(address, "m", Sampling(temperature=0.5, max_new_tokens=9), **{"tries": 1, **settings})


def test_a_search_behind_an_endpoint_repairs_until_it_is_solved(tmp_path):
    maze = TREQUEST.problems("test", count=1)[0]
    best = TREQUEST.gold(maze)

    def answer(request, number):
        shown = "An earlier answer:" in request["messages"][-1]["content"]
        return f"<answer>{best if shown else best[:-1]}</answer>"

    with endpoint(answer) as (address, seen):
        config = SearchConfig(
            model="m", endpoint=address, task="maze", task_settings={"size": 7}, problems=1, iterations=20,
            temperature=0.3, operators={"fresh": 0.2, "repair": 0.8}, conditions=("completion>=1",),
        )  # fmt: skip
        result = search_into(tmp_path / "a", config)
    assert len(result.solved) == 1
    assert seen[0]["temperature"] == 0.3
    assert seen[0]["model"] == "m"
    rows = [json.loads(line) for line in (tmp_path / "a" / GENERATIONS).read_text().splitlines()]
    assert {row["tokens"] for row in rows} == {7}
    # The first answers end short of E, score nothing, and are parents all the same.
    assert "repair" in {row["operator"] for row in rows}


def test_failed_requests_are_recorded_and_the_search_continues(tmp_path, monkeypatch):
    def answer(request, number):
        return (500, b"out of order") if number % 2 else "<answer>UURR</answer>"

    with endpoint(answer) as (address, _):
        config = SearchConfig(
            model="m", endpoint=address, task="maze", task_settings={"size": 7}, problems=2, iterations=1
        )
        monkeypatch.setattr(SearchSetup, "new_generator", lambda _: generator(address, concurrent=1))
        result = search_into(tmp_path / "a", config)
    (reason,) = result.failures
    assert "500" in reason
    assert result.failures[reason] == 3
    assert result.spent["tokens"].sum() == 3 * 7
    rows = [json.loads(line) for line in (tmp_path / "a" / CANDIDATES).read_text().splitlines()]
    assert sum(row["scores"] is None for row in rows) == 3
    assert len(rows) == 6


@pytest.mark.parametrize(
    "answer",
    [
        (200, b"not json"),
        (200, b"{}"),
        (200, json.dumps({"choices": []}).encode()),
        (200, json.dumps({"choices": [{"message": {"content": None}}]}).encode()),
        (404, b"{}"),
        (429, b"{}"),
    ],
)
def test_an_endpoint_that_answers_nonsense_is_one_error(answer):
    with (
        endpoint(lambda request, number: answer) as (address, _),
        pytest.raises(ValueError, match="none of 2 requests was"),
    ):
        generator(address).generate([REQUEST, REQUEST], 0)


def test_an_endpoint_that_is_down_or_slow_is_not_waited_for():
    began = time.monotonic()
    with pytest.raises(ValueError, match="none of 1 requests was answered") as raised:
        generator("http://user:secret@127.0.0.1:9/v1").generate([REQUEST], 0)
    assert str(raised.value).startswith("127.0.0.1:9: ")
    assert "secret" not in str(raised.value)

    def slow(request, number):
        time.sleep(3)
        return "late"

    with endpoint(slow) as (address, _), pytest.raises(ValueError, match="none of 1 requests was answered"):
        generator(address, timeout=0.3).generate([REQUEST], 0)
    assert time.monotonic() - began < 20


def test_retry_after_is_obeyed(monkeypatch):
    waited, sleep = [], asyncio.sleep

    async def note(seconds, *more):
        waited.append(seconds)
        await sleep(min(seconds, 0.01), *more)

    monkeypatch.setattr(asyncio, "sleep", note)
    answer = lambda request, number: "fine" if number else (429, b"{}", {"Retry-After": "30"})  # noqa: E731
    with endpoint(answer) as (address, _):
        assert generator(address, timeout=60.0, tries=2).generate([REQUEST], 0)[0].text == "fine"
    assert 30 in waited


def test_an_endpoint_that_drips_is_not_waited_for():
    began = time.monotonic()
    with dripping() as address, pytest.raises(ValueError, match="TimeoutError: not answered within 1 s"):
        generator(address, timeout=1.0).generate([REQUEST], 0)
    assert time.monotonic() - began < 5


def test_a_batch_that_fails_is_recorded_where_others_were_answered():
    answer = lambda request, number: "fine" if number == 0 else (500, b"")  # noqa: E731
    with endpoint(answer) as (address, _):
        once = generator(address)
        assert once.generate([REQUEST], 0)[0].text == "fine"
        assert [once.generate([REQUEST], 0)[0].failure[:19] for _ in range(2)] == ["InternalServerError"] * 2
        with pytest.raises(ValueError, match="none of 1 requests was answered"):
            once.generate([REQUEST], 0)


@pytest.mark.parametrize("usage", [None, {"completion_tokens": None, "prompt_tokens": 1, "total_tokens": 1}])
def test_tokens_that_nobody_counts_are_not_counted(usage, tmp_path):
    message = {"role": "assistant", "content": "<answer>U \ud800</answer>"}
    body = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "usage": usage}
    body["choices"] = [{"index": 0, "finish_reason": "stop", "message": message}]
    with endpoint(lambda request, number: (200, json.dumps(body).encode())) as (address, _):
        config = SearchConfig(
            model="m", endpoint=address, task="maze", task_settings={"size": 7}, problems=1, iterations=1, processes=0
        )
        result = search_into(tmp_path / "a", config)
        again = search_into(tmp_path / "a", replace(config, iterations=2))
        with pytest.raises(ValueError, match="a budget in tokens needs an endpoint that counts them"):
            search_into(tmp_path / "b", replace(config, budget={"tokens": 1}))
    assert "tokens" not in result.spent
    assert again.spent["answers"].tolist() == [6]


def test_a_failed_request_is_tried_again():
    with endpoint(lambda request, number: "fine" if number else (503, b"")) as (address, seen):
        (generation,) = generator(address, tries=2).generate([REQUEST], 0)
    assert generation.text == "fine"
    assert len(seen) == 2


class StubEngine:
    """What `VllmModel` calls of vLLM; `make test-vllm` runs the real one. Completion i is its number."""

    def __init__(self, model, **settings):
        self.seen = []

    def generate(self, prompts, parameters, use_tqdm):
        self.seen.append((prompts, parameters))
        rows = [[*b"UDLR"[index : index + 1], *b"</answer>"] for index in range(len(prompts))]
        return [SimpleNamespace(outputs=[SimpleNamespace(token_ids=row)]) for row in rows]


class StubTokenizer:
    """A token is a byte; it writes a begin-of-sequence token, 0, unless it is told not to."""

    def apply_chat_template(self, messages, **settings):
        return messages[-1]["content"]

    def __call__(self, texts, add_special_tokens=True):
        return {"input_ids": [[0] * add_special_tokens + list(text.encode()) for text in texts]}

    def decode(self, row, skip_special_tokens):
        return bytes(row).decode()


@pytest.mark.parametrize(("opening", "begun"), [("", ""), ("<answer>", "<answer>")])
def test_vllm_reads_tokens_and_begins_a_single_answer_with_its_tag(opening, begun, monkeypatch):
    stub = SimpleNamespace(LLM=StubEngine, SamplingParams=dict)
    monkeypatch.setattr(vllm_model, "require", lambda *_, **__: stub)
    monkeypatch.setattr(vllm_model, "load_tokenizer", lambda path: StubTokenizer())
    monkeypatch.setattr(vllm_model, "set_up", lambda: None)
    made = generators.VllmGenerator(vllm_model.VllmModel(embedded("maze", size=7), Sampling(max_new_tokens=9), opening))
    messages = [{"role": "user", "content": "#"}]
    generations = made.generate([GenerationRequest(messages), GenerationRequest(messages, "<answer>U")], 5)
    assert [each.text for each in generations] == [f"{begun}U</answer>", "<answer>UD</answer>"]
    assert [each.tokens for each in generations] == [len(begun) + 10, 10]
    ((prompts, parameters),) = made.model._llm.seen
    assert [bytes(each["prompt_token_ids"]).decode() for each in prompts] == [f"#{begun}", "#<answer>U"]
    assert [each["max_tokens"] for each in parameters] == [max(1, 9 - len(begun)), 9]
    assert [each["seed"] for each in parameters] == [5, 6]
