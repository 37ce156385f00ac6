"""What the models that score have in common: loading, a device of their own, batches of texts of like length."""

import hashlib
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from vpo.core.checks import as_integer
from vpo.util.batches import batches_by_length
from vpo.util.errors import InputError, one_line

PRECISIONS = ("float32", "bfloat16", "float16")
ROWS = 4096  # of weights that are hashed at a time: torch makes a copy of them in 64 bits
MOST_TOKENS = 2**20  # of a text, where neither model nor tokenizer says how many


class Scoring:
    """A transformers model with its tokenizer, ready to score."""

    def __init__(
        self,
        kind: str,
        path: str,
        *,
        device: str | None,
        precision: str | None,
        batch: int,
        max_tokens: int | None,
        trust_remote_code: bool = False,
    ) -> None:
        """Load a model.

        Args:
            kind: the class of transformers that loads it.
            path: a folder, or a name on the hub.
            device: such as "cuda:1" or "cpu"; by default a GPU where there is one.
            precision: of the weights; by default bfloat16 on a GPU, float32 on a CPU.
            batch: texts at once.
            max_tokens: of a text, what is beyond is cut off; by default what the model can take.
            trust_remote_code: whether code that comes with the model may run.
        """
        try:
            import torch
            import transformers
        except ImportError:
            raise InputError("models that score need torch and transformers: pip install 'vpo[train]'") from None
        transformers.utils.logging.disable_progress_bar()
        self.lock = threading.Lock()  # a tokenizer serves one thread at a time
        self.path, self.batch = path, as_integer(batch, "batch", 1)
        self.device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        self.precision = precision or ("bfloat16" if self.device.startswith("cuda") else "float32")
        if self.precision not in PRECISIONS:
            raise InputError(f"precision must be one of {', '.join(PRECISIONS)}, not {precision!r}")
        if path.startswith((".", "/", "~")) and not Path(path).is_dir():
            raise InputError(f"{path}: there is no such folder (of a model)")
        try:
            given: dict[str, Any] = {"trust_remote_code": trust_remote_code}
            self.tokenizer = transformers.AutoTokenizer.from_pretrained(path, **given)
            given |= {"dtype": getattr(torch, self.precision), "output_loading_info": True}
            model, loading = getattr(transformers, kind).from_pretrained(path, **given)
            self.model = model.eval().to(self.device)
        except Exception as error:  # of files, of devices, of weights that are cut off, of code that comes with a model
            reason = one_line(f"{type(error).__name__}: {error}")
            raise InputError(f"{path}: the model cannot be loaded ({reason})") from None
        # transformers fills in random numbers. A pooler is not used, and often not saved.
        if missing := sorted(name for name in loading["missing_keys"] if "pooler" not in name or kind != "AutoModel"):
            raise InputError(
                f"{path}: the model has no weights for {', '.join(missing[:3])}: it is no model that scores"
            )
        self._agree_on_padding()
        self.weights = weights_hash(self.model)
        longest = getattr(self.model.config, "max_position_embeddings", None) or self.tokenizer.model_max_length
        most = longest if max_tokens is None else as_integer(max_tokens, "max_tokens", 1)
        self.max_tokens = min(most, longest, self.tokenizer.model_max_length, MOST_TOKENS)

    def _agree_on_padding(self) -> None:
        """Fill up batches with what the model takes for padding: decoders score at the last token that is none."""
        config, tokenizer = self.model.config.get_text_config(), self.tokenizer
        own = getattr(config, "pad_token_id", None)
        if isinstance(own, int) and 0 <= own < len(tokenizer):
            tokenizer.pad_token = tokenizer.convert_ids_to_tokens(own)
            return
        if tokenizer.pad_token is None:
            # Not the end token where there is another: it may be the last of a text.
            tokenizer.pad_token = tokenizer.bos_token or tokenizer.eos_token
        if tokenizer.pad_token is None:
            raise InputError(f"{self.path}: the tokenizer has no token to fill up batches with (pad_token)")
        config.pad_token_id = tokenizer.pad_token_id

    def run(self, encoded: Mapping[str, Any], read: Callable[[Any, Any], Any]) -> list[Any]:
        """Return a row for each encoded text, in their order, as arrays of float64.

        Args:
            encoded: what the tokenizer made of all.
            read: from the outputs of the model and the attention mask of a batch to a row for each text.
        """
        import torch

        lengths = [len(ids) for ids in encoded["input_ids"]]
        rows: list[Any] = [None] * len(lengths)
        with torch.inference_mode():
            for places in batches_by_length(lengths, self.batch):
                chosen = {name: [values[place] for place in places] for name, values in encoded.items()}
                padded = self.tokenizer.pad(chosen, return_tensors="pt")
                outputs = self.model(**{name: value.to(self.device) for name, value in padded.items()})
                found = read(outputs, padded["attention_mask"].to(self.device)).double().cpu().numpy()
                for place, row in zip(places, found, strict=True):
                    rows[place] = row
        return rows

    def described(self) -> dict[str, Any]:
        """Return which model it is, and how it computes."""
        facts = {"model": self.path, "weights": self.weights}
        return {**facts, "precision": self.precision, "max_tokens": self.max_tokens}


def weights_hash(model: Any) -> str:
    """Return what two models share whose weights are the same, wherever they were loaded from.

    It is a hash of the sum of each row's bits, as whole numbers: exact on every device, and one pass over the weights,
    whose files may be too large to be hashed whole.
    """
    import torch

    whole = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    found = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        bits = value.detach().contiguous().view(whole[value.element_size()])
        found.update(f"{name} {tuple(value.shape)}".encode())
        parts = bits.flatten(0, -2).split(ROWS) if bits.dim() > 1 else [bits]
        for part in parts:
            sums = part.sum(dim=-1, dtype=torch.int64) if bits.dim() > 1 else part
            found.update(sums.cpu().numpy().tobytes())
    return found.hexdigest()
