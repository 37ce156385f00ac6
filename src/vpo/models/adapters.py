"""LoRA adapters: small files beside a base model, which may be elsewhere by now; they are loaded merged into it.

An adapter that vpo trained has `vpo_base.json` beside it: where its base model was, and a hash of the base weights. So
the adapter can be copied to another machine, and another base model is refused.
"""

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vpo.models.locate import SHIPPED, absolute
from vpo.models.model_files import ADAPTER_CONFIG, check_adapter_files, has_tokenizer
from vpo.models.policy import Policy, load, load_tokenizer, not_loaded
from vpo.util.errors import InputError
from vpo.util.files import write_json
from vpo.util.packages import require
from vpo.util.stored import read_object

FILE = "vpo_base.json"


@dataclass(frozen=True)
class BaseModel:
    """The base model of an adapter, as it was when the adapter was trained.

    Attributes:
        model: its folder, or its name on the hub.
        embedded: its name among the policies that ship with the package; None for another model.
        precision: of its weights, "float32" or "bfloat16".
        weights: their hash.
        relative: its folder, from that of the adapter; None for a name on the hub.
    """

    model: str
    embedded: str | None
    precision: str
    weights: str
    relative: str | None = None

    @classmethod
    def of(cls, path: str, precision: str, weights: str) -> "BaseModel":
        """The record of a model at a path, of weights in a precision."""
        shipped = Path(path).name if Path(path).parent == SHIPPED else None
        return cls(absolute(path), shipped, precision, weights)

    def save(self, folder: Path, *, final: Path | None = None) -> None:
        """Write the record into the folder of an adapter, which may be moved to `final` afterwards."""
        start = Path(final or folder).absolute()
        relative = os.path.relpath(self.model, start) if Path(self.model).is_absolute() else None
        write_json(folder / FILE, {**asdict(self), "relative": relative})

    def find(self, folder: Path) -> str:
        """Where it is now: in the package, where it was, or where it was as seen from the adapter."""
        if self.embedded is not None:
            return str(SHIPPED / self.embedded)
        if not Path(self.model).is_absolute() or Path(self.model).is_dir():
            return self.model
        if self.relative is not None and (folder / self.relative).is_dir():
            return os.path.abspath(folder / self.relative)
        raise InputError(
            f"{folder}: the base model of this adapter is not at {self.model}: name its folder with --base of vpo eval"
        )


def read_base(folder: Path) -> BaseModel | None:
    """The record in the folder of an adapter; None for an adapter that vpo did not train."""
    path = folder / FILE
    if not path.is_file():
        return None
    fields: dict[str, Any] = {"model": str, "embedded": str | None, "precision": str, "weights": str}
    stored = read_object(path, {**fields, "relative": str | None})
    try:
        return BaseModel(**stored)
    except TypeError:
        raise InputError(f"{path}: this is not the record of a base model") from None


def load_adapter(folder: Path, *, precision: str, base: str | None = None) -> Policy:
    """Load an adapter, merged into its base model.

    Args:
        folder: of the adapter.
        precision: of the merged weights; they are merged in float32, as `vpo train` merges those of `RUN/model`.
        base: folder or name of the base model, where it is not where it was.
    """
    import torch

    peft = require("peft", "a LoRA adapter", extra="train")
    check_adapter_files(folder)
    record = read_base(folder)
    path = base or (record.find(folder) if record else _named_base(folder))
    policy = load(path, precision=record.precision if record else "float32")
    if record:
        _check_base(record, policy, folder)
    try:
        model = peft.PeftModel.from_pretrained(policy.model.float(), str(folder)).merge_and_unload()
    except Exception as error:  # of files, of Rust code that has no type for its errors, of layers that differ
        raise not_loaded(str(folder), error) from None
    tokenizer = load_tokenizer(str(folder)) if has_tokenizer(folder) else policy.tokenizer
    model.requires_grad_(True)  # peft froze the base model
    return Policy(str(folder), model.eval().to(getattr(torch, precision)), tokenizer)


def _named_base(folder: Path) -> str:
    """What another trainer wrote of the base model."""
    name = read_object(folder / ADAPTER_CONFIG).get("base_model_name_or_path")
    if not name:
        raise InputError(f"{folder / ADAPTER_CONFIG}: no base model is named: name it with --base of vpo eval")
    return str(name)


def _check_base(record: BaseModel, policy: Policy, folder: Path) -> None:
    from vpo.rewards.scoring_model import weights_hash  # the package takes a tenth of a second to import

    if weights_hash(policy.model) != record.weights:
        raise InputError(
            f"{policy.path} is not the base model of {folder}: its weights are not those of {record.model}, which the "
            "adapter was trained on"
        )
