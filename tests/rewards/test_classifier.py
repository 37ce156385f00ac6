"""A tiny classifier with three heads."""

import json
import shutil

import numpy as np
import pytest

pytest.importorskip("transformers")

from tests.engines.tiny import save_tiny_model
from tests.rewards.small import HEADS, sample, save_classifier
from vpo.rewards import Classifier, Limited, VectorReward
from vpo.rewards.scoring_model import HASH_ROWS, weights_hash

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages

WIDE = {"range": [-4, 4]}
ANSWERS = ["yes", "no, and here is a much longer reason for it", "", "a b c", "yes"]


@pytest.fixture(scope="module", params=["bert", "qwen3"])
def classifier(request, tmp_path_factory):
    return save_classifier(tmp_path_factory.mktemp(request.param), request.param)


def raw_by_hand(path, each, end=""):
    """What the model says of an answer, by plain transformers."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(path)
    if tokenizer.chat_template:
        text = f"user: {each.messages[0]['content']}\nassistant: {each.answer}\n{end}"
        encoded = tokenizer(text, return_tensors="pt")
    else:
        encoded = tokenizer([each.messages[0]["content"]], [each.answer], return_tensors="pt")  # of "" a pair too
    with torch.inference_mode():
        return AutoModelForSequenceClassification.from_pretrained(path).eval()(**encoded).logits[0].numpy()


def test_heads_are_objectives_and_batches_change_nothing(classifier):
    many = Classifier("quality", model=classifier, heads=HEADS, calibration=WIDE, batch=3, device="cpu")
    assert many.names == ("helpful", "honest", "harmless")
    samples = [sample(answer) for answer in ANSWERS]
    scores = np.asarray(many.score(samples))
    alone = np.asarray([many.score([each])[0] for each in samples])
    expected = np.clip((np.stack([raw_by_hand(classifier, each) for each in samples]) + 4) / 8, 0, 1)
    assert np.allclose(scores, alone, atol=1e-5)
    assert np.allclose(scores, expected, atol=1e-5)
    assert scores.std(axis=0).min() > 1e-3  # the answers differ in what they score


def test_heads_may_be_chosen_and_calibrated_one_by_one(classifier):
    chosen = Classifier(
        "quality",
        model=classifier,
        heads={"harmless": 2, "helpful": 0},
        calibration={"harmless": {"sigmoid": True}, "helpful": WIDE},
        device="cpu",
    )
    raw = raw_by_hand(classifier, sample("yes"))
    assert chosen.score([sample("yes")])[0] == pytest.approx(
        (1 / (1 + np.exp(-raw[2])), min(1, max(0, (raw[0] + 4) / 8))), abs=1e-5
    )


def test_quantiles_of_a_reference_set_are_described_and_read_back(tmp_path, classifier):
    path = tmp_path / "reference.jsonl"
    rows = [{"prompt": "Say something.", "answer": "word " * n} for n in range(1, 12)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    first = Classifier("q", model=classifier, heads=HEADS, calibration={"quantiles": str(path)}, device="cpu")
    scores = first.score([sample("word " * 3)])
    saved = json.loads(json.dumps(first.described()))["calibration"]
    assert len(saved["honest"]["quantiles"]) == 11
    again = Classifier("q", model=classifier, heads=HEADS, calibration=saved, device="cpu")
    assert again.score([sample("word " * 3)])[0] == pytest.approx(scores[0], abs=1e-5)
    levels = np.asarray(first.score([sample(row["answer"]) for row in rows]))
    assert np.allclose(np.sort(levels, axis=0), np.linspace(0, 1, 11)[:, None], atol=1e-3)


def test_labels_of_the_model_are_names_and_a_single_head_has_the_name_of_the_reward(tmp_path):
    labelled = save_classifier(tmp_path / "labelled", labels=["kind", "true"])
    assert Classifier("q", model=labelled, calibration=WIDE, device="cpu").names == ("kind", "true")
    single = save_classifier(tmp_path / "single", heads=1)
    assert Classifier("q", model=single, calibration=WIDE, device="cpu").names == ("q",)


def test_equal_weights_have_equal_hashes_wherever_they_are(tmp_path, classifier):
    import torch
    from transformers import AutoModelForSequenceClassification

    def known(path):
        return Classifier("q", model=str(path), heads=HEADS, calibration=WIDE, device="cpu").described()["weights"]

    shutil.copytree(classifier, tmp_path / "copy")
    assert known(tmp_path / "copy") == known(classifier)
    model = AutoModelForSequenceClassification.from_pretrained(classifier)
    head = getattr(model, "classifier", None) or model.score
    with torch.no_grad():
        head.weight[:] = head.weight[[1, 0, 2]].clone()  # heads that changed positions: the same numbers, the same size
    model.save_pretrained(tmp_path / "copy")
    assert known(tmp_path / "copy") != known(classifier)


def test_every_row_of_large_weights_counts():
    import torch

    large = torch.nn.Linear(2, 2 * HASH_ROWS + 1)
    before = weights_hash(large)
    assert weights_hash(large) == before
    for row in (0, HASH_ROWS, 2 * HASH_ROWS):
        with torch.no_grad():
            large.weight[row] += 1
        assert weights_hash(large) != before
        before = weights_hash(large)


def test_long_answers_are_truncated(classifier):
    short = Classifier("q", model=classifier, heads=HEADS, calibration=WIDE, device="cpu", max_tokens=20)
    assert len(short.score([sample("word " * 500)])[0]) == 3


def test_the_overflow_of_a_long_pair_takes_no_memory(tmp_path):
    long = sample("a" * 100_000 + "the end", prompt="q" * 100_000)
    pair = Classifier("q", model=save_classifier(tmp_path), heads=HEADS, calibration=WIDE, device="cpu")
    parts = pair._encode([long]).encodings[0].overflowing
    assert len(parts) < 5_000  # else a million, of 256 tokens each
    assert pair.score([long]) == pair.score([sample("a" * 1000 + "the end", prompt="q" * 1000)])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"heads": ["a", "b"]}, "heads must be 3 different names"),
        ({"heads": {"a": 3}}, "head 'a' must lie in 0..2"),
        ({}, "heads must be set: the 3 heads of"),
        ({"heads": HEADS, "form": "poem"}, "form must be one of"),
        ({"heads": HEADS, "precision": "int3"}, "precision must be one of"),
        ({"heads": HEADS, "device": "nowhere"}, "the model cannot be loaded"),
        ({"heads": HEADS, "model": "/nowhere"}, "no such folder"),
        ({"heads": HEADS, "max_tokens": 0}, "max_tokens must be 1 or more, not 0"),
        ({"heads": HEADS, "output": "rewards"}, "the model fails on a test answer .AttributeError"),
        ({"heads": HEADS, "output": "hidden_states"}, "the model fails on a test answer"),
    ],
)
def test_settings_that_do_not_match_the_model_are_refused(classifier, settings, message):
    with pytest.raises(ValueError, match=message):
        Classifier("q", **{"model": classifier, "calibration": WIDE, **settings})


def test_a_decoder_without_a_pad_token_scores_at_the_last_token_whatever_the_batch(tmp_path):
    from transformers import AutoConfig, AutoTokenizer

    path = save_classifier(tmp_path, "qwen3")
    config, tokenizer = AutoConfig.from_pretrained(path), AutoTokenizer.from_pretrained(path)
    config.pad_token_id = None
    tokenizer.pad_token, tokenizer.bos_token, tokenizer.eos_token = None, "<cls>", "<sep>"
    tokenizer.chat_template = "{% for each in messages %}{{ each['role'] }}: {{ each['content'] }}\n{% endfor %}<sep>"
    config.save_pretrained(path)
    tokenizer.save_pretrained(path)
    samples = [sample(answer) for answer in ANSWERS]
    scores = Classifier("q", model=path, heads=HEADS, calibration=WIDE, device="cpu").score(samples)
    expected = np.clip((np.stack([raw_by_hand(path, each, "<sep>") for each in samples]) + 4) / 8, 0, 1)
    assert np.allclose(scores, expected, atol=1e-5)


@pytest.mark.parametrize(("tokenizers", "models"), [("<pad>", 1), ("<pad>", -1), (None, 2)])
def test_a_decoder_scores_at_the_last_token_where_its_tokenizer_pads_otherwise(tmp_path, tokenizers, models):
    from transformers import AutoConfig, AutoTokenizer

    path = save_classifier(tmp_path, "qwen3")
    config, tokenizer = AutoConfig.from_pretrained(path), AutoTokenizer.from_pretrained(path)
    config.pad_token_id, tokenizer.pad_token, tokenizer.bos_token = models, tokenizers, "<cls>"
    config.save_pretrained(path)
    tokenizer.save_pretrained(path)
    samples = [sample(answer) for answer in ANSWERS]
    scores = Classifier("q", model=path, heads=HEADS, calibration=WIDE, device="cpu").score(samples)
    expected = np.clip((np.stack([raw_by_hand(path, each) for each in samples]) + 4) / 8, 0, 1)
    assert np.allclose(scores, expected, atol=1e-5)


def test_truncated_weights_are_refused(tmp_path):
    path = save_classifier(tmp_path)
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:5000])
    with pytest.raises(ValueError, match="the model cannot be loaded"):
        Classifier("q", model=path, heads=HEADS, calibration=WIDE, device="cpu")


def test_a_model_without_a_head_is_no_reward_model(tmp_path):
    """transformers would give it a random one."""
    save_tiny_model(tmp_path)
    with pytest.raises(ValueError, match=r"the model has no weights for score\.weight"):
        Classifier("q", model=str(tmp_path), heads=["a", "b"], calibration=WIDE, device="cpu")


def test_concurrent_calls_share_a_model(classifier):
    quality = Classifier("q", model=classifier, heads=HEADS, calibration=WIDE, device="cpu")
    samples = [sample(f"answer {n} " * (n % 7)) for n in range(64)]
    vector = VectorReward(Limited(quality, call_size=2), concurrent=8)
    assert np.allclose(vector.score(samples), quality.score(samples), atol=1e-5)
    assert vector.failures == {}
    assert vector.counted()["clipped/helpful"][1] == 128  # all that was scored, by either
