"""Similarity to a reference, by a sentence-embedding model."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from vpo.core.types import Floats
from vpo.rewards.calibration import Calibrated
from vpo.rewards.inference import Scoring
from vpo.rewards.scorer import Item, Scores
from vpo.util.errors import InputError

POOLINGS = ("mean", "cls")
KEPT = 10_000  # embeddings of references, which come again in every epoch


class Similarity:
    """The cosine between the embeddings of an answer and of its reference, calibrated to [0, 1].

    Of several references the most similar counts. Without another calibration, a cosine of 0 or less scores 0.
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
        """Load a model.

        Args:
            name: of the objective.
            model: a folder, or a name on the hub: any encoder that transformers loads.
            column: of the data set that holds the reference, a text or several.
            calibration: of the cosine; by default the range from 0 to 1.
            pooling: of the tokens' embeddings: "mean", or the first token's, "cls"; by default what the model's own
                settings say (1_Pooling), else mean.
            device: such as "cuda:1" or "cpu"; by default a GPU where there is one.
            precision: of the weights; by default bfloat16 on a GPU, float32 on a CPU.
            batch: texts at once.
            max_tokens: of a text, what is beyond is cut off; by default what the model was made for.
        """
        self.scoring = Scoring(
            "AutoModel", model, device=device, precision=precision, batch=batch, max_tokens=max_tokens
        )
        if max_tokens is None and (limit := (_read(model, LENGTH) or {}).get("max_seq_length")):
            self.scoring.max_tokens = min(limit, self.scoring.max_tokens)
        self.pooling = pooling or _pooling(model)
        if self.pooling not in POOLINGS:
            raise InputError(f"pooling must be one of {', '.join(POOLINGS)}, not {self.pooling!r}")
        self.scoring.tokenizer.padding_side = "right"  # so that the first token is the first of the text
        self.names: tuple[str, ...] = (name,)
        self.columns = (column,)
        self.kept: dict[str, Floats] = {}
        self.calibrated = Calibrated(self.names, calibration or {"range": [0.0, 1.0]}, self._raw)

    def score(self, items: Sequence[Item]) -> list[Scores]:
        """Return how similar each answer is to its reference."""
        return self.calibrated(self._raw(items))

    def described(self) -> dict[str, Any]:
        """Return the model, the column, and the calibration of the cosine."""
        facts = {"kind": "similarity", **self.scoring.described(), "pooling": self.pooling}
        return {**facts, "column": self.columns[0], "calibration": self.calibrated.data()}

    def counted(self) -> dict[str, tuple[float, int]]:
        """Return how much the calibration cut off."""
        return self.calibrated.counted()

    def _raw(self, items: Sequence[Item]) -> Floats:
        references = [self._references(item) for item in items]
        wanted = dict.fromkeys(text for texts in references for text in texts)
        known = self.kept  # another call may change which these are
        if new := [text for text in wanted if text not in known]:
            known = {**known, **dict(zip(new, self.embedded(new), strict=True))}
            self.kept = dict(list(known.items())[-max(KEPT, len(wanted)) :])
        answers = self.embedded([item.answer for item in items])
        cosines = [
            max(float(answer @ known[text]) for text in texts)
            for answer, texts in zip(answers, references, strict=True)
        ]
        return np.asarray(cosines, dtype=np.float64)[:, None]

    def _references(self, item: Item) -> list[str]:
        value = item.row.get(self.columns[0])
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
            raise InputError(f"column {self.columns[0]!r} must be a text, or texts, in problem {item.problem!r}")
        return texts

    def embedded(self, texts: Sequence[str]) -> list[Floats]:
        """Return the embedding of each text, of length 1."""
        tokenizer, room = self.scoring.tokenizer, {"truncation": True, "max_length": self.scoring.max_tokens}
        different = list(dict.fromkeys(texts))
        with self.scoring.lock:
            encoded = tokenizer(different, **room)
        rows = self.scoring.run(encoded, self._pooled)
        found = {text: row / max(float(np.linalg.norm(row)), 1e-12) for text, row in zip(different, rows, strict=True)}
        return [found[text] for text in texts]

    def _pooled(self, outputs: Any, mask: Any) -> Any:
        hidden_BTE = outputs.last_hidden_state
        if self.pooling == "cls":
            return hidden_BTE[:, 0]
        mask_BT1 = mask.unsqueeze(-1).to(hidden_BTE.dtype)
        return (hidden_BTE * mask_BT1).sum(dim=1) / mask_BT1.sum(dim=1).clamp(min=1)


# What sentence-transformers keeps beside a model: its pooling, and the modules that follow each other.
POOLING, MODULES = "1_Pooling/config.json", "modules.json"
LENGTH = "sentence_bert_config.json"
KNOWN_MODULES = ("Transformer", "Pooling", "Normalize")
POOLING_NAMES = {"mean_tokens": "mean", "cls_token": "cls"}


def _pooling(model: str) -> str:
    """Return the pooling that a model's own settings say, mean where they say none; refuse what is not done here."""
    kinds = [str(module["type"]).rpartition(".")[2] for module in _read(model, MODULES) or ()]
    if unknown := [kind for kind in kinds if kind not in KNOWN_MODULES]:
        raise InputError(
            f"{model}: the model has a module {unknown[0]}, which is not known here: set pooling to leave it out"
        )
    settings = _read(model, POOLING) or {}
    start = "pooling_mode_"
    marked = [name.removeprefix(start) for name, on in settings.items() if name.startswith(start) and on is True]
    named = [settings["pooling_mode"]] if isinstance(settings.get("pooling_mode"), str) else []
    return " and ".join(POOLING_NAMES.get(name, name) for name in marked or named or ["mean"])


def _read(model: str, file: str) -> Any:
    """Return what a JSON file beside a model says, None where there is none."""
    path = Path(model) / file
    if not Path(model).is_dir():
        from transformers.utils import cached_file

        found = cached_file(model, file, _raise_exceptions_for_missing_entries=False)
        path = Path(found) if found else path
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
