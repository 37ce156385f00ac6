"""Advantages by answer: on the tokens of the answer, in a real trainer."""

import numpy as np
import pytest

pytest.importorskip("trl")

from tests.engines.letters import own_reward
from tests.engines.test_trl import G, P, run_trainer
from tests.engines.tiny import save_tiny_model
from vpo import advantages
from vpo.engines.answer_tokens import answer_advantages, answer_of_tokens
from vpo.engines.answer_trainer import AnswerTrainer
from vpo.tasks.answers import write
from vpo.util.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return save_tiny_model(tmp_path_factory.mktemp("qwen3"))


def test_each_token_gets_the_advantage_of_its_answer(tiny, tmp_path):
    reward = own_reward("vpo_anchored", group=G)
    calls = []
    inner = reward._deliver
    reward._deliver = lambda rows, parsed, scored, step: calls.append(scored) or inner(rows, parsed, scored, step)
    _, (seen_BT,) = run_trainer(tiny, reward, tmp_path, kind=AnswerTrainer)
    rewards_PGMD = np.stack(calls[0]).reshape(P, G, -1, 3)
    expected_BM = advantages("vpo_anchored", rewards_PGMD).reshape(P * G, -1)
    assert np.abs(expected_BM[:, 0]).max() > 0
    assert np.abs(expected_BM[:, 0] - expected_BM[:, 1]).max() > 0.1
    # A completion is cut into three answers, and TRL shuffles the completions of a batch.
    first = sorted(float(row[0]) for row in seen_BT)
    np.testing.assert_allclose(first, np.sort(expected_BM[:, 0]), atol=2e-5)
    last = sorted(float(row[row != 0][-1]) if (row != 0).any() else 0.0 for row in seen_BT)
    np.testing.assert_allclose(last, np.sort(expected_BM[:, 2]), atol=2e-5)
    for row in seen_BT:
        assert len({round(float(value), 4) for value in row} - {0.0}) <= 2


def test_a_stock_trainer_is_refused_before_its_first_update(tiny, tmp_path):
    with pytest.raises(InputError, match="vpo_anchored pays each answer by itself: train with"):
        run_trainer(tiny, own_reward("vpo_anchored", group=G), tmp_path)


def test_other_methods_are_sent_to_the_stock_trainer(tiny, tmp_path):
    with pytest.raises(InputError, match="AnswerTrainer takes one reward function of vpo"):
        run_trainer(tiny, own_reward("vpo", group=G), tmp_path, kind=AnswerTrainer)


def test_unknown_rewards_take_no_part():
    unknown = [np.nan, np.nan]
    earned = np.array([[1.0, 0.5], unknown, [0.0, 0.5], [0.5, 0.5], [1.0, 1.0], unknown, unknown, unknown])
    found = answer_advantages(earned, 4)
    np.testing.assert_allclose(found[:4, 0], [1, 0, -1, 0], atol=1e-3)
    assert (found[:4, 1] == 0).all()
    assert (found[4:] == 0).all()


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

    signs = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({sign: place for place, sign in enumerate(signs)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer)


@pytest.mark.parametrize(("name", "texts"), [("maze", ["UURR", "DDLL", "U"]), ("bytes", ["ab", "é ✓", "c"])])
def test_tokens_belong_to_the_answer_whose_tag_closes_next(name, texts, tokenizers):
    tokenizer = tokenizers[name]
    completion = write(texts)
    ids = tokenizer(completion, add_special_tokens=False)["input_ids"]
    owners = answer_of_tokens(tokenizer, ids, 3, {})
    assert len(owners) == len(ids)
    assert owners == sorted(owners)
    for place in range(3):
        part = tokenizer.decode([token for token, owner in zip(ids, owners, strict=True) if owner == place])
        assert part.strip() == f"<answer_{place + 1}>{texts[place]}</answer_{place + 1}>"


def test_tokens_of_a_tokenizer_that_spaces_its_tokens(tokenizers):
    """Its tokens are longer together than one by one, so prefixes are decoded."""
    tokenizer = tokenizers["characters"]
    ids = tokenizer("aaabbbccc", add_special_tokens=False)["input_ids"]

    def parts(text, answers):
        return [(text.index("b") - 1, 0), (text.index("c") - 1, 1), (len(text), 2)]

    assert answer_of_tokens(tokenizer, ids, 3, {}, parts) == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_tokens_without_any_answer_belong_to_the_first_which_is_missing(tokenizers):
    ids = tokenizers["bytes"]("nothing", add_special_tokens=False)["input_ids"]
    assert answer_of_tokens(tokenizers["bytes"], ids, 3, {}) == [0] * len(ids)


def test_parts_beyond_the_text_are_cut(tokenizers):
    ids = tokenizers["bytes"]("ab", add_special_tokens=False)["input_ids"]
    assert answer_of_tokens(tokenizers["bytes"], ids, 3, {}, lambda *_: [(1, 0), (2, 1), (9, 2)]) == [0, 1]
