"""Warm-up: models that do not write sets learn to, from demonstrations and from their own answers."""

import json
from dataclasses import replace

import pytest

pytest.importorskip("transformers")

from transformers import set_seed

from tests.tasks import code_rows
from tests.tasks.watched import task_on
from vpo.cli.main import main
from vpo.models import warmup
from vpo.models.generate import Completion
from vpo.models.locate import locate
from vpo.models.maze import make_model, make_tokenizer, shape_for
from vpo.models.policy import load
from vpo.models.sft import encode
from vpo.models.warmup import WarmupConfig, _own_sets, warm_up
from vpo.tasks import Task
from vpo.tasks.answers import write
from vpo.tasks.maze import MazeTask
from vpo.tasks.toolrl import Call, ToolProblem, ToolrlTask
from vpo.tasks.toolrl.calls import parse_answer
from vpo.tasks.toolrl.data import gold_answer

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages

TASK = {"size": 7, "compact": True}


@pytest.fixture(scope="module")
def untrained(tmp_path_factory):
    """A policy with the vocabulary of mazes and random weights."""
    folder = tmp_path_factory.mktemp("untrained")
    set_seed(0)
    tokenizer = make_tokenizer()
    make_model(shape_for(7), len(tokenizer)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def test_a_model_learns_the_format_from_demonstrations(untrained, tmp_path, capsys):
    arguments = ["--set-steps", "60", "--batch", "16", "--micro-batch", "16", "--set-problems", "60"]
    arguments += ["--warmup-learning-rate", "3e-3"]
    settings = ["--set", "size=7", "--set", "compact=true", "--max-tokens", "29"]
    out = str(tmp_path / "warm")
    assert main(["warmup", untrained, "--task", "maze", *settings, *arguments, "--out", out, "--json"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert done["sets"] == 60
    assert done["readable_before"] < 0.1
    assert done["readable_after"] > 0.2
    assert done["loss"][-1] < done["loss"][0]
    located = locate(out, "maze", {})
    assert located.settings == TASK
    assert located.format.answers == 3
    assert load(out).model.num_parameters() > 0


def test_own_answers_are_put_together_into_sets_of_different_ones():
    task = MazeTask(**TASK)
    policy = load(locate("embedded", "maze", {"size": 7}).path)
    problems = task.problems("train", count=6)
    sets, singles = _own_sets(policy, task, problems, WarmupConfig(source="own", max_tokens=29))
    assert sets
    assert {problem for problem, _ in singles} <= set(problems)
    assert all(task.normal_form(task.parse(text, 1)[0]) for _, text in singles)
    for problem, answers in sets:
        assert problem in problems
        assert len({task.normal_form(answer) for answer in answers}) == 3


def test_text_that_is_no_answer_is_not_learned(monkeypatch):
    form = '<think> so </think>\n<tool_call>\n{"name": "f", "parameters": {"x": 1}}\n</tool_call>'
    calls = [form, form.replace("1", "2")]
    problem = ToolProblem("one", ({"role": "user", "content": "f(1)"},), (Call("f", {"x": 1}),), calls[0])
    draws = [calls[0], "<think> cut off", calls[1], "I am sorry", calls[0], calls[0].replace("so", "thus")]
    completions = [Completion(text, 9) for text in draws]
    monkeypatch.setattr(warmup, "complete", lambda _, prompts, *__: completions[: len(prompts)])
    ((_, answers),), ((_, single),) = _own_sets(None, ToolrlTask(), [problem], WarmupConfig(answers=2, source="own"))
    assert {parse_answer(answer).calls[0].parameters["x"] for answer in answers} == {1, 2}
    assert parse_answer(single).calls[0].parameters["x"] == 1  # the best
    with pytest.raises(ValueError, match="no problem has 3 different answers of the model's own, 67% of whose single"):
        _own_sets(None, ToolrlTask(), [problem], WarmupConfig(answers=3, source="own"))


def test_own_programs_are_learned_without_the_words_around_them(monkeypatch, tmp_path):
    program = "```python\ndef half(x):\n    return {}\n```"
    used = "{}\nFor example:\n```python\ndef test_{}():\n    assert half(2) == 1\n```"
    first, second, wrong = (program.format(result) for result in ("x / 2", "0.5 * x", "x"))
    draws = [f"Sure!\n{first}", used.format(first, "a"), used.format(first, "b"), second, wrong, f"{second}\nDone."]
    monkeypatch.setattr(warmup, "complete", lambda *_: [Completion(text, 9) for text in draws])
    task = task_on(tmp_path, [code_rows.humaneval_row()])
    config = WarmupConfig(answers=3, source="own", max_tokens=20)
    ((_, answers),), ((_, single),) = _own_sets(None, task, task.problems(), config)
    assert set(answers) == {first, second, wrong}
    assert single == f"Sure!\n{first}"


def test_single_answers_that_were_cut_off_or_are_worth_nothing_are_not_learned(monkeypatch, tmp_path):
    good, bad = "```python\ndef half(x):\n    return x / 2\n```", "```python\ndef half(x):\n    return x\n```"
    task = task_on(tmp_path, [code_rows.humaneval_row()])
    config = WarmupConfig(answers=2, source="own", max_tokens=20)
    for length, learned in ((20, []), (19, [good])):
        completions = [Completion(good, length), Completion(bad, 9), Completion(bad, 9), Completion(bad, 9)]
        monkeypatch.setattr(warmup, "complete", lambda *_, completions=completions: completions)
        _, singles = _own_sets(None, task, task.problems(), config)
        assert [text for _, text in singles] == learned


def test_text_in_tags_that_is_no_answer_cannot_be_read(monkeypatch):
    problem = ToolProblem("one", ({"role": "user", "content": "f(1)"},), (Call("f", {"x": 1}),), "")
    text = write([f"<think> so </think>{gold_answer(problem.calls)}", "I am sorry"])
    monkeypatch.setattr(warmup, "complete", lambda *_: [Completion(text, 9)])
    monkeypatch.setattr(warmup, "_sample_problems", lambda *_: [problem])
    assert warmup.readable_share(None, ToolrlTask(), WarmupConfig(answers=2)) == 0.5


def test_single_answers_alone_can_be_learned(untrained, tmp_path):
    few = WarmupConfig(single_steps=3, set_steps=0, batch=4, micro_batch=4, max_tokens=29)
    done = warm_up(untrained, "maze", TASK, tmp_path / "warm", few)
    assert done["sets"] == 0
    assert len(done["loss"]) == 3


def test_what_would_be_cut_off_is_not_learned(untrained, tmp_path, monkeypatch, capsys):
    learned = []
    fine_tune = warmup.fine_tune

    def watched(model, tokenizer, rows, *more):
        learned.append([len(tokens) - prompt for tokens, prompt in rows])
        return fine_tune(model, tokenizer, rows, *more)

    monkeypatch.setattr(warmup, "fine_tune", watched)
    short = ["--single-steps", "1", "--set-steps", "1", "--batch", "4", "--set-problems", "60", "--max-tokens", "17"]
    settings = ["--set", "size=7", "--set", "compact=true"]
    out = str(tmp_path / "warm")
    assert main(["warmup", untrained, "--task", "maze", *settings, *short, "--out", out]) == 0
    singles, sets = learned
    assert len(singles) >= 4
    assert max(singles) <= 17 < max(sets) <= 3 * 17
    assert "gold answers or sets of them are longer than --max-tokens: skipped" in capsys.readouterr().out
    with pytest.raises(ValueError, match=r"no gold answer fits into 3 tokens, the shortest has \d+:"):
        warm_up(untrained, "maze", TASK, tmp_path / "none", WarmupConfig(single_steps=1, max_tokens=3))
    many = WarmupConfig(single_steps=1, set_steps=0, batch=100_000, micro_batch=4, max_tokens=17)
    with pytest.raises(ValueError, match=r"batch must be at most \d+, the number of examples, not 100000"):
        warm_up(untrained, "maze", TASK, tmp_path / "none", many)
    assert not (tmp_path / "none").exists()


def test_a_model_without_answers_is_an_error(untrained, tmp_path):
    warmup = WarmupConfig(source="own", set_problems=4, max_tokens=8)
    with pytest.raises(ValueError, match="no problem has 3 different answers of the model's own, 0% of whose single"):
        warm_up(untrained, "maze", TASK, tmp_path / "warm", warmup)
    assert not (tmp_path / "warm").exists()


def test_a_prompt_ends_where_the_template_says_and_a_completion_in_its_end():
    tokenizer = make_tokenizer()
    tokens, prompt = encode(tokenizer, [{"role": "user", "content": "S..E 7 1"}], "<answer>RRR</answer>")
    assert tokenizer.decode(tokens[:prompt]) == "S..E 7 1>"
    assert tokens[-1] == tokenizer.eos_token_id


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"answers": 1}, "answers must be 2 or more, a set, not 1"),
        ({"set_steps": 0}, "set_steps must be 1 or more, not 0"),
        ({"source": "web"}, "source must be one of demonstrations, own, not 'web'"),
        ({"batch": 6}, "micro_batch must divide the batch of 6, and 4 does not"),
        ({"warmup_learning_rate": 0.0}, "warmup_learning_rate must be greater than 0, not 0.0"),
        ({"warmup_learning_rate": float("inf")}, "warmup_learning_rate must be greater than 0, not inf"),
        ({"seed": -1}, r"seed must lie in 0\.\.4294967295, not -1"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        WarmupConfig(**settings)


@pytest.fixture
def no_model(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a model was loaded")

    monkeypatch.setattr(warmup, "load", refuse)


class NoGold(MazeTask):
    """Mazes without gold answers."""

    def demonstrations(self, problem, count, random):
        return Task.demonstrations(self, problem, count, random)

    def gold(self, problem):
        return None


def test_a_task_without_demonstrations_names_the_other_source_before_the_model_is_loaded(
    untrained, tmp_path, no_model, monkeypatch
):
    located = locate(untrained, "maze", TASK)
    resolved = located.resolve(answers=3, max_tokens=29)
    monkeypatch.setattr(type(located), "resolve", lambda *_, **__: replace(resolved, task=NoGold(**TASK)))
    with pytest.raises(ValueError, match="task maze has no demonstrations") as raised:
        warm_up(untrained, "maze", TASK, tmp_path / "out", WarmupConfig())
    assert str(raised.value).endswith("has no gold answer: learn from another source, with --source own")
    with pytest.raises(ValueError, match=r"single_steps needs gold answers, and task maze has no .*: set it to 0"):
        warm_up(untrained, "maze", TASK, tmp_path / "out", WarmupConfig(source="own", single_steps=1))
    with pytest.raises(AssertionError, match="a model was loaded"):
        warm_up(untrained, "maze", TASK, tmp_path / "out", WarmupConfig(source="own"))
