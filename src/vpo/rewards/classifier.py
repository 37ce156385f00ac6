"""Sequence classifiers as reward models: an objective per head."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from vpo.core.types import Floats
from vpo.rewards.calibrator import Calibrator
from vpo.rewards.rows import plain_text
from vpo.rewards.scorer import Sample, Scores
from vpo.rewards.scoring_model import ScoringModel
from vpo.util.errors import InputError, one_line

FORMS = ("auto", "chat", "pair", "answer")
CHARACTERS_PER_TOKEN = 16  # an upper bound of the average: longer texts lose their beginning before they are tokenized


class Classifier:
    """A Hugging Face sequence classifier whose outputs are calibrated to [0, 1].

    A tokenizer with a chat template gets prompt and answer as a chat, others get them as a pair of texts.
    """

    paths: ClassVar[tuple[str, ...]] = ("model",)

    def __init__(
        self,
        name: str,
        *,
        model: str,
        calibration: dict[str, Any],
        heads: list[str] | dict[str, int] | None = None,
        form: str = "auto",
        output: str = "logits",
        device: str | None = None,
        precision: str | None = None,
        batch: int = 32,
        max_tokens: int | None = None,
        trust_remote_code: bool = False,
    ) -> None:
        """Load the model.

        Args:
            name: of the objective, where there is one.
            model: a folder, or a name on the hub.
            calibration: one for all heads, or one per head by name, see `vpo.rewards.calibration`.
            heads: names of all heads in their order, or name → index from 0; by default the labels of the model's
                config.
            form: of the input: a "chat", a "pair" of prompt and answer, the "answer" alone; "auto" is a chat where the
                tokenizer has a template, else a pair.
            output: field of the model's output that holds the numbers; "rewards" for ArmoRM.
            device: such as "cuda:1" or "cpu"; by default a GPU where there is one.
            precision: of the weights; by default bfloat16 on a GPU, float32 on a CPU.
            batch: answers per forward pass.
            max_tokens: of prompt and answer. Longer ones lose their beginning; of a pair, the longer text does.
            trust_remote_code: whether code that comes with the model may run, as ArmoRM needs.
        """
        if form not in FORMS:
            raise InputError(f"form must be one of {', '.join(FORMS)}, not {form!r}")
        self.model = ScoringModel(
            "AutoModelForSequenceClassification",
            model,
            device=device,
            precision=precision,
            batch=batch,
            max_tokens=max_tokens,
            trust_remote_code=trust_remote_code,
        )
        has_template = self.model.tokenizer.chat_template is not None
        if form == "chat" and not has_template:
            raise InputError(f"{model}: the tokenizer has no chat template: set form to pair")
        self.form = ("chat" if has_template else "pair") if form == "auto" else form
        self.output = output
        self.model.tokenizer.truncation_side = "left"  # the end of the answer counts most
        self.heads = _parse_heads(name, heads, self.model.model.config, self._head_count(model), model)
        self.names = tuple(self.heads)
        self.calibrator = Calibrator(self.names, calibration, self._raw)

    def score(self, samples: Sequence[Sample]) -> list[Scores]:
        """Scores of each answer."""
        return self.calibrator(self._raw(samples))

    def described(self) -> dict[str, Any]:
        """Model, form, heads and calibrations."""
        facts = {"kind": "classifier", **self.model.described(), "form": self.form, "heads": self.heads}
        return {**facts, "calibration": self.calibrator.data()}

    def counted(self) -> dict[str, tuple[float, int]]:
        """How many scores were clipped: see `Calibrator.counted`."""
        return self.calibrator.counted()

    def _head_count(self, model: str) -> int:
        """How many numbers the model has for an answer. Scores one, so that what fails does so before training."""
        try:
            (row,) = self._outputs([Sample("", [{"role": "user", "content": "Hello."}], "Hello.")])
        except Exception as error:  # whatever a model, its template or its own code raises
            reason = one_line(f"{type(error).__name__}: {error}")
            raise InputError(f"{model}: the model fails on a test answer ({reason})") from None
        if row.ndim != 1:
            raise InputError(f"{model}: {self.output} must hold a number for each head, not an array of {row.shape}")
        return len(row)

    def _raw(self, samples: Sequence[Sample]) -> Floats:
        rows = self._outputs(samples)
        return np.stack([row[list(self.heads.values())] for row in rows]) if rows else np.zeros((0, len(self.heads)))

    def _outputs(self, samples: Sequence[Sample]) -> list[Any]:
        with self.model.lock:
            encoded = self._encode(samples)
        return self.model.run(encoded, lambda outputs, mask: getattr(outputs, self.output))

    def _encode(self, samples: Sequence[Sample]) -> Mapping[str, Any]:
        tokenizer, max_tokens = self.model.tokenizer, self.model.max_tokens
        options = {"truncation": True, "max_length": max_tokens}
        answers = [sample.answer for sample in samples]
        if self.form == "chat":
            chats = [[*sample.messages, {"role": "assistant", "content": sample.answer}] for sample in samples]
            encoded: Mapping[str, Any] = tokenizer.apply_chat_template(
                chats, tokenize=True, return_dict=True, **options
            )
        elif self.form == "pair":
            # Of a truncated pair, tokenizers keep the overflow of one text combined with each part of the other.
            most = CHARACTERS_PER_TOKEN * max_tokens
            prompts = [plain_text(sample.messages) for sample in samples]
            encoded = tokenizer([text[-most:] for text in prompts], [text[-most:] for text in answers], **options)
        else:
            encoded = tokenizer(answers, **options)
        return encoded


def _parse_heads(
    name: str, heads: list[str] | dict[str, int] | None, config: Any, count: int, model: str
) -> dict[str, int]:
    """Index of the head of each objective.

    Args:
        name: of the objective of a model with one head.
        heads: setting of `Classifier`.
        config: of the model; its labels are the default.
        count: of the model's heads.
        model: for errors.
    """
    if isinstance(heads, dict):
        for head, index in heads.items():
            if not isinstance(index, int) or not 0 <= index < count:
                raise InputError(f"head {head!r} must lie in 0..{count - 1}, the heads of {model}, not {index!r}")
        if not heads:
            raise InputError("heads must name 1 or more heads, not 0")
        return dict(heads)
    if heads is None:
        heads = [name] if count == 1 else _labels(config, count, model)
    if len(heads) != count or len(set(heads)) != count:
        raise InputError(f"heads must be {count} different names, one for each head of {model}, not {heads}")
    return {head: index for index, head in enumerate(heads)}


def _labels(config: Any, count: int, model: str) -> list[str]:
    labels = [str(config.id2label.get(index, "LABEL_")) for index in range(count)]
    if any(label.startswith("LABEL_") for label in labels):
        raise InputError(f"heads must be set: the {count} heads of {model} have no names")
    return labels
