"""Whole searches in a tree on tasks of text, with policies of random weights and random expressions."""

import json
from dataclasses import replace
from random import Random

import pytest

pytest.importorskip("transformers")

from tests.engines.tiny import save_tiny_model
from vpo.models.remote import Generation
from vpo.search.config import SearchConfig
from vpo.search.log import CANDIDATES, GENERATIONS
from vpo.search.run import search_into
from vpo.search.setup import SearchSetup
from vpo.util.stored import read_log

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages

ROWS = {
    "gsm8k": [{"question": f"How many is 2 * {n}?", "answer": f"2 * {n} = {2 * n}\n#### {2 * n}"} for n in (8, 9)],
    "countdown": [{"nums": [3, 5, 10], "target": target} for target in (53, 18)],
}
PIECES = ["3", "5", "10", " + ", " - ", " * ", " / ", "(", ")"]


class Expressions:
    """A policy of random numbers, operators and brackets, a token each."""

    def generate(self, requests, seed):
        random = Random(seed)
        return [self.complete(request, random) for request in requests]

    def complete(self, request, random):
        pieces = []
        while len(pieces) < request.max_tokens and (len(pieces) < 1 or random.random() < 0.6):
            pieces.append(random.choice(PIECES))
        ended = len(pieces) < request.max_tokens
        begun = request.prefix or "<answer>"
        return Generation(begun + "".join(pieces) + ("</answer>" if ended else ""), len(pieces) + ended)


def search(folder, config, iterations):
    """The result of a search that is interrupted once, and its logs."""
    search_into(folder, replace(config, iterations=3))
    result = search_into(folder, replace(config, iterations=iterations))
    return result, read_log(folder / GENERATIONS, {}), read_log(folder / CANDIDATES, {})


def check(folder, config, steps, iterations=300):
    """Answers continue their parents at the ends of steps, budgets are exact, and a resumed search is the same."""
    result, generations, candidates = search(folder / "resumed", config, iterations)
    search_into(folder / "whole", replace(config, iterations=iterations))
    assert generations == read_log(folder / "whole" / GENERATIONS, {})
    assert candidates == read_log(folder / "whole" / CANDIDATES, {})
    unsolved = [
        tokens for tokens, at in zip(result.spent["tokens"], result.solved_at["tokens"], strict=True) if at > tokens
    ]
    assert set(unsolved) <= {config.budget["tokens"]}
    answers = {(row["case"], row["number"]): row["answer"] for row in candidates}
    continued = [row for row in candidates if row["parent"] is not None]
    for row in continued:
        parent = answers[row["case"], row["parent"]]
        assert row["kept"] in steps(parent)
        assert row["answer"] is None or row["answer"].startswith(parent[: row["kept"]].rstrip())
    return result, continued


def config_for(task, folder, model, tokens):
    path = folder / f"{task}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS[task]))
    settings = {"model": model, "task": task, "task_settings": {"data": str(path)}, "strategy": "tree", "answers": 1}
    return SearchConfig(**settings, budget={"tokens": tokens}, max_tokens=120, temperature=1.5, processes=0)


def test_lines_and_sentences_of_a_model_of_random_weights(tmp_path):
    from vpo.tasks.math.gsm8k import Gsm8kTask

    config = config_for("gsm8k", tmp_path, save_tiny_model(tmp_path / "tiny"), 800)
    result, continued = check(tmp_path, config, lambda answer: Gsm8kTask().steps(None, answer))
    assert len(continued) > 5
    assert result.spent["tokens"].tolist() == [800, 800]


def test_random_expressions(tmp_path, monkeypatch):
    from vpo.tasks.math.countdown import CountdownTask

    monkeypatch.setattr(SearchSetup, "new_generator", lambda _: Expressions())
    config = config_for("countdown", tmp_path, save_tiny_model(tmp_path / "tiny"), 4000)
    result, continued = check(tmp_path, config, lambda answer: CountdownTask().steps(None, answer), iterations=2000)
    assert len(continued) > 30
    assert result.solved
