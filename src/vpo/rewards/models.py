"""Sequence classifiers as reward models: an objective for a model, or for each of its heads."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from vpo.core.types import Floats
from vpo.rewards.calibration import Calibrated
from vpo.rewards.inference import Scoring
from vpo.rewards.rows import text_of
from vpo.rewards.scorer import Item, Scores
from vpo.util.errors import InputError, one_line

FORMS = ("auto", "chat", "pair", "answer")
SIGNS_A_TOKEN = 16  # on average at most, of texts that are too long: what is before them is not read anyway


class Classifier:
    """A Hugging Face sequence classifier; its numbers are calibrated to [0, 1].

    A tokenizer with a chat template is given prompt and answer as a chat, others as a pair of texts.
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
        """Load a model.

        Args:
            name: of the objective, where there is one.
            model: a folder, or a name on the hub.
            calibration: one for all heads, or one for each by its name, see `vpo.rewards.calibration`.
            heads: names of all heads in their order, or name → which head, from 0; by default the labels that the
                model itself has.
            form: what the model reads: a "chat", a "pair" of prompt and answer, the "answer" alone; "auto" is a chat
                where the tokenizer has a template, else a pair.
            output: of the model, in which the numbers are: "rewards" for ArmoRM.
            device: such as "cuda:1" or "cpu"; by default a GPU where there is one.
            precision: of the weights; by default bfloat16 on a GPU, float32 on a CPU.
            batch: answers at once.
            max_tokens: of prompt and answer. Beyond it the beginning is cut off, of a pair that of the longer one.
            trust_remote_code: whether code that comes with the model may run, as for ArmoRM.
        """
        if form not in FORMS:
            raise InputError(f"form must be one of {', '.join(FORMS)}, not {form!r}")
        kind = "AutoModelForSequenceClassification"
        self.scoring = Scoring(
            kind,
            model,
            device=device,
            precision=precision,
            batch=batch,
            max_tokens=max_tokens,
            trust_remote_code=trust_remote_code,
        )
        templated = self.scoring.tokenizer.chat_template is not None
        if form == "chat" and not templated:
            raise InputError(f"{model}: the tokenizer has no chat template: set form to pair")
        self.form = ("chat" if templated else "pair") if form == "auto" else form
        self.output = output
        self.scoring.tokenizer.truncation_side = "left"  # the end of the answer counts most
        self.heads = _heads(name, heads, self.scoring.model.config, self._count(model), model)
        self.names = tuple(self.heads)
        self.calibrated = Calibrated(self.names, calibration, self._raw)

    def score(self, items: Sequence[Item]) -> list[Scores]:
        """Return the calibrated numbers of the heads for each answer."""
        return self.calibrated(self._raw(items))

    def described(self) -> dict[str, Any]:
        """Return the model, its heads and their calibrations."""
        facts = {"kind": "classifier", **self.scoring.described(), "form": self.form, "heads": self.heads}
        return {**facts, "calibration": self.calibrated.data()}

    def counted(self) -> dict[str, tuple[float, int]]:
        """Return how much the calibrations cut off."""
        return self.calibrated.counted()

    def _count(self, model: str) -> int:
        """Return how many numbers the model gives for an answer, by asking for one: training is late to find out."""
        try:
            (row,) = self._outputs([Item("", [{"role": "user", "content": "Hello."}], "Hello.")])
        except Exception as error:  # whatever a model, its template or its own code raises
            reason = one_line(f"{type(error).__name__}: {error}")
            raise InputError(f"{model}: the model does not score a first answer ({reason})") from None
        if row.ndim != 1:
            raise InputError(f"{model}: {self.output} must hold a number for each head, not an array of {row.shape}")
        return len(row)

    def _raw(self, items: Sequence[Item]) -> Floats:
        found = self._outputs(items)
        return np.stack([row[list(self.heads.values())] for row in found]) if found else np.zeros((0, len(self.heads)))

    def _outputs(self, items: Sequence[Item]) -> list[Any]:
        with self.scoring.lock:
            encoded = self._encoded(items)
        return self.scoring.run(encoded, self._read)

    def _read(self, outputs: Any, mask: Any) -> Any:
        return getattr(outputs, self.output)

    def _encoded(self, items: Sequence[Item]) -> Mapping[str, Any]:
        """Return what the tokenizer makes of prompts and answers, all at once."""
        tokenizer, room = self.scoring.tokenizer, {"truncation": True, "max_length": self.scoring.max_tokens}
        answers = [item.answer for item in items]
        if self.form == "chat":
            chats = [[*item.messages, {"role": "assistant", "content": item.answer}] for item in items]
            encoded: Mapping[str, Any] = tokenizer.apply_chat_template(chats, tokenize=True, return_dict=True, **room)
        elif self.form == "pair":
            # Of a pair, tokenizers keep what they cut off, every part of one text beside every part of the other.
            most = SIGNS_A_TOKEN * self.scoring.max_tokens
            prompts = [text_of(tuple(item.messages)) for item in items]
            encoded = tokenizer([text[-most:] for text in prompts], [text[-most:] for text in answers], **room)
        else:
            encoded = tokenizer(answers, **room)
        return encoded


def _heads(name: str, heads: list[str] | dict[str, int] | None, config: Any, count: int, model: str) -> dict[str, int]:
    """Return which head each objective is."""
    if isinstance(heads, dict):
        for each, place in heads.items():
            if not isinstance(place, int) or not 0 <= place < count:
                raise InputError(f"head {each!r} must lie in 0..{count - 1}, the heads of {model}, not {place!r}")
        found = dict(heads)
    else:
        if heads is None:
            labels = [str(config.id2label.get(place, "LABEL_")) for place in range(count)]
            if count > 1 and any(label.startswith("LABEL_") for label in labels):
                raise InputError(f"heads must be given: {model} has {count} without names")
            heads = [name] if count == 1 else labels
        if len(heads) != count or len(set(heads)) != count:
            raise InputError(f"heads must be {count} different names, one for each head of {model}, not {heads}")
        found = {each: place for place, each in enumerate(heads)}
    if not found:
        raise InputError("heads must name 1 or more")
    return found
