"""Hashes of what completions and scores follow from beside the settings: weights, prompts, problems, a task's file."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, is_dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from vpo.models.generate import render_prompts
from vpo.models.model_files import WEIGHTS
from vpo.models.policy import Policy
from vpo.models.vllm_model import VllmModel
from vpo.tasks import Message
from vpo.util.manifests import size_and_hash


def sampled_with(policy: Policy | VllmModel, prompts: Sequence[Sequence[Message]], *, thinking: bool) -> dict[str, str]:
    """Of a policy and its prompts, as the tokens that the policy reads."""
    texts = render_prompts(policy.tokenizer, prompts, None, thinking=thinking)
    tokens = policy.tokenizer(texts, add_special_tokens=False)["input_ids"]
    if isinstance(policy, VllmModel):
        precision, weights = policy.precision, _files_hash(policy.path)
    else:
        from vpo.rewards.scoring_model import weights_hash  # the package takes a tenth of a second to import

        precision, weights = str(policy.model.dtype).removeprefix("torch."), weights_hash(policy.model)
    return {"precision": precision, "weights": weights, "prompts": _hash(tokens)}


def requested_with(prompts: Sequence[Sequence[Message]]) -> dict[str, str]:
    """Of the prompts for an endpoint, whose model is not seen."""
    return {"prompts": _hash(prompts)}


def scored_with(task: str, problems: Sequence[Any]) -> dict[str, str]:
    """Of problems, and of the file that defines their task where it is one of the user's."""
    hashes = {"problems": problems_hash(problems)}
    if task.endswith(".py"):
        hashes["task_file"] = hashlib.sha256(Path(task).read_bytes()).hexdigest()
    return hashes


def problems_hash(problems: Sequence[Any]) -> str:
    """Of all that is known of some problems; of their ids where their fields are not plain data."""
    fields = [asdict(problem) if is_dataclass(problem) else problem.id for problem in problems]  # type: ignore[arg-type]
    try:
        return _hash(fields)
    except TypeError:
        return _hash([problem.id for problem in problems])


def _files_hash(path: str) -> str:
    """Of the files of weights in a model's folder; a name on the hub stands for itself."""
    files = sorted(file for pattern in WEIGHTS for file in Path(path).glob(pattern))
    return _hash({file.name: size_and_hash(file) for file in files} or path)


def _hash(data: Any) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True, default=_plain).encode()).hexdigest()


def _plain(value: Any) -> list[Any] | str:
    """A set as a list, since sets have another order in every process, and an exact number as text."""
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)
    if isinstance(value, Fraction | Decimal):
        return str(value)
    raise TypeError
