"""Tags that are forced into completions: by their tokens, in any decoding loop, row by row."""

import re

import pytest
import torch

from vpo.models import generate
from vpo.models.decoding import decode
from vpo.models.forced_tags import ForcedTags, tags_of
from vpo.models.generate import Sampling, complete
from vpo.models.locate import embedded
from vpo.models.maze import make_tokenizer
from vpo.models.policy import Policy, load
from vpo.tasks import get
from vpo.tasks.answers import parse
from vpo.tasks.maze import MazeTask
from vpo.tasks.toolrl import ToolrlTask
from vpo.util.errors import InputError

THREE = tuple((f"<answer_{number}>", f"</answer_{number}>") for number in (1, 2, 3))
MERGES = ["</", "an", "sw", "er", "answ", "answer", "</answer", "_1", "_2", "<answer", ">\n", "><", "1>", "_1>", ">a"]


def merging_tokenizer():
    """Bytes and merges, as most language models have them: a tag may end in the middle of a token."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merged = [each.replace("\n", "Ċ") for each in MERGES]
    vocabulary = {text: index for index, text in enumerate([*alphabet, *merged])}
    pairs = [(text[:cut], text[cut:]) for text in merged for cut in range(1, len(text))]
    merges = [pair for pair in pairs if all(part in vocabulary for part in pair)]
    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("<eos>", special=True), AddedToken("<pad>", special=True)])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<eos>", pad_token="<pad>", padding_side="left"
    )
    fast.chat_template = "{{ messages[-1]['content'] }}|"
    return fast


def random_policy(tokenizer):
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(0)
    shape = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    ends = {"pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.eos_token_id}
    config = Qwen3Config(
        vocab_size=len(tokenizer) + 7, num_key_value_heads=2, head_dim=16, initializer_range=0.3, **shape, **ends
    )
    return Policy("random", Qwen3ForCausalLM(config).eval(), tokenizer)


def follow(forced, pieces, prefix=""):
    """The text of a completion whose free tokens are those of `pieces`; "|" stands before forced text.

    The scores of the free tokens must be untouched, and those of forced tokens leave one token.
    """
    tokenizer, free = forced.tokenizer, iter([token for piece in pieces for token in piece])
    processor, ids, text = forced.processor([prefix]), [0], ""
    scores = torch.arange(float(len(tokenizer)))[None]
    while True:
        processed = processor(torch.tensor([ids]), scores.clone())
        left = torch.isfinite(processed[0]).nonzero()[:, 0].tolist()
        if len(left) == 1:
            (token,) = left
            text += "|" if text[-1:] != "|" and not processor_was_forced(processor) else ""
        else:
            assert torch.equal(processed, scores)
            token = next(free, None)
        if token is None:
            return text
        ids.append(token)
        text += tokenizer.decode([token])


def processor_was_forced(processor):
    return len(processor.masks) > 1 and bool(processor.masks[-2])


def tokens(tokenizer, text):
    return tokenizer(text, add_special_tokens=False)["input_ids"]


@pytest.mark.parametrize(
    ("split", "expected"),
    [
        (["</answer", "_1>"], "|<answer_1>x</answer_1>|\n<answer_2>"),
        (["</", "an", "sw", "er", "_", "1", ">\n"], "|<answer_1>x</answer_1>\n|<answer_2>"),
        (["</answer", "_1", "><"], "|<answer_1>x</answer_1><|\n<answer_2>"),
        (["</answer", "_1", ">a"], "|<answer_1>x</answer_1>a|\n<answer_2>"),
        (["<", "</answer", "_1", ">"], "|<answer_1>x<</answer_1>|\n<answer_2>"),
        (["</answer", "</answer", "_1>"], "|<answer_1>x</answer</answer_1>|\n<answer_2>"),
        (["</answer", "_", " ", "1", ">"], "|<answer_1>x</answer_ 1>"),
        (["</answer", "_1", "1>"], "|<answer_1>x</answer_11>"),
        (["</answer", "_2", ">"], "|<answer_1>x</answer_2>|\n<answer_3>"),
        (["<answer", "_1>"], "|<answer_1>x<answer_1>"),
    ],
)
def test_a_closing_is_found_however_it_is_split_into_tokens(split, expected):
    tokenizer = merging_tokenizer()
    vocabulary = tokenizer.get_vocab()
    pieces = [[vocabulary[each.replace("\n", "Ċ").replace(" ", "Ġ")]] for each in ["x", *split]]
    assert follow(ForcedTags(tokenizer, THREE), pieces) == expected


def test_the_tokens_of_a_forced_tag_are_those_of_its_text_alone():
    tokenizer = merging_tokenizer()
    forced = ForcedTags(tokenizer, THREE)
    processor, ids = forced.processor(), [0]
    chosen = []
    for _ in tokens(tokenizer, "<answer_1>"):
        scores = processor(torch.tensor([ids]), torch.zeros(1, len(tokenizer)))
        ids.append(int(scores.argmax()))
        chosen.append(ids[-1])
    assert chosen == tokens(tokenizer, "<answer_1>")
    assert processor.mask().all()


def test_tokens_without_text_and_past_the_vocabulary_change_nothing():
    tokenizer = merging_tokenizer()
    vocabulary = tokenizer.get_vocab()
    close = [vocabulary["</answer"], vocabulary["<eos>"], len(tokenizer) + 3, vocabulary["_1>"]]
    forced = ForcedTags(tokenizer, THREE)
    processor, ids = forced.processor(["<answer_1>"]), [0]
    for token in close:
        assert not processor(torch.tensor([ids]), torch.zeros(1, len(tokenizer) + 7)).isinf().any()
        ids.append(token)
    assert processor(torch.tensor([ids]), torch.zeros(1, len(tokenizer) + 7)).isinf().any()


def test_every_answer_is_opened_and_the_last_closing_leads_to_nothing():
    tokenizer = merging_tokenizer()
    pieces = [tokens(tokenizer, text) for text in ("a</answer_1>", "b</answer_1></answer_2>", "c</answer_3>", "d")]
    text = follow(ForcedTags(tokenizer, THREE), pieces)
    assert text.replace("|", "") == (
        "<answer_1>a</answer_1>\n<answer_2>b</answer_1></answer_2>\n<answer_3>c</answer_3>d"
    )
    assert text.count("|") == 3


def test_closings_of_earlier_answers_lead_to_nothing():
    tokenizer = merging_tokenizer()
    pieces = [tokens(tokenizer, text) for text in ("a</answer_1>", "b</answer_2>", "</answer_1></answer_2>c", "d")]
    text = follow(ForcedTags(tokenizer, THREE), pieces)
    assert text.endswith("|\n<answer_3></answer_1></answer_2>cd")


def test_an_opening_that_holds_a_closing_does_not_close():
    tokenizer = merging_tokenizer()
    fences = (("```a\n", "```"), ("```b\n", "```b_"), ("```c\n", "```c_"))
    text = follow(ForcedTags(tokenizer, fences), [tokens(tokenizer, "x```"), tokens(tokenizer, "y")])
    assert text == "|```a\nx```|\n```b\ny"


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        ("<answer_1>UU", "UR</answer_1>|\n<answer_2>"),
        ("<answer_1>UU</answer_1>\n", "|<answer_2>UR</answer_1>"),
        ("<answer_1>UU</answer_1>", "|\n<answer_2>UR</answer_1>"),
        ("<answer_1>UU</answer_1>\n<answer_2>D", "UR</answer_1>"),
        ("<answer_1>UU</ans", "UR</answer_1>|\n<answer_2>"),
        ("<answer_3>UU</answer_3>\n", "UR</answer_1>"),
    ],
)
def test_a_completion_that_has_a_prefix_goes_on_from_it(prefix, expected):
    tokenizer = merging_tokenizer()
    assert follow(ForcedTags(tokenizer, THREE), [tokens(tokenizer, "UR</answer_1>")], prefix) == expected


def test_a_closing_that_the_prefix_begins_is_found():
    tokenizer = merging_tokenizer()
    text = follow(ForcedTags(tokenizer, THREE), [tokens(tokenizer, "wer_1>")], "<answer_1>UU</ans")
    assert text == "wer_1>|\n<answer_2>"


def test_a_tokenizer_that_does_not_keep_the_tags_is_refused():
    with pytest.raises(InputError, match="prefill cannot force '<answer_9>': this model's tokenizer reads it as"):
        ForcedTags(make_tokenizer(), (("<answer_9>", "</answer_9>"),))


def test_a_task_whose_single_answers_have_no_tag_is_refused():
    with pytest.raises(InputError, match="single answers of task toolrl have none"):
        tags_of(ToolrlTask, 1)
    assert tags_of(ToolrlTask, 2) == THREE[:2]
    assert tags_of(get("maze", format="tags-shot"), 3) == THREE
    with pytest.raises(ValueError, match="prefill needs tags that open and close answers, and format json has none"):
        tags_of(get("maze", format="json"), 3)
    assert tags_of(MazeTask, 1) == (("<answer>", "</answer>"),)


@pytest.mark.parametrize("loop", ["shared", "own"])
def test_rows_of_a_batch_are_forced_independently(loop, monkeypatch):
    """A random model whose tokens are biased towards closings: each row closes at other steps."""
    policy = random_policy(merging_tokenizer())
    vocabulary = policy.tokenizer.get_vocab()
    likely = [vocabulary[each] for each in ("</answer", "_1>", "_2", "_1", ">Ċ", ">", "a")]
    policy.model.lm_head = torch.nn.Linear(32, len(policy.tokenizer) + 7)
    with torch.no_grad():
        policy.model.lm_head.bias.fill_(0).scatter_(0, torch.tensor(likely), 6.0)
    monkeypatch.setattr(generate, "shares_prompts", lambda _: loop == "shared")
    prompts = [[{"role": "user", "content": text}] for text in ("one", "one", "and a longer one", "two") for _ in "ab"]
    forced = ForcedTags(policy.tokenizer, THREE)
    sampling = Sampling(temperature=1.0, max_new_tokens=120, seed=1)
    with torch.inference_mode():
        completions = complete(policy, prompts, sampling, forced=forced, quiet=True)
    assert all(each.text.startswith("<answer_1>") for each in completions)
    seconds = {each.text.find("<answer_2>") for each in completions}
    assert len(seconds) > 4
    for each in completions:
        for number in (1, 2):
            closed = re.search(rf"</answer_{number}>", each.text)
            if closed and f"<answer_{number}>" in each.text and len(each.text) > closed.end() + 12:
                assert re.match(rf".?\n?<answer_{number + 1}>", each.text[closed.end() :]), each.text


def test_both_loops_write_the_same_forced_text(monkeypatch):
    policy = load(embedded("maze", size=7))
    task = MazeTask(size=7, compact=True)
    prompts = [task.ask(problem, 3) for problem in task.problems("test", count=3) for _ in range(2)]
    forced = ForcedTags(policy.tokenizer, tags_of(task, 3))
    written = []
    for shared in (True, False):
        monkeypatch.setattr(generate, "shares_prompts", lambda _, shared=shared: shared)
        written.append(complete(policy, prompts, Sampling(max_new_tokens=90), forced=forced, quiet=True))
    assert written[0] == written[1]
    for each in written[0]:
        assert each.text.startswith("<answer_1>")
        assert all(parse(each.text, 3)), each.text
        assert each.tokens == len(policy.tokenizer(each.text, add_special_tokens=False)["input_ids"]) + 1  # the end


def test_without_forced_tags_nothing_is_sampled_differently():
    """Pinned as it was before tags could be forced."""
    policy = load(embedded("maze", size=7))
    task = MazeTask(size=7, compact=True)
    prompts = [task.ask(problem, 2) for problem in task.problems("test", count=2)]
    texts = [each.text for each in complete(policy, prompts, Sampling(temperature=1.0, max_new_tokens=60), quiet=True)]
    assert texts == [
        "<answer_1>UUUUUULDULLLLL</answer_1>\n<answer_2>ULLLLDLLUUUUUU</answer_2>",
        "<answer_1>DDDDDDRRRRRR</answer_1>\n<answer_2>DDDRRRURUURRDDDDDD</answer_2>",
    ]


def test_a_budget_that_the_tags_use_up_is_refused():
    policy = load(embedded("maze", size=7))
    forced = ForcedTags(policy.tokenizer, THREE)
    with pytest.raises(InputError, match="the tags alone take 5 tokens, and a completion has 5: raise max"):
        complete(policy, [[{"role": "user", "content": "#"}]], Sampling(max_new_tokens=5), forced=forced)


def test_the_mask_says_which_tokens_were_forced():
    policy = load(embedded("maze", size=7))
    task = MazeTask(size=7, compact=True)
    prompt = policy.tokenizer.apply_chat_template(task.ask(task.problems("test", count=1)[0], 3), tokenize=False)
    inputs = policy.tokenizer([prompt + ">"] * 4, return_tensors="pt", add_special_tokens=False)
    forcing = ForcedTags(policy.tokenizer, tags_of(task, 3)).processor()
    torch.manual_seed(0)
    output = policy.model.generate(
        inputs["input_ids"], attention_mask=inputs["attention_mask"], logits_processor=[forcing], do_sample=True,
        max_new_tokens=90, custom_generate=decode,
    )  # fmt: skip
    completions = output[:, inputs["input_ids"].shape[1] :]
    mask = forcing.mask()[:, : completions.shape[1]]
    for ids, row in zip(completions, mask, strict=True):
        assert policy.tokenizer.decode(ids[row]) == "<answer_1>\n<answer_2>\n<answer_3>"
