"""`vpo train` with vLLM in its process: it samples from the weights that were just trained."""

import json
import os
import subprocess
import sys
import time
from dataclasses import replace

import pytest

pytest.importorskip("vllm", reason="needs vLLM: make test-vllm")

import torch

from tests.training.trained import ARGUMENTS, SMALL, assert_same, result
from vpo.cli.main import main
from vpo.training.prepare import prepare
from vpo.training.runs import Run
from vpo.training.trl_trainer import build_trainer, trainer_config

pytestmark = [pytest.mark.vllm, pytest.mark.filterwarnings("ignore")]  # those of other packages

LIMIT = 600  # seconds, many times as long as a run takes on an idle machine
DIFFERENCE = "sampling/sampling_logp_difference/max"  # of a token's log-probability, between vLLM and the trainer
# Every step changes the policy visibly.
FAST = [*ARGUMENTS, "--generator", "vllm", "--learning-rate", "1e-3", "--warmup-steps", "0"]


def start(folder, *arguments):
    command = [sys.executable, "-W", "ignore", "-m", "vpo", "train", *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=folder, env={**os.environ, "OMP_NUM_THREADS": "1"}, text=True, **pipes)


def finish(process):
    try:
        out, err = process.communicate(timeout=LIMIT)
    finally:
        process.kill()
    assert process.returncode == 0, err
    return out


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run that nothing interrupted; standard output is that of `--json`."""
    folder = tmp_path_factory.mktemp("finished")
    out = finish(start(folder, *FAST, "--out", "run", "--json"))
    assert json.loads(out)  # and nothing of vLLM's own
    return folder / "run"


def steps(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_every_step_samples_from_the_weights_of_the_step_before(finished):
    assert [row["step"] for row in steps(finished)] == list(range(1, 7))
    assert max(row[DIFFERENCE] for row in steps(finished)) < 1e-4


def test_kill_9_and_resume(finished, tmp_path):
    process = start(tmp_path, *FAST, "--out", "run")
    log, deadline = tmp_path / "run" / "metrics.jsonl", time.monotonic() + LIMIT
    while not (log.is_file() and log.read_text().count("\n") >= 3):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.kill()
    process.communicate()
    assert not Run(tmp_path / "run").finished
    finish(start(tmp_path, "--resume", "run"))
    assert_same(result(tmp_path / "run"), result(finished))


def test_a_server_on_a_cpu_is_refused_in_one_line(tmp_path, capsys):
    command = ["train", *ARGUMENTS, "--generator", "vllm", "--vllm-mode", "server", "--out", str(tmp_path / "run")]
    assert main(command) == 2
    error = capsys.readouterr().err
    assert "vllm_mode server needs a GPU, since weights travel over NCCL: give --vllm-mode colocate" in error
    assert error.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_an_adapter_is_merged_into_what_vllm_samples_from(tmp_path):
    finish(start(tmp_path, *FAST, "--lora", "4", "--steps", "3", "--out", "run"))
    assert max(row[DIFFERENCE] for row in steps(tmp_path / "run")) < 1e-4


@pytest.fixture(scope="module")
def trainer(tmp_path_factory):
    run = prepare(replace(SMALL, generator="vllm"))
    args = trainer_config(run.config, run.reward, tmp_path_factory.mktemp("trainer") / "checkpoints", 0)
    return build_trainer(run.config, run.reward, run.policy, args, [])


def test_vllm_leaves_the_seed_of_the_run(trainer):
    assert torch.initial_seed() == SMALL.seed  # it seeds the process with 0 when it loads


# Every kind of weight: vLLM merges some of them into one matrix, and transformers ties the last to the first.
KINDS = (
    "embed_tokens",
    "q_proj",
    "k_proj",
    "v_proj",
    "o_proj",
    "gate_proj",
    "up_proj",
    "down_proj",
    "layernorm",
    "norm",
)


def test_the_kinds_are_all_weights_of_the_policy(trainer):
    names = [name for name, _ in trainer.model.named_parameters()]
    assert all(any(kind in name for kind in KINDS) for name in names), names
    assert all(any(kind in name for name in names) for kind in KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_vllm_samples_from_updated_weights(trainer, kind):
    vllm = trainer.vllm_generation
    vllm.sync_weights()
    assert disagreement(trainer) < 1e-4
    draws = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, weight in trainer.model.named_parameters():
            if kind in name:
                weight += 0.3 * weight.std() * torch.randn(weight.shape, generator=draws) + 0.05 * (weight.dim() == 1)
    assert disagreement(trainer) > 1e-2, "what is stale is seen"
    vllm.sync_weights()
    assert disagreement(trainer) < 1e-4


def disagreement(trainer):
    """The largest difference between the log-probabilities of sampled tokens, by vLLM and by the policy."""
    asked = [trainer.train_dataset[index]["prompt"] for index in range(4)]
    tokenized = trainer.processing_class.apply_chat_template(asked, add_generation_prompt=True)["input_ids"]
    prompts, completions, sampled, _ = trainer.vllm_generation.generate(tokenized, None, num_generations=1)
    largest = 0.0
    for prompt, completion, logprobs in zip(prompts, completions, sampled, strict=True):
        with torch.inference_mode():
            logits = trainer.model(torch.tensor([[*prompt, *completion]])).logits[0, len(prompt) - 1 : -1]
        own = logits.log_softmax(-1)[range(len(completion)), list(completion)]
        largest = max(largest, float((own - torch.tensor(logprobs)[:, 0]).abs().max()))
    return largest
