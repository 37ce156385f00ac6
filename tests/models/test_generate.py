"""Completions that a policy writes: seeded, counted, in order, from a prefix, whatever the model's own config says."""

from types import SimpleNamespace

import pytest
import torch

pytest.importorskip("transformers")

from vpo.models import generate
from vpo.models.decoding import decode, group_equal
from vpo.models.generate import Sampling, complete
from vpo.models.locate import embedded
from vpo.models.policy import load
from vpo.tasks.maze import MazeTask

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages


def test_a_completion_continues_its_prefix():
    policy = load(embedded("maze", size=7))
    task = MazeTask(size=7, compact=True)
    maze = task.problems("test", count=1)[0]
    prompts = [task.ask(maze, 3)] * 2
    prefixes = ["<answer_1>UU</answer_1>\n", ""]
    completions = complete(policy, prompts, Sampling(temperature=0.0, max_new_tokens=90), prefixes)
    begun, whole = (prefix + each.text for prefix, each in zip(prefixes, completions, strict=True))
    first, second, third = task.parse(begun, 3)
    assert first == "UU"
    assert second is not None
    assert third is not None
    assert completions[0].tokens < completions[1].tokens  # the prefix is not counted
    (alone,) = complete(policy, prompts[1:], Sampling(temperature=0.0, max_new_tokens=90))
    assert whole == alone.text


def test_the_first_token_of_another_completion_can_be_forbidden():
    policy = load(embedded("maze", size=7))
    task = MazeTask(size=7, compact=True)
    prompts = [task.ask(maze, 1) for maze in task.problems("test", count=2)] * 2
    greedy = Sampling(temperature=0.0, max_new_tokens=40)
    prefixes = ["<answer>", "", "<answer>", "<answer>U"]
    plain = [each.text for each in complete(policy, prompts, greedy, prefixes)]
    other = [each.text for each in complete(policy, prompts, greedy, prefixes, [plain[0], "", "", plain[3]])]
    assert other[1:3] == plain[1:3]
    for index in (0, 3):
        assert other[index][0] != plain[index][0]
        assert len(other[index]) > 1  # only the first token is forbidden


def test_only_a_whole_token_is_forbidden():
    """A text that is cut within a token has no next token that could be forbidden."""
    from tokenizers import Tokenizer, models

    words = Tokenizer(models.BPE({"a": 0, "b": 1, "c": 2, "ab": 3}, [("a", "b")]))
    tokenize = lambda text, **_: {"input_ids": words.encode(text).ids}  # noqa: E731
    assert generate._first_token(tokenize, "c", "ab") == 3
    assert generate._first_token(tokenize, "ca", "b") is None
    assert generate._first_token(tokenize, "ca", "") is None


def test_completions_are_seeded_and_counted():
    task = MazeTask(size=7, compact=True)
    policy = load(embedded("maze", size=7))
    prompts = [task.ask(problem, 1) for problem in task.problems(count=5)]
    once = complete(policy, prompts, Sampling(max_new_tokens=30))
    assert once == complete(policy, prompts, Sampling(max_new_tokens=30))
    assert once != complete(policy, prompts, Sampling(max_new_tokens=30, seed=1))
    for each in once:
        # Its tags, its moves, and the end; or cut off at the limit.
        assert each.tokens in (len(each.text.replace("<answer>", "").replace("</answer>", "")) + 3, 30)
    assert all(each.tokens <= 4 for each in complete(policy, prompts, Sampling(max_new_tokens=4)))


def test_completions_come_in_the_order_of_their_prompts_in_batches_of_like_length():
    mazes = [MazeTask(size=size, compact=True).problems(count=1)[0] for size in (9, 7, 9, 11, 7)]
    policy = load(embedded("maze", size=7))
    prompts = [MazeTask(size=7, compact=True).ask(maze, 1) for maze in mazes]
    batches = []
    written = policy.model.generate

    def watched(tokens, **settings):
        batches.append(tokens.shape)
        return written(tokens, **settings)

    policy.model.generate = watched
    greedy = Sampling(temperature=0.0, max_new_tokens=30, batch=2)
    apart = [complete(policy, [prompt], greedy)[0] for prompt in prompts]
    batches.clear()
    assert complete(policy, prompts, greedy) == apart
    assert [count for count, _ in batches] == [2, 2, 1]
    lengths = [length for _, length in batches]
    assert lengths == sorted(lengths, reverse=True)
    assert len(set(lengths)) == 3


def test_a_static_cache_gives_the_same_completions(monkeypatch):
    import torch
    from transformers import StaticCache

    policy = load(embedded("maze", size=7))
    prompts = [MazeTask(size=7, compact=True).ask(MazeTask(size=size).problems(count=1)[0], 1) for size in (7, 9)]
    greedy = Sampling(temperature=0.0, max_new_tokens=30)
    grown = complete(policy, prompts, greedy)
    lengths = []

    def on_a_gpu(model, length):
        lengths.append(length)
        there = SimpleNamespace(device=torch.device("cuda"), config=model.config, _can_compile_fullgraph=True)
        arguments = static_cache(there, length)
        assert isinstance(arguments["past_key_values"], StaticCache)
        return arguments

    static_cache = generate._static_cache
    monkeypatch.setattr(generate, "_static_cache", on_a_gpu)
    assert complete(policy, prompts, greedy) == grown
    assert lengths == []
    monkeypatch.setattr(generate, "shares_prompts", lambda model: False)  # as models whose layers see less
    assert complete(policy, prompts, greedy) == grown
    assert len(lengths) == 1
    for device, fixed_kernels in (("cuda", False), ("cpu", True)):
        model = SimpleNamespace(device=torch.device(device), _can_compile_fullgraph=fixed_kernels)
        assert static_cache(model, 100) == {}


def test_nothing_of_a_models_own_config_but_its_ends_is_used():
    task = MazeTask(size=7, compact=True)
    policy = load(embedded("maze", size=7))
    prompts = [task.ask(problem, 3) for problem in task.problems(count=4)]
    plain = complete(policy, prompts, Sampling(max_new_tokens=90))
    policy.model.generation_config.repetition_penalty = 1.5
    assert complete(policy, prompts, Sampling(max_new_tokens=90)) == plain
    end = policy.tokenizer.convert_tokens_to_ids("</answer_1>")
    policy.model.generation_config.eos_token_id = [1, end]
    for each in complete(policy, prompts, Sampling(max_new_tokens=90)):
        assert each.tokens == len(policy.tokenizer(each.text)["input_ids"])
        assert each.text.endswith("</answer_1>")


def test_temperature_zero_takes_the_likeliest():
    task = MazeTask(size=7, compact=True)
    policy = load(embedded("maze", size=7))
    prompts = [task.ask(task.problems(count=1)[0], 1)] * 3
    assert len(set(complete(policy, prompts, Sampling(temperature=0, max_new_tokens=40)))) == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": -1}, "temperature must be 0 or more, not -1"),
        ({"top_p": 0}, "top_p must be greater than 0 and at most 1, not 0"),
        ({"batch": 0}, "batch must be 1 or more, not 0"),
        ({"max_new_tokens": 0}, "max_new_tokens must be 1 or more, not 0"),
    ],
)
def test_bad_sampling_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Sampling(**settings)


def test_a_batch_holds_all_completions_of_its_prompts(monkeypatch):
    task = MazeTask(size=7, compact=True)
    policy = load(embedded("maze", size=7))
    prompts = [task.ask(problem, 1) for problem in task.problems(count=4)]
    batches = []

    def watched(model, input_ids, *arguments, **more):
        batches.append(group_equal([tuple(row) for row in input_ids.tolist()]))
        return decode(model, input_ids, *arguments, **more)

    monkeypatch.setattr(generate, "decode", watched)
    sampling = Sampling(max_new_tokens=30, batch=8)
    completions = complete(policy, prompts * 3, sampling)  # each prompt three times
    assert [(len(order), times) for order, times in batches] == [(6, 3), (6, 3)]
    assert complete(policy, prompts * 3, sampling) == completions
    greedy = complete(policy, prompts * 3, Sampling(temperature=0, max_new_tokens=30, batch=8))
    assert greedy[:4] == greedy[4:8] == greedy[8:]
    assert complete(policy, [], sampling) == []


def test_a_batch_that_does_not_fit_into_memory_is_halved(monkeypatch):
    task = MazeTask(size=7, compact=True)
    policy = load(embedded("maze", size=7))
    prompts = [task.ask(problem, 1) for problem in task.problems(count=4) for _ in range(2)]
    greedy = Sampling(temperature=0, max_new_tokens=30)
    whole = complete(policy, prompts, greedy)
    sizes, capacity = [], 2

    def narrow(model, input_ids, *arguments, **more):
        sizes.append(len(input_ids))
        if len(input_ids) > capacity:
            raise torch.OutOfMemoryError
        return decode(model, input_ids, *arguments, **more)

    monkeypatch.setattr(generate, "decode", narrow)
    assert complete(policy, prompts, greedy) == whole
    assert sizes == [8, 4, 2, 2, 4, 2, 2]
    capacity = 1
    with pytest.raises(torch.OutOfMemoryError):
        complete(policy, prompts, greedy)
