"""A judge that is dead, dies or has spent its budget: training does not start, or stops and says why."""

import json
import socket
import time

import numpy as np
import pytest

pytest.importorskip("trl")

import torch
from transformers import AutoModelForCausalLM

from tests.endpoint import dripping, endpoint
from tests.engines.tiny import save_tiny_model
from tests.rewards.judged import fine, make_judge
from tests.tasks.readings import reading_of
from tests.training.trained import stop_after
from vpo.cli.main import main
from vpo.engines.alarms import PATIENCE, Alarms
from vpo.engines.metrics import Mean, known_rewards
from vpo.engines.trl import grpo_config, reward_function
from vpo.rewards.prompts import PromptTask
from vpo.training.runs import Run
from vpo.util.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages

REWARDS = """
[short]
kind = "length"
most = 6
unit = "characters"

[panel]
kind = "judge"
endpoint = "ADDRESS"
model = "m"
tries = 1
limit = 5
pause = 0.01

[panel.rubrics]
brief = "Short answers are good."
"""
ARGUMENTS = [
    *("train", "chat", "--prompts", "prompts.jsonl", "--rewards", "rewards.toml", "--model", "tiny"),
    *("--prompts-per-step", "2", "--group", "2", "--max-tokens", "4", "--kl", "0", "--learning-rate", "0.001"),
    *("--save-every", "1000", "--out", "run"),
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_tiny_model(tmp_path / "tiny")
    (tmp_path / "prompts.jsonl").write_text("".join(json.dumps({"prompt": f"Name {n}."}) + "\n" for n in range(12)))

    def pieces(self, text, answers):
        """Cut a completion, which is noise, into answers."""
        size = len(text) // answers
        return reading_of(text, [text[index * size : (index + 1) * size] or "x" for index in range(answers)])

    monkeypatch.setattr(PromptTask, "read", pieces)
    return tmp_path


def write_rewards(folder, address, settings=""):
    (folder / "rewards.toml").write_text(REWARDS.replace("ADDRESS", address).replace("tries", f"{settings}\ntries"))


def last_error(capsys):
    error = capsys.readouterr().err
    assert "Traceback" not in error
    return error.splitlines()[-1]


class Mortal:
    """Replies of a judge that dies after some requests, and may be revived."""

    def __init__(self, lives):
        self.lives = lives

    def __call__(self, request, number):
        return fine(request, number) if number < self.lives else (503, b'{"error": "out of memory"}')


def closed_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}/v1"


def test_a_run_with_a_dead_judge_does_not_begin(folder, capsys):
    address = closed_port()
    write_rewards(folder, address)
    assert main([*ARGUMENTS, "--steps", "8"]) == 2
    error = last_error(capsys)
    host = address.removeprefix("http://").removesuffix("/v1")
    assert error.startswith(f"vpo: error: reward panel: the judge at {host} does not answer: unreachable, ")
    assert error.endswith("is the server running, and is the address right?")
    assert not (folder / "run").exists()


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ((500, b"{}"), "server error, HTTP 500"),
        ((404, b"{}"), "refused, HTTP 404, .*check the address and the name of the model"),
        ((401, b"{}"), "refused, HTTP 401.*check OPENAI_API_KEY"),
        ((302, b"", {"Location": "/v2"}), "refused, HTTP 302"),
        ((200, b"<html>hello</html>"), "no text in the reply"),
        ((200, b"{}"), "no text in the reply"),
    ],
)
def test_a_judge_that_gives_no_reply_is_refused(reply, words):
    with endpoint(lambda *_: reply) as (address, _), pytest.raises(InputError, match=words):
        make_judge(address).probe()


def test_a_judge_that_hangs_is_refused_within_its_limit():
    with dripping() as address:
        began = time.monotonic()
        with pytest.raises(InputError, match=r"does not answer: timeout, .* 0\.5 s"):
            make_judge(address, limit=0.5, tries=4).probe()
    assert time.monotonic() - began < 5


def test_the_error_of_the_endpoint_is_shown_whatever_stopped_the_retries():
    with endpoint(lambda *_: (500, b"{}")) as (address, _), pytest.raises(InputError, match="HTTP 500"):
        make_judge(address, tries=4, concurrent=1).probe()  # the circuit breaker opens after two failures
    with endpoint(lambda *_: (500, b"{}")) as (address, _), pytest.raises(InputError, match="HTTP 500"):
        make_judge(address, tries=4, max_requests=2).probe()
    with endpoint(fine) as (address, _), pytest.raises(InputError, match="token limit reached"):
        make_judge(address, max_tokens=10).probe()


def test_a_judge_that_recovers_or_is_busy_or_writes_prose_is_alive():
    replies = [(503, b"{}"), (503, b"{}")]
    with endpoint(lambda *each: replies.pop() if replies else fine(*each)) as (address, seen):
        judge = make_judge(address, tries=4)
        judge.probe()
        assert len(seen) == 3
        assert judge.spent()["requests/judge"] == (3, 0)  # they count, as all do
    with endpoint(lambda *_: (429, b"{}")) as (address, _), pytest.warns(UserWarning, match="rate limited, HTTP 429"):
        make_judge(address).probe()
    with endpoint(lambda *_: "Very good!") as (address, _), pytest.warns(UserWarning, match="not JSON .*Very good!"):
        make_judge(address).probe()


def test_a_judge_that_dies_stops_the_run_with_a_checkpoint(folder, capsys):
    judge = Mortal(lives=25)  # the probe, and two steps of at most 2 × 2 × 3 answers
    with endpoint(judge) as (address, _):
        write_rewards(folder, address)
        assert main([*ARGUMENTS, "--steps", "20"]) == 2
        error, run = last_error(capsys), Run(folder / "run")
        unknown = [row["vpo/unknown"] for row in run.steps()]
        step = len(unknown)
        assert unknown[-PATIENCE:] == [4] * PATIENCE
        assert all(count < 4 for count in unknown[:-PATIENCE])
        assert step > PATIENCE
        assert error.startswith(
            f"vpo: error: run: no reward was known in {PATIENCE} batches in a row, up to step {step} (brief: "
        )
        assert "server error × " in error
        assert error.endswith(f"continue from checkpoint-{step} with: vpo train --resume run")
        assert not run.finished
        assert main(["train", "--resume", "run"]) == 2  # still dead
        assert "the judge at 127.0.0.1" in last_error(capsys)
        assert run.resume_point().step == step
        judge.lives = 10**6
        assert main(["train", "--resume", "run"]) == 0
    assert len(run.steps()) == 20
    assert all(row["vpo/unknown"] < 4 for row in run.steps()[step:])


def weights(folder):
    return AutoModelForCausalLM.from_pretrained(Run(folder).model).state_dict()


def test_a_short_run_without_any_known_reward_makes_no_model_and_can_be_repeated(folder, capsys):
    judge = Mortal(lives=1)  # for the probe
    with endpoint(judge) as (address, _):
        write_rewards(folder, address)
        assert main([*ARGUMENTS, "--steps", "4"]) == 2
        assert "no reward was known in 4 batches in a row, up to step 4" in (error := last_error(capsys))
        assert error.endswith("continue from step 0 with: vpo train --resume run")
        assert not Run(folder / "run").finished
        judge.lives = 10**6
        assert main(["train", "--resume", "run"]) == 0
        assert main([*ARGUMENTS[:-1], "other", "--steps", "4"]) == 0
    one, other = weights(folder / "run"), weights(folder / "other")
    assert all(torch.equal(value, other[name]) for name, value in one.items())


def test_a_spent_budget_stops_the_run(folder, capsys):
    with endpoint(fine) as (address, seen):
        write_rewards(folder, address, "max_requests = 13")
        assert main([*ARGUMENTS, "--steps", "20"]) == 2
    assert len(seen) == 13
    assert "(brief: request limit reached × " in last_error(capsys)
    assert Run(folder / "run").latest_checkpoint() is not None


def test_a_resumed_run_goes_on_counting(folder, capsys, monkeypatch):
    judge = Mortal(lives=1)
    with endpoint(judge) as (address, seen):
        write_rewards(folder, address)
        with monkeypatch.context() as patch:
            stop_after(patch, 4)
            assert main([*ARGUMENTS, "--steps", "20"]) == 130
        judge.lives = len(seen) + 1  # it answers the probe
        assert main(["train", "--resume", "run"]) == 2
    assert f"no reward was known in {PATIENCE} batches in a row, up to step {PATIENCE}" in last_error(capsys)
    assert Run(folder / "run").latest_checkpoint()[0] == PATIENCE


def test_fewer_batches_without_a_reward_at_the_end_are_a_warning(folder, capsys):
    with endpoint(Mortal(lives=13)) as (address, _):
        write_rewards(folder, address)
        with pytest.warns(UserWarning, match=r"no reward was known in the last \d batches: the model has learned"):
            assert main([*ARGUMENTS, "--steps", "4"]) == 0
    assert Run(folder / "run").finished


@pytest.mark.parametrize(("steps", "batches"), [(PATIENCE + 9, PATIENCE), (3, 3)])
def test_a_stock_trainer_is_stopped_too(steps, batches, tmp_path):
    from datasets import Dataset
    from trl import GRPOTrainer

    args = grpo_config(
        "vpo", output_dir=str(tmp_path / "out"), num_generations=2, per_device_train_batch_size=2,
        max_completion_length=4, report_to="none", use_cpu=True, max_steps=steps, save_strategy="no",
    )  # fmt: skip
    reward = reward_function(score=lambda answer: None, objectives=["x"], answers=1)
    reward.grader.read = lambda text, answers: reading_of(text, [text])
    dataset = Dataset.from_dict({"prompt": ["a", "b"] * steps})
    trainer = GRPOTrainer(save_tiny_model(tmp_path / "tiny"), reward_funcs=reward, args=args, train_dataset=dataset)
    with pytest.raises(InputError, match=f"no reward was known in {batches} batches in a row, up to step {batches}$"):
        trainer.train()


def test_only_answers_count():
    """A completion without an answer is known to be worth 0: that says nothing of the judge."""
    zeros = np.zeros((2, 1))
    assert known_rewards([["a", None], [None, None]], [None, zeros]) == Mean(0, 1)
    assert known_rewards([["a", None], ["b", "c"]], [None, zeros]) == Mean(1, 2)
    assert known_rewards([[None, None]], [zeros]) == Mean(0, 0)
    alarms = Alarms()
    for _ in range(PATIENCE - 1):
        assert not alarms.count_batch(Mean(0, 4), 100)
        assert not alarms.count_batch(Mean(0, 0), 100)
    assert alarms.count_batch(Mean(0, 4), 100)
    assert not alarms.count_batch(Mean(1, 4), 100)
    assert alarms.unknown_batches == 0
    assert not Alarms().count_batch(Mean(1, 1), 0)
