"""`VllmModel`, `vpo eval` and `vpo search` with vLLM itself, against transformers."""

import json
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("vllm", reason="needs vLLM: make test-vllm")

import torch

from vpo import read_pool
from vpo.cli.main import main
from vpo.evaluation.eval_log import PARTIAL
from vpo.models import Sampling, complete, embedded, load
from vpo.models.generate import render_prompts
from vpo.models.vllm_model import VllmModel
from vpo.search.generators import VllmGenerator
from vpo.search.operators import GenerationRequest
from vpo.tasks.maze import MazeTask

pytestmark = [pytest.mark.vllm, pytest.mark.filterwarnings("ignore")]  # those of other packages

TASK = MazeTask(size=7, compact=True)
MAZE = ["embedded", "--task", "maze", "--set", "size=7", "--answers", "3"]
SAMPLING = Sampling(temperature=0.7, top_p=0.9, max_new_tokens=90)
GREEDY = replace(SAMPLING, temperature=0.0)


@pytest.fixture(scope="module", autouse=True)
def in_this_process():
    """vLLM's engine in this process starts in a third of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
        yield


@pytest.fixture(scope="module")
def model(in_this_process):
    return VllmModel(embedded("maze", size=7), SAMPLING)


@pytest.fixture(scope="module")
def policy():
    return load(embedded("maze", size=7))


def prompts(count):
    return [TASK.ask(problem, 3) for problem in TASK.problems("test", count=count)]


def likeliest(model, asked, monkeypatch, **settings):
    with monkeypatch.context() as patch:
        patch.setattr(model, "sampling", GREEDY)
        return model.complete(asked, range(len(asked)), **settings)


def test_the_likeliest_completions_are_those_of_transformers(model, policy, monkeypatch):
    asked = prompts(12)
    assert model.precision == "float32"
    assert likeliest(model, asked, monkeypatch) == complete(policy, asked, GREEDY, quiet=True)
    prefixes = ["<answer_1>U"] * 6 + ["<answer_1>R"] * 6
    assert likeliest(model, asked, monkeypatch, prefixes=prefixes) == complete(
        policy, asked, GREEDY, prefixes, quiet=True
    )


def test_completions_stop_at_their_own_budgets(model, policy, monkeypatch):
    asked, budgets = prompts(4), [1, 5, 9, 90]
    expected = []
    for each, budget in zip(asked, budgets, strict=True):
        expected += complete(policy, [each], replace(GREEDY, max_new_tokens=budget), quiet=True)
    assert likeliest(model, asked, monkeypatch, max_tokens=budgets) == expected


def test_tokens_are_sampled_with_their_probabilities(model, policy, monkeypatch):
    """In 2,000 samples the share of each token lies within five standard deviations of its probability."""
    count, prefix, sampling = 2000, "<answer_1>", replace(SAMPLING, temperature=2.0)
    asked = prompts(20)
    texts = render_prompts(policy.tokenizer, asked, [prefix] * len(asked), thinking=False)
    inputs = policy.tokenizer(texts, return_tensors="pt", padding=True, add_special_tokens=False)
    with torch.inference_mode():
        shares = policy.model(**inputs).logits[:, -1].div(sampling.temperature).softmax(-1)
    index = int(shares.max(-1).values.argmin())  # the problem whose first move is the least certain
    ordered, tokens = shares[index].sort(descending=True)
    monkeypatch.setattr(model, "sampling", sampling)
    completions = model.complete([asked[index]] * count, range(count), [prefix] * count, [1] * count)
    sampled = [each.text for each in completions]
    kept = ordered.cumsum(0) - ordered < sampling.top_p
    assert 2 <= kept.sum() < len(kept), "there is something to sample, and something to leave out"
    texts = policy.tokenizer.batch_decode(tokens[kept].unsqueeze(1), skip_special_tokens=True)
    for each, share in zip(texts, ordered[kept] / ordered[kept].sum(), strict=True):
        if each:  # special tokens have no text
            assert abs(sampled.count(each) / count - share) < 5 * (share * (1 - share) / count) ** 0.5
    assert set(sampled) <= set(texts)


def test_a_completion_follows_from_its_seed_alone(model):
    asked = prompts(6)
    first = model.complete(asked, range(6))
    assert model.complete(asked[::-1], range(5, -1, -1)) == first[::-1]
    assert model.complete(asked[2:3], [2]) == first[2:3]
    assert model.complete(asked, range(6, 12)) != first


def test_a_search_continues_prefixes_and_begins_single_answers(model, monkeypatch):
    requests = [GenerationRequest(TASK.ask(problem, 1)) for problem in TASK.problems("test", count=3)]
    requests += [replace(each, prefix="<answer>U", max_tokens=3) for each in requests]
    monkeypatch.setattr(model, "opening", "<answer>")
    generations = VllmGenerator(model).generate(requests, 0)
    assert all(each.text.count("<answer>") == 1 and each.text.startswith("<answer>") for each in generations)
    assert all(each.text.startswith("<answer>U") and 1 <= each.tokens <= 3 for each in generations[3:])


def test_an_evaluation_with_vllm_agrees_with_transformers(tmp_path, capfd):
    command = ["eval", *MAZE, "--problems", "40", "--pool", "12", "--json"]
    facts = {}
    for generator in ("vllm", "transformers"):
        assert main([*command, "--generator", generator, "--out", str(tmp_path / generator)]) == 0
        facts[generator] = json.loads(capfd.readouterr().out)  # and nothing of vLLM's own
    assert facts["vllm"]["generator"] == "vllm"
    assert "generator" not in facts["transformers"]
    pools = [read_pool(tmp_path / name / "pool.parquet") for name in facts]
    solved = [np.mean([problem.solved_n for problem in pool.problems.values()]) for pool in pools]
    assert abs(solved[0] - solved[1]) < 0.15  # 480 answers in 160 completions each: four standard deviations


def test_an_interrupted_evaluation_continues_to_the_same_pool(tmp_path, capfd, monkeypatch):
    command = ["eval", *MAZE, "--problems", "4", "--pool", "12", "--batch", "6", "--generator", "vllm"]
    assert main([*command, "--out", str(tmp_path / "whole")]) == 0
    complete_batch, calls = VllmModel.complete, iter(range(2))

    def interrupted(self, *arguments):
        if next(calls, None) is None:
            raise KeyboardInterrupt
        return complete_batch(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(VllmModel, "complete", interrupted)
        assert main([*command, "--out", str(tmp_path / "out")]) == 130
    assert (tmp_path / "out" / PARTIAL).is_dir()
    capfd.readouterr()
    assert main(["eval", *command[1:-2], "--out", str(tmp_path / "out")]) == 2
    assert "(it differs in generator)" in capfd.readouterr().err
    assert main([*command, "--out", str(tmp_path / "out")]) == 0
    pools = [(tmp_path / name / "pool.parquet").read_bytes() for name in ("out", "whole")]
    assert pools[0] == pools[1]


def test_a_search_with_vllm_continues_prefixes_and_resumes(tmp_path, capfd):
    command = ["search", *MAZE, "--problems", "3", "--generator", "vllm", "--processes", "0", "--no-baseline", "--json"]
    command += ["--out", str(tmp_path / "out")]
    assert main([*command, "--iterations", "4"]) == 0
    assert json.loads(capfd.readouterr().out)["names"] == ["embedded evolve"]  # and nothing of vLLM's own
    (log,) = (tmp_path / "out").glob("*/generations.jsonl")
    first = [json.loads(line) for line in log.read_text().splitlines()]
    assert "regrow" in {row["operator"] for row in first}  # continues a prefix
    assert main([*command, "--iterations", "6"]) == 0
    again = [json.loads(line) for line in log.read_text().splitlines()]
    assert again[: len(first)] == first
    assert len(again) > len(first)
