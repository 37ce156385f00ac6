"""A transformers model that scores texts: loading, its device, batches of texts of similar length."""

import hashlib
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from vpo.core.checks import as_integer
from vpo.util.batches import batches_by_length
from vpo.util.errors import InputError, one_line
from vpo.util.hub import loading_options
from vpo.util.packages import check_installed
from vpo.util.progress import waiting

PRECISIONS = ("float32", "bfloat16", "float16")
HASH_ROWS = 4096  # rows of weights hashed at a time: torch copies them as int64
MAX_TOKENS = 2**20  # where neither model nor tokenizer has a limit


class ScoringModel:
    """A transformers model with its tokenizer.

    Attributes:
        lock: to hold while using the tokenizer, which serves one thread at a time.
        weights: hash of the weights as they were loaded.
    """

    def __init__(
        self,
        auto_class: str,
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
            auto_class: the class of transformers that loads it, such as "AutoModel".
            path: a folder, or a name on the hub.
            device: such as "cuda:1" or "cpu"; by default a GPU where there is one.
            precision: of the weights; by default bfloat16 on a GPU, float32 on a CPU.
            batch: texts per forward pass.
            max_tokens: longer texts are truncated; by default the limit of the model.
            trust_remote_code: whether code that comes with the model may run.
        """
        for package in ("torch", "transformers"):
            check_installed(package, "a scoring model", extra="train")
        import torch
        import transformers

        transformers.utils.logging.disable_progress_bar()
        self.lock = threading.Lock()
        self.path, self.batch = path, as_integer(batch, "batch", 1)
        self.device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        self.precision = precision or ("bfloat16" if self.device.startswith("cuda") else "float32")
        if self.precision not in PRECISIONS:
            raise InputError(f"precision must be one of {', '.join(PRECISIONS)}, not {precision!r}")
        if path.startswith((".", "/", "~")) and not Path(path).is_dir():
            raise InputError(f"no such folder: {path} (a model)")
        options: dict[str, Any] = {"trust_remote_code": trust_remote_code, **loading_options(path)}
        try:
            self.tokenizer = transformers.AutoTokenizer.from_pretrained(path, **options)
            options |= {"dtype": getattr(torch, self.precision), "output_loading_info": True}
            with waiting(f"loading {path}"):
                model, loading = getattr(transformers, auto_class).from_pretrained(path, **options)
                self.model = model.eval().to(self.device)
        except Exception as error:  # of files, devices, truncated weights, code that comes with a model
            reason = one_line(f"{type(error).__name__}: {error}")
            raise InputError(f"{path}: the model cannot be loaded ({reason})") from None
        # transformers initialises missing weights at random. AutoModel's pooler is not used, and often not saved.
        missing = sorted(name for name in loading["missing_keys"] if auto_class != "AutoModel" or "pooler" not in name)
        if missing:
            names = ", ".join(missing[:3])
            raise InputError(f"{path}: the model has no weights for {names}: it was not trained to score")
        self._set_pad_token()
        self.weights = weights_hash(self.model)
        longest = getattr(self.model.config, "max_position_embeddings", None) or self.tokenizer.model_max_length
        limit = longest if max_tokens is None else as_integer(max_tokens, "max_tokens", 1)
        self.max_tokens = min(limit, longest, self.tokenizer.model_max_length, MAX_TOKENS)

    def _set_pad_token(self) -> None:
        """Pad with the token that the model takes for padding: decoders score at the last token that is another."""
        config, tokenizer = self.model.config.get_text_config(), self.tokenizer
        pad_token_id = getattr(config, "pad_token_id", None)
        if isinstance(pad_token_id, int) and 0 <= pad_token_id < len(tokenizer):
            tokenizer.pad_token = tokenizer.convert_ids_to_tokens(pad_token_id)
            return
        if tokenizer.pad_token is None:
            # Rather not the end token: it may be the last of a text.
            tokenizer.pad_token = tokenizer.bos_token or tokenizer.eos_token
        if tokenizer.pad_token is None:
            raise InputError(f"{self.path}: the tokenizer has no pad_token")
        config.pad_token_id = tokenizer.pad_token_id

    def run(self, encoded: Mapping[str, Any], read: Callable[[Any, Any], Any]) -> list[Any]:
        """One float64 array per encoded text, in their order.

        Args:
            encoded: the tokenizer's encodings of all texts, without padding.
            read: from the model's outputs and the attention mask of a batch to a row per text.
        """
        import torch

        lengths = [len(ids) for ids in encoded["input_ids"]]
        rows: list[Any] = [None] * len(lengths)
        with torch.inference_mode():
            for indices in batches_by_length(lengths, self.batch):
                batch = {name: [values[index] for index in indices] for name, values in encoded.items()}
                padded = self.tokenizer.pad(batch, return_tensors="pt")
                outputs = self.model(**{name: value.to(self.device) for name, value in padded.items()})
                results = read(outputs, padded["attention_mask"].to(self.device)).double().cpu().numpy()
                for index, row in zip(indices, results, strict=True):
                    rows[index] = row
        return rows

    def described(self) -> dict[str, Any]:
        """What its numbers depend on, as JSON data."""
        return {
            "model": self.path,
            "weights": self.weights,
            "precision": self.precision,
            "max_tokens": self.max_tokens,
        }


def weights_hash(model: Any) -> str:
    """Hash of a model's weights, the same wherever they were loaded from and on every device.

    It hashes the sum of each row's bits as integers: exact, and one pass over the weights on their device.
    """
    import torch

    integers = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        bits = value.detach().contiguous().view(integers[value.element_size()])
        digest.update(f"{name} {tuple(value.shape)}".encode())
        parts = bits.flatten(0, -2).split(HASH_ROWS) if bits.dim() > 1 else [bits]
        for part in parts:
            sums = part.sum(dim=-1, dtype=torch.int64) if bits.dim() > 1 else part
            digest.update(sums.cpu().numpy().tobytes())
    return digest.hexdigest()
