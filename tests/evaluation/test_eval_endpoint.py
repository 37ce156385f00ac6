"""`vpo eval --endpoint`: a server samples; what it answered is never requested twice."""

import json
import threading
import time

import pytest

pytest.importorskip("transformers")
pytest.importorskip("openai")

from tests.endpoint import endpoint
from vpo import read_pool
from vpo.cli.main import main
from vpo.evaluation.eval_log import PARTIAL
from vpo.models import remote
from vpo.tasks.maze import MazeTask

TASK = MazeTask(size=7)
SETTINGS = ["--task", "maze", "--set", "size=7", "--problems", "2", "--pool", "6", "--batch", "4"]


def command(address, folder, *more, model="some/model"):
    return ["eval", model, *SETTINGS, "--endpoint", address, "--out", str(folder), *more]


@pytest.fixture
def no_waiting(monkeypatch):
    """A second try comes at once."""
    monkeypatch.setattr(remote, "BACKOFF", 0.001)


def test_an_endpoint_samples_the_pool(tmp_path, capsys):
    first, second = TASK.problems("test", count=2)

    def answer(request, number):
        shown = request["messages"][-1]["content"]
        return f"<answer>{TASK.gold(first)}</answer>" if TASK.question(first)[-1]["content"] in shown else "nothing"

    with endpoint(answer) as (address, seen):
        more = ["--temperature", "0.3", "--top-p", "0.9", "--max-tokens", "11", "--seed", "5", "--json"]
        assert main(command(address, tmp_path / "out", *more)) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["generator"] == "endpoint"
    assert facts["model"] == "some/model"
    pool = read_pool(tmp_path / "out" / "pool.parquet")
    assert pool.problems[first.id].solved_n.all()
    assert not pool.problems[second.id].solved_n.any()
    assert pool.problems[first.id].tokens_N.tolist() == [7] * 6
    assert {(each["model"], each["temperature"], each["top_p"], each["max_tokens"]) for each in seen} == {
        ("some/model", 0.3, 0.9, 11)
    }
    assert sorted(each["seed"] for each in seen) == list(range(5, 17))  # each completion has its own


def test_what_was_answered_is_kept_and_not_requested_again(tmp_path, capsys, no_waiting):
    with endpoint(lambda request, number: "<answer>U</answer>") as (address, _):
        assert main(command(address, tmp_path / "whole")) == 0
    broken = lambda request, number: (500, b"down") if request["seed"] in (5, 6) else "<answer>U</answer>"  # noqa: E731
    with endpoint(broken) as (address, seen):
        assert main(command(address, tmp_path / "out")) == 2
        assert {each["seed"] for each in seen} == set(range(8))  # the third batch is not begun
    error = capsys.readouterr().err
    assert "2 of 4 requests failed: InternalServerError" in error
    assert "repeat the command to continue" in error
    assert error.count("\n") == 1
    assert (tmp_path / "out" / PARTIAL).is_dir()
    with endpoint(lambda request, number: "<answer>U</answer>") as (address, seen):  # another port
        assert main(command(address, tmp_path / "out")) == 0
    assert sorted(each["seed"] for each in seen) == [5, 6, 8, 9, 10, 11]
    assert not (tmp_path / "out" / PARTIAL).exists()
    pools = [(tmp_path / name / "pool.parquet").read_bytes() for name in ("out", "whole")]
    assert pools[0] == pools[1]


def test_an_evaluation_does_not_change_between_endpoint_and_model(tmp_path, capsys, no_waiting):
    down = lambda request, number: (500, b"") if request["seed"] else "<answer>U</answer>"  # noqa: E731
    with endpoint(down) as (address, _):
        assert main(command(address, tmp_path / "out", model="embedded")) == 2
    capsys.readouterr()
    assert main(["eval", "embedded", *SETTINGS, "--out", str(tmp_path / "out")]) == 2
    assert "(it differs in generator)" in capsys.readouterr().err


@pytest.mark.parametrize("counts", [lambda number: None, lambda number: 3 if number else None, lambda number: 0])
def test_tokens_are_those_of_all_completions_or_of_none(tmp_path, counts):
    def answer(request, number):
        message = {"role": "assistant", "content": "<answer>U</answer>"}
        body = {"choices": [{"index": 0, "finish_reason": "stop", "message": message}]}
        return 200, json.dumps({**body, "usage": {"completion_tokens": counts(number)}}).encode()

    with endpoint(answer) as (address, _):
        assert main(command(address, tmp_path / "out")) == 0
    tokens = [problem.tokens_N for problem in read_pool(tmp_path / "out" / "pool.parquet").problems.values()]
    if counts(0) is None:
        assert tokens == [None, None]
    else:
        assert [each.tolist() for each in tokens] == [[1] * 6] * 2  # a pool counts the end of a completion


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--prefill"], "prefill does not work with an endpoint, which begins completions itself"),
        (["--thinking"], "thinking cannot be set for an endpoint: it is a setting of its server"),
        (["--limit", "0"], "limit must be greater than 0, not 0"),
        (["--concurrent", "0"], "concurrent must be 1 or more, not 0"),
    ],
)
def test_what_an_endpoint_cannot_do_is_one_line(tmp_path, capsys, more, message):
    assert main(command("http://127.0.0.1:9/v1", tmp_path / "out", *more)) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_an_endpoint_that_is_down_is_one_line(tmp_path, capsys, no_waiting):
    assert main(command("http://user:secret@127.0.0.1:9/v1", tmp_path / "out")) == 2
    error = capsys.readouterr().err
    assert "127.0.0.1:9: 4 of 4 requests failed" in error
    assert "secret" not in error
    assert error.count("\n") == 1


def test_no_more_requests_are_in_flight_than_allowed(tmp_path):
    flying, most, lock = [0], [0], threading.Lock()

    def answer(request, number):
        with lock:
            flying[0] += 1
            most[0] = max(most[0], flying[0])
        time.sleep(0.05)
        with lock:
            flying[0] -= 1
        return "<answer>U</answer>"

    with endpoint(answer) as (address, _):
        assert main(command(address, tmp_path / "out", "--batch", "12", "--concurrent", "3")) == 0
    assert 1 <= most[0] <= 3


def test_a_model_elsewhere_needs_its_task(tmp_path, capsys):
    arguments = ["eval", "some/model", "--endpoint", "http://127.0.0.1:9/v1", "--out", str(tmp_path / "out")]
    assert main(arguments) == 2
    assert "task must be given with an endpoint whose model is not on this machine" in capsys.readouterr().err
