"""Advantages by answer: on the tokens of the answer, in a real trainer."""

from random import Random

import numpy as np
import pytest

pytest.importorskip("trl")

from tests.engines.letters import own_reward
from tests.engines.tiny import save_tiny_model
from tests.engines.training import G, assert_advantages, by_token, run_trainer, swapped
from vpo import advantages
from vpo.engines.answer_tokens import TokenOwners, common_start
from vpo.engines.answer_trainer import AnswerTrainer
from vpo.engines.trl import reward_function
from vpo.tasks.answers import write
from vpo.tasks.eureqa import EureqaTask
from vpo.util.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return save_tiny_model(tmp_path_factory.mktemp("qwen3"))


def test_each_token_gets_the_advantage_of_its_answer(tiny, tmp_path):
    trainer, (batch,), (seen,) = run_trainer(tiny, own_reward("vpo_anchored", group=G), tmp_path, kind=AnswerTrainer)
    expected_PGM = advantages("vpo_anchored", batch.rewards)
    assert np.abs(expected_PGM[:, :, 0]).max() > 0
    assert np.abs(expected_PGM[:, :, 0] - expected_PGM[:, :, 1]).max() > 0.1
    tokenizer, expected = trainer.processing_class, batch.by_text(expected_PGM)
    assert_advantages(seen, by_token(expected, seen, tokenizer))
    with pytest.raises(AssertionError):
        assert_advantages(seen, by_token(swapped(expected), seen, tokenizer))
    with pytest.raises(AssertionError):
        assert_advantages(seen, by_token(batch.by_text(expected_PGM[:, :, [1, 0, 2]]), seen, tokenizer))


def test_a_stock_trainer_is_refused_before_its_first_update(tiny, tmp_path):
    with pytest.raises(
        InputError,
        match=r"vpo_anchored has an advantage for each answer: train with .*anchor=0.9",
    ):
        run_trainer(tiny, own_reward("vpo_anchored", group=G), tmp_path)


def test_other_methods_are_sent_to_the_stock_trainer(tiny, tmp_path):
    with pytest.raises(InputError, match="AnswerTrainer takes one reward function of vpo"):
        run_trainer(tiny, own_reward("vpo", group=G), tmp_path, kind=AnswerTrainer)


def test_unknown_rewards_take_no_part():
    """Of the first group one reward is not known; of the second only one is, which is compared with nothing."""

    def score(answer):
        return None if answer == "?" else [float(answer)]

    texts = [["1", "0.5"], ["?", "1"], ["0", "0.5"], ["0.5", "0.5"], ["1", "1"], ["?", "0"], ["0", "?"], ["?", "?"]]
    reward = reward_function(None, "vpo_anchored", score=score, objectives=["x"], answers=2, group=4)
    result = reward.score([{"prompt": "p"}] * 8, [write(each) for each in texts])
    assert [each is None for each in result.rewards] == [False, True, False, False, False, True, True, True]
    # Answer 1 has rewards 1, 0 and 1/2, answer 2 the set's best: 1, 1/2 and 1/2. Their mean is 3/4, 1/4, 1/2.
    np.testing.assert_allclose(result.advantages_BM[:4, 0], [1, 0, -1, 0], atol=1e-3)
    np.testing.assert_allclose(result.advantages_BM[:4, 1], [2 / 3**0.5, 0, -(3**-0.5), -(3**-0.5)], atol=1e-3)
    assert (result.advantages_BM[4:] == 0).all()
    assert [result.rewards[index] for index in (0, 2, 3)] == [1, 0.25, 0.5]


@pytest.fixture(scope="module")
def tokenizers(tiny):
    from transformers import AutoTokenizer

    return {"maze": load_tokenizer(), "characters": AutoTokenizer.from_pretrained(tiny), "bytes": byte_tokenizer()}


def load_tokenizer():
    from vpo.models.maze import make_tokenizer

    return make_tokenizer()


def byte_tokenizer():
    """Bytes, as the tokenizers of most language models have them: a letter such as é is two tokens."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({letter: index for index, letter in enumerate(letters)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer)


@pytest.mark.parametrize(("name", "texts"), [("maze", ["UURR", "DDLL", "U"]), ("bytes", ["ab", "é ✓", "c"])])
def test_tokens_belong_to_the_answer_whose_tag_closes_next(name, texts, tokenizers):
    tokenizer = tokenizers[name]
    completion = write(texts)
    ids = tokenizer(completion, add_special_tokens=False)["input_ids"]
    owners = TokenOwners(tokenizer).of(ids, 3)
    assert len(owners) == len(ids)
    assert owners == sorted(owners)
    for index in range(3):
        part = tokenizer.decode([token for token, owner in zip(ids, owners, strict=True) if owner == index])
        assert part.strip() == f"<answer_{index + 1}>{texts[index]}</answer_{index + 1}>"


def test_tokens_of_a_tokenizer_that_spaces_its_tokens(tokenizers):
    """Its tokens are longer together than one by one, so each is decoded after others."""
    tokenizer = tokenizers["characters"]
    ids = tokenizer("aaabbbccc", add_special_tokens=False)["input_ids"]

    def parts(text, answers):
        return [(text.index("b") - 1, 0), (text.index("c") - 1, 1), (len(text), 2)]

    assert TokenOwners(tokenizer, parts).of(ids, 3) == [0, 0, 0, 1, 1, 1, 2, 2, 2]


class Counting:
    """A tokenizer that counts the tokens that it decodes."""

    def __init__(self, tokenizer):
        self.tokenizer, self.decoded = tokenizer, 0

    def decode(self, ids, **options):
        self.decoded += len(ids)
        return self.tokenizer.decode(ids, **options)


@pytest.mark.parametrize("before", ["", "é", "\N{WAVING HAND SIGN} ✓"])
def test_so_many_openings_take_linear_time(before, tokenizers):
    decoded = []
    for count in (100, 200):
        tokenizer = Counting(tokenizers["bytes"])
        ids = tokenizer.tokenizer(f"{before}{'<answer_1>' * count}", add_special_tokens=False)["input_ids"]
        assert set(TokenOwners(tokenizer).of(ids, 3)) == {0}
        decoded.append(tokenizer.decoded)
    assert decoded[1] <= 2 * decoded[0]


def test_tokens_end_where_the_text_before_them_does(tokenizers):
    """Any bytes: half characters, wrong ones, and what the tokenizer writes for them."""
    random, tokenizer = Random("bytes"), tokenizers["bytes"]
    for _ in range(300):
        text = "".join(random.choices(["a", " ", "é", "✓", "\N{WAVING HAND SIGN}", "\ufffd"], k=10))
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        ids = [token for token in ids if random.random() < 0.9]
        whole = tokenizer.decode(ids)
        ends = [common_start(tokenizer.decode(ids[:count]), whole) for count in range(len(ids) + 1)]
        owners = TokenOwners(tokenizer, lambda text, answers: [(index, index) for index in range(len(text) + 1)])
        assert owners.of(ids, 99) == [end + 1 if end < ends[-1] else 98 for end in ends[:-1]]


def test_all_bytes_of_a_character_belong_to_one_answer():
    text = "A: Ada\nB: \u65e5\nA: Eve\nB: Bob"
    owners = TokenOwners(Bytes(), EureqaTask().parts).of(list(text.encode()), 2)
    assert bytes(byte for byte, owner in zip(text.encode(), owners, strict=True) if owner == 0).decode() == text[:11]


class Bytes:
    """A tokenizer of which each token is a byte."""

    def decode(self, ids, **options):
        return bytes(ids).decode(errors="replace")


def test_lengths_that_agree_by_chance_do_not_count():
    """Alone, the bytes of the emoji are three characters more, and the three words have no space in front."""
    from tokenizers import Tokenizer, decoders, models
    from transformers import PreTrainedTokenizerFast

    words = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "a", "|", "\u2581b"]
    vocabulary = {word: index for index, word in enumerate(words)}
    tokenizer = Tokenizer(models.BPE(vocabulary, [], byte_fallback=True, unk_token="<unk>"))
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokenizer, clean_up_tokenization_spaces=False)
    emoji = [f"<0x{byte:02X}>" for byte in "\N{PARTY POPPER}".encode()]
    ids = [vocabulary[word] for word in ["a", *emoji, "|", "\u2581b", "\u2581b", "\u2581b"]]
    text = tokenizer.decode(ids)
    assert sum(len(tokenizer.decode([token])) for token in ids) == len(text)
    owners = TokenOwners(tokenizer, lambda text, answers: [(text.index("|"), 0), (len(text), 1)])
    assert owners.of(ids, 2) == [0] * 5 + [1] * 4


def test_tokens_without_any_answer_belong_to_the_first_which_is_missing(tokenizers):
    ids = tokenizers["bytes"]("nothing", add_special_tokens=False)["input_ids"]
    assert TokenOwners(tokenizers["bytes"]).of(ids, 3) == [0] * len(ids)


def test_parts_beyond_the_text_are_cut(tokenizers):
    ids = tokenizers["bytes"]("ab", add_special_tokens=False)["input_ids"]
    assert TokenOwners(tokenizers["bytes"], lambda *_: [(1, 0), (2, 1), (9, 2)]).of(ids, 3) == [0, 1]
