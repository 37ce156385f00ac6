"""Similarity to a reference, by a sentence-embedding model."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from vpo.core.types import Floats
from vpo.rewards.calibrator import Calibrator
from vpo.rewards.scorer import Sample, Scores
from vpo.rewards.scoring_model import ScoringModel
from vpo.util.errors import InputError

POOLINGS = ("mean", "cls")
CACHE_SIZE = 10_000  # embeddings of references, which come again in every epoch

# What sentence-transformers saves beside a model.
POOLING_CONFIG, MODULES, LENGTH_CONFIG = "1_Pooling/config.json", "modules.json", "sentence_bert_config.json"
KNOWN_MODULES = ("Transformer", "Pooling", "Normalize")
POOLING_NAMES = {"mean_tokens": "mean", "cls_token": "cls"}


class Similarity:
    """Cosine between the embeddings of an answer and of its reference, calibrated to [0, 1].

    Of several references the most similar counts. By default a cosine of 0 or less scores 0.
    """

    paths: ClassVar[tuple[str, ...]] = ("model",)

    def __init__(
        self,
        name: str,
        *,
        model: str,
        column: str = "reference",
        calibration: dict[str, Any] | None = None,
        pooling: str | None = None,
        device: str | None = None,
        precision: str | None = None,
        batch: int = 64,
        max_tokens: int | None = None,
    ) -> None:
        """Load the model.

        Args:
            name: of the objective.
            model: a folder, or a name on the hub: any encoder that transformers loads.
            column: of the data set, with the reference: a text or a list of texts.
            calibration: of the cosine; by default the range from 0 to 1.
            pooling: of the tokens' embeddings: "mean", or "cls" for the first token's; by default that of the model's
                own config (1_Pooling), else mean.
            device: such as "cuda:1" or "cpu"; by default a GPU where there is one.
            precision: of the weights; by default bfloat16 on a GPU, float32 on a CPU.
            batch: texts per forward pass.
            max_tokens: longer texts are truncated; by default the limit of the model.
        """
        self.model = ScoringModel(
            "AutoModel", model, device=device, precision=precision, batch=batch, max_tokens=max_tokens
        )
        if max_tokens is None and (limit := (_read_config(model, LENGTH_CONFIG) or {}).get("max_seq_length")):
            self.model.max_tokens = min(limit, self.model.max_tokens)
        self.pooling = pooling or _pooling(model)
        if self.pooling not in POOLINGS:
            raise InputError(f"pooling must be one of {', '.join(POOLINGS)}, not {self.pooling!r}")
        self.model.tokenizer.padding_side = "right"  # so that the first token of a row is the text's
        self.names: tuple[str, ...] = (name,)
        self.columns = (column,)
        self._cache: dict[str, Floats] = {}
        self.calibrator = Calibrator(self.names, calibration or {"range": [0.0, 1.0]}, self._raw)

    def score(self, samples: Sequence[Sample]) -> list[Scores]:
        """Scores of each answer."""
        return self.calibrator(self._raw(samples))

    def described(self) -> dict[str, Any]:
        """Model, pooling, column and calibration."""
        facts = {"kind": "similarity", **self.model.described(), "pooling": self.pooling}
        return {**facts, "column": self.columns[0], "calibration": self.calibrator.data()}

    def counted(self) -> dict[str, tuple[float, int]]:
        """How many scores were clipped: see `Calibrator.counted`."""
        return self.calibrator.counted()

    def embed(self, texts: Sequence[str]) -> list[Floats]:
        """Embedding of each text, of length 1."""
        different = list(dict.fromkeys(texts))
        with self.model.lock:
            encoded = self.model.tokenizer(different, truncation=True, max_length=self.model.max_tokens)
        rows = self.model.run(encoded, self._pool)
        embeddings = [row / max(float(np.linalg.norm(row)), 1e-12) for row in rows]
        by_text = dict(zip(different, embeddings, strict=True))
        return [by_text[text] for text in texts]

    def _raw(self, samples: Sequence[Sample]) -> Floats:
        references = [self._references(sample) for sample in samples]
        embeddings = self._embed_references([text for texts in references for text in texts])
        answers = self.embed([sample.answer for sample in samples])
        cosines = [
            max(float(answer @ embeddings[text]) for text in texts)
            for answer, texts in zip(answers, references, strict=True)
        ]
        return np.asarray(cosines, dtype=np.float64)[:, None]

    def _references(self, sample: Sample) -> list[str]:
        value = sample.row.get(self.columns[0])
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
            raise InputError(f"column {self.columns[0]!r} must be a text, or texts, in problem {sample.problem!r}")
        return texts

    def _embed_references(self, texts: Sequence[str]) -> dict[str, Floats]:
        """Embeddings by text, from the cache where they are there; the cache keeps the newest."""
        different = dict.fromkeys(texts)
        embeddings = self._cache  # a local name: a concurrent call may replace it
        if new := [text for text in different if text not in embeddings]:
            embeddings = {**embeddings, **dict(zip(new, self.embed(new), strict=True))}
            self._cache = dict(list(embeddings.items())[-max(CACHE_SIZE, len(different)) :])
        return embeddings

    def _pool(self, outputs: Any, mask: Any) -> Any:
        hidden_BTE = outputs.last_hidden_state
        if self.pooling == "cls":
            return hidden_BTE[:, 0]
        mask_BT1 = mask.unsqueeze(-1).to(hidden_BTE.dtype)
        return (hidden_BTE * mask_BT1).sum(dim=1) / mask_BT1.sum(dim=1).clamp(min=1)


def _pooling(model: str) -> str:
    """Pooling of the model's own config, mean where it has none; refuses modules that are not implemented here."""
    modules = [str(module["type"]).rpartition(".")[2] for module in _read_config(model, MODULES) or ()]
    if unknown := [module for module in modules if module not in KNOWN_MODULES]:
        raise InputError(f"{model}: the model has an unsupported module, {unknown[0]}: set pooling to ignore it")
    config = _read_config(model, POOLING_CONFIG) or {}
    prefix = "pooling_mode_"
    flags = [name.removeprefix(prefix) for name, on in config.items() if name.startswith(prefix) and on is True]
    named = [config["pooling_mode"]] if isinstance(config.get("pooling_mode"), str) else []
    return " and ".join(POOLING_NAMES.get(name, name) for name in flags or named or ["mean"])


def _read_config(model: str, file: str) -> Any:
    """A JSON file beside a model, in a folder or on the hub; None where there is none."""
    path = Path(model) / file
    if not Path(model).is_dir():
        from transformers.utils import cached_file

        cached = cached_file(model, file, _raise_exceptions_for_missing_entries=False)
        path = Path(cached) if cached else path
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
