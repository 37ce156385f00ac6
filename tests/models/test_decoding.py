from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tests.engines.tiny import save_tiny_model
from vpo.models import decoding, generate, shared_prompts
from vpo.models.decoding import decode, group_equal, share_prompts, shares_prompts
from vpo.models.generate import Sampling, complete
from vpo.models.locate import embedded
from vpo.models.policy import load
from vpo.models.shared_prompts import SharedPromptCache, SharedPromptDecoder
from vpo.tasks.maze import MazeTask
from vpo.training.config import TrainConfig
from vpo.training.train import train

SHAPE = {
    "vocab_size": 300,
    "hidden_size": 96,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "initializer_range": 0.3,
    "pad_token_id": 0,
    "eos_token_id": 1,
    "bos_token_id": 2,
}
OWN = {
    "Qwen3Moe": {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32},
    "DeepseekV3": {"n_routed_experts": 4, "n_group": 1, "topk_group": 1, "num_experts_per_tok": 2},
}
DRAWS = {
    "greedy": {"do_sample": False},
    "nucleus": {"do_sample": True, "temperature": 0.8, "top_p": 0.9},
    "penalty": {"do_sample": True, "repetition_penalty": 1.3},
}


def random_model(kind):
    import transformers

    torch.manual_seed(0)
    if kind == "GPT2":
        ends = {name: SHAPE[name] for name in ("pad_token_id", "eos_token_id", "bos_token_id")}
        config = transformers.GPT2Config(
            vocab_size=300, n_embd=96, n_layer=2, n_head=4, initializer_range=0.3, n_positions=128, **ends
        )
        return transformers.GPT2LMHeadModel(config).eval()
    config = getattr(transformers, f"{kind}Config")(**SHAPE, **OWN.get(kind, {}))
    return getattr(transformers, f"{kind}ForCausalLM")(config).eval()


def some_prompts():
    """Four prompts, one of them padded, and five completions of each."""
    torch.manual_seed(1)
    tokens = torch.randint(3, 300, (4, 9))
    mask = torch.ones_like(tokens)
    tokens[1, :4], mask[1, :4] = 0, 0
    return tokens.repeat_interleave(5, 0), mask.repeat_interleave(5, 0)


def written(model, tokens, mask, **settings):
    torch.manual_seed(5)
    return model.generate(tokens, attention_mask=mask, **{"max_new_tokens": 40, **settings})


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("kind", ["Llama", "Qwen2", "Qwen3", "Qwen3Moe", "Granite", "Olmo", "GPT2"])
def test_it_writes_what_generate_writes(kind, draw):
    model = random_model(kind)
    assert shares_prompts(model)
    tokens, mask = some_prompts()
    plain = written(model, tokens, mask, **DRAWS[draw])
    assert torch.equal(written(model, tokens, mask, custom_generate=decode, **DRAWS[draw]), plain)
    assert len({tuple(row) for row in plain.tolist()}) == (4 if draw == "greedy" else 20)
    assert model.config._attn_implementation == "sdpa"


@pytest.mark.parametrize("size", [7, 300, 50_000])
def test_the_race_draws_what_multinomial_draws(size):
    logits = 3 * torch.randn(8, size, generator=torch.Generator().manual_seed(0))
    logits[:, ::3] = -torch.inf
    for seed in range(10):
        torch.manual_seed(seed)
        expected = torch.multinomial(logits.softmax(-1), 1)[:, 0]
        torch.manual_seed(seed)
        assert torch.equal(decoding._race(logits)[1], expected)


@pytest.mark.parametrize("draw", DRAWS)
def test_logits_that_are_not_numbers_are_an_error(draw):
    model = random_model("Llama")
    model.lm_head.weight.data[5] = torch.nan
    with pytest.raises(RuntimeError, match="the logits of the model are not numbers"):
        model.generate(torch.full((2, 4), 3), custom_generate=decode, max_new_tokens=3, **DRAWS[draw])


def test_completions_of_a_prompt_may_stand_anywhere_and_be_fewer_than_of_another():
    model = random_model("Llama")
    tokens, mask = some_prompts()
    for rows in (torch.randperm(20), torch.arange(18), torch.tensor([7]), torch.tensor([3, 8, 3, 16])):
        chosen = tokens[rows], mask[rows]
        plain = written(model, *chosen, do_sample=True)
        assert torch.equal(written(model, *chosen, do_sample=True, custom_generate=decode), plain)


def test_it_stops_where_all_have_ended():
    model = random_model("Llama")
    tokens, mask = some_prompts()
    ends = {"do_sample": True, "eos_token_id": list(range(100))}
    plain = written(model, tokens, mask, **ends)
    assert plain.shape[1] < 9 + 40
    assert torch.equal(written(model, tokens, mask, custom_generate=decode, **ends), plain)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("kind", ["Llama", "Qwen3"])
def test_completions_that_have_ended_are_dropped(kind, fused, monkeypatch):
    model = random_model(kind)
    assert decoding._fused_step(model)  # tries tokens
    if not fused:
        monkeypatch.setattr(decoding, "can_fuse", lambda _: False)
    computed = []
    compute = SharedPromptDecoder.compute
    monkeypatch.setattr(
        SharedPromptDecoder, "compute", lambda self: (computed.append(len(self.token)), compute(self))[1]
    )
    tokens, mask = some_prompts()
    for order in (torch.arange(20), torch.randperm(20, generator=torch.Generator().manual_seed(0))):
        computed.clear()
        ends = {"do_sample": True, "eos_token_id": list(range(30)), "max_new_tokens": 60}
        plain = written(model, tokens[order], mask[order], **ends)
        assert torch.equal(written(model, tokens[order], mask[order], custom_generate=decode, **ends), plain)
        assert computed == sorted(computed, reverse=True)
        assert computed[0] == 20
        assert len(set(computed)) > 2  # dropped more than once
        assert computed[-1] < 6


def test_rows_are_dropped_where_at_most_half_are_left():
    tokens, mask = some_prompts()
    for ended, left in (
        ([], None),
        ([*range(10)], [10, 11, 12, 13, 14, 15, 16, 17, 18, 19]),  # two whole prompts
        ([*range(9)], None),  # a completion of the second prompt is left: three prompts of five rows
        ([0, 1, 2, 6, 7, 9, 10, 11, 12, 15, 17, 19], [3, 4, 5, 8, 13, 14, 16, 18]),
        ([*range(19)], [19]),
        ([0, 1, 2, *range(5, 20)], [3, 4]),
        ([0, 1, 2, 4, *range(5, 18)], [3, 0, 18, 19]),  # as many rows of each prompt
    ):
        decoder, _ = shared_prompts.read_prompts(random_model("Llama"), tokens[::5], mask[::5], 5, 9)
        rows = decoder.drop(torch.isin(torch.arange(20), torch.tensor(ended, dtype=torch.long)))
        assert (rows if rows is None else rows.tolist()) == left
        assert len(decoder.token) == len(decoder.position) == (20 if left is None else len(left))


def test_a_prompt_is_read_once_for_all_of_its_completions(monkeypatch):
    model = random_model("Llama")
    tokens, mask = some_prompts()
    read = []
    forward = model.forward

    def watched(input_ids, **inputs):
        read.append(tuple(input_ids.shape))
        return forward(input_ids, **inputs)

    monkeypatch.setattr(model, "forward", watched)
    written(model, tokens, mask, do_sample=True, custom_generate=decode)
    assert read[0] == (4, 9)
    assert set(read[1:]) == {(20, 1)}


def test_keys_that_are_wider_than_values_are_narrowed():
    # As under mixed precision, which is not computed here: some CPUs crash on it.
    keys, values = torch.ones(2, 2, 5, 8, dtype=torch.float64), torch.ones(2, 2, 5, 8)
    cache = SharedPromptCache(torch.ones(2, 5, dtype=torch.long), [keys], [values], times=3, max_tokens=4)
    own_keys, _ = cache.update(torch.ones(6, 2, 1, 8, dtype=torch.float64), torch.ones(6, 2, 1, 8), 0)
    assert own_keys.dtype == cache.keys[0].dtype == torch.float32
    assert own_keys.shape == (2, 2, 3, 4, 8)


class Narrowed(TorchDispatchMode):
    """Counts how often weights are narrowed."""

    def __init__(self, model):
        super().__init__()
        self.weights, self.count = {each.data_ptr() for each in model.parameters()}, 0

    def __torch_dispatch__(self, function, types, arguments=(), more=None):
        if function is torch.ops.aten._to_copy.default:
            self.count += arguments[0].data_ptr() in self.weights
        return function(*arguments, **(more or {}))


def test_mixed_precision_narrows_the_weights_once(monkeypatch):
    monkeypatch.setattr(decoding, "can_fuse", lambda _: False)
    model = random_model("Llama")
    autocast = partial(torch.autocast, "cpu", torch.float16)  # some CPUs crash on bfloat16
    model.forward = autocast()(model.forward)  # as accelerate does
    tokens, mask = some_prompts()
    shared, counts = [], []
    for around in (nullcontext, autocast):
        share_prompts(model, around)
        with Narrowed(model) as narrowed:
            shared.append(written(model, tokens, mask, **DRAWS["nucleus"]))
        counts.append(narrowed.count)
    assert torch.equal(*shared)
    linear = sum(isinstance(each, torch.nn.Linear) for each in model.modules())
    assert counts == [linear * (shared[0].shape[1] - tokens.shape[1]), linear]


@pytest.mark.parametrize("kind", ["Mistral", "Gemma2", "DiffLlama", "DeepseekV3", "Nemotron"])
def test_models_that_attend_in_other_ways_write_by_themselves(kind):
    # They see a window, squash their scores, attend twice, keep something else than keys, take no further arguments.
    model = random_model(kind)
    own = model.generate
    share_prompts(model)
    assert not shares_prompts(model)
    assert model.generate == own
    assert model.config._attn_implementation != shared_prompts.ATTENTION


def test_positions_that_depend_on_the_length_are_left_to_transformers():
    model = random_model("Llama")
    model.config.rope_parameters = {**model.config.rope_parameters, "rope_type": "dynamic"}
    assert not shares_prompts(model)


def test_the_cache_grows_with_the_completions(monkeypatch):
    model = random_model("Llama")
    tokens, mask = some_prompts()
    plain = written(model, tokens, mask, do_sample=True)
    assert decoding._fused_step(model)  # tries tokens
    monkeypatch.setattr(shared_prompts, "CAPACITY", 3)
    capacities = []
    grow = SharedPromptCache.grow

    def watched(self):
        grow(self)
        capacities.append(self.own_keys[0].shape[3])

    monkeypatch.setattr(SharedPromptCache, "grow", watched)
    assert torch.equal(written(model, tokens, mask, do_sample=True, custom_generate=decode), plain)
    assert capacities == [3, 6, 12, 24, 40]


@pytest.mark.parametrize(
    "settings",
    [
        {"num_beams": 2},
        {"do_sample": True, "guidance_scale": 1.5},
        {"do_sample": True, "return_dict_in_generate": True, "output_scores": True},
        {"do_sample": True, "num_return_sequences": 3},
        {"do_sample": True, "pad_token_id": None},
        {"max_new_tokens": 1},
    ],
)
def test_what_else_generate_does_it_still_does(settings):
    model = random_model("Llama")
    if "pad_token_id" in settings:
        model.generation_config.pad_token_id = model.config.pad_token_id = None
    tokens, mask = some_prompts()
    plain = written(model, tokens, mask, **settings)
    shared = written(model, tokens, mask, custom_generate=decode, **settings)
    if "return_dict_in_generate" in settings:
        assert len(shared.scores) == len(plain.scores)
        plain, shared = plain.sequences, shared.sequences
    assert torch.equal(shared, plain)


@pytest.mark.parametrize("further", ["token_type_ids", "position_ids"])
def test_what_a_model_reads_beside_tokens_is_left_to_transformers(further):
    model = random_model("GPT2")
    tokens, mask = some_prompts()
    # Of the completions of a prompt, each has another.
    given = {further: (torch.arange(len(tokens))[:, None] + torch.arange(tokens.shape[1])).clamp(max=299)}
    plain = written(model, tokens, mask, **given)
    assert not torch.equal(plain, written(model, tokens, mask))
    assert torch.equal(written(model, tokens, mask, custom_generate=decode, **given), plain)


@pytest.mark.filterwarnings("ignore")  # those of peft
@pytest.mark.parametrize("config", ["PromptTuningConfig", "PrefixTuningConfig", "LoraConfig"])
def test_adapters_that_add_to_the_prompt_are_left_to_peft(config):
    peft = pytest.importorskip("peft")
    own = {"r": 4, "init_lora_weights": False} if config == "LoraConfig" else {"num_virtual_tokens": 4}
    model = random_model("Llama")
    adapted = peft.get_peft_model(model, getattr(peft, config)(task_type="CAUSAL_LM", **own)).eval()
    for name, each in adapted.named_parameters():
        if "prompt_encoder" in name:
            each.data.normal_(std=3, generator=torch.Generator().manual_seed(0))
    tokens, mask = some_prompts()
    sample = {"input_ids": tokens, "attention_mask": mask, "max_new_tokens": 5, "do_sample": False}
    plain = adapted.generate(**sample)
    with adapted.disable_adapter():
        assert not torch.equal(plain, adapted.generate(**sample))
    share_prompts(model)
    assert torch.equal(adapted.generate(**sample), plain)


def test_trying_a_model_leaves_the_mode_of_each_module():
    model = random_model("Llama").train()
    model.model.layers[0].eval()
    modes = [each.training for each in model.modules()]
    assert shares_prompts(model)
    assert decoding._fused_step(model)
    assert [each.training for each in model.modules()] == modes


def test_a_model_that_is_being_trained_writes_too():
    model = random_model("Llama").train()
    model.gradient_checkpointing_enable()
    assert shares_prompts(model)
    assert model.training
    tokens, mask = some_prompts()
    plain = written(model, tokens, mask, do_sample=True)
    assert torch.equal(written(model, tokens, mask, do_sample=True, custom_generate=decode), plain)


def test_threads_may_share_a_model():
    model = random_model("Llama")
    tokens, mask = some_prompts()
    plain = written(model, tokens, mask, do_sample=False)
    with ThreadPoolExecutor(4) as pool:
        shared = pool.map(lambda _: written(model, tokens, mask, do_sample=False, custom_generate=decode), range(8))
        assert all(torch.equal(each, plain) for each in shared)
    assert model.config._attn_implementation == "sdpa"


@pytest.mark.parametrize(
    ("rows", "most", "order", "times"),
    [
        ("aabb", None, [0, 1, 2, 3], 2),
        ("abab", None, [0, 2, 1, 3], 2),
        ("aaaabb", None, [0, 1, 2, 3, 4, 5], 2),
        ("aab", None, [0, 1, 2], 1),
        ("a" * 12, 5, list(range(12)), 4),
        ("a" * 7, 5, list(range(7)), 1),
        ("", None, [], 1),
    ],
)
def test_equal_rows_are_brought_together(rows, most, order, times):
    assert group_equal(list(rows), most) == (order, times)


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


@pytest.mark.filterwarnings("ignore:none of the answers of the first batch")  # the weights are random
@pytest.mark.parametrize("lora", [0, 4])
def test_a_run_is_the_same_with_prompts_shared(tmp_path, monkeypatch, lora):
    model = save_tiny_model(tmp_path / "model")
    config = TrainConfig(
        task="maze",
        model=model,
        task_settings={"size": 7},
        steps=2,
        prompts_per_step=2,
        group=4,
        problems=4,
        micro_batch=8,
        max_tokens=10,
        lora=lora,
    )
    calls = []

    def watched(model, input_ids, *arguments, **more):
        calls.append(len(input_ids))
        return decode(model, input_ids, *arguments, **more)

    monkeypatch.setattr(decoding, "decode", watched)
    train(config, tmp_path / "shared")
    assert calls == [8, 8]
    monkeypatch.setattr("vpo.training.trl_trainer.share_prompts", lambda *_: None)
    train(config, tmp_path / "alone")
    assert calls == [8, 8]
    shared, alone = ((tmp_path / name / "rollouts.jsonl").read_text() for name in ("shared", "alone"))
    assert shared == alone != ""


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("kind", ["Llama", "Qwen2", "Qwen3", "Qwen3Moe"])
def test_what_is_recorded_on_a_gpu_writes_the_same(kind, draw, monkeypatch):
    monkeypatch.setattr(shared_prompts, "CAPACITY", 16)  # recorded again
    model = random_model(kind).cuda()
    tokens, mask = (each.cuda() for each in some_prompts())
    plain = written(model, tokens, mask, **DRAWS[draw])
    assert torch.equal(written(model, tokens, mask, custom_generate=decode, **DRAWS[draw]), plain)
