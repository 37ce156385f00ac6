"""The folder that verl trains from: prompts in its Parquet schema, and the settings of their rewards."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vpo.core.targets import weights_for
from vpo.engines.prompts import DEPLOYED, task_rows
from vpo.engines.reward import RewardFunction, reward_function
from vpo.methods import Method, reference
from vpo.methods import get as get_method
from vpo.tasks import Task, find
from vpo.tasks import get as get_task
from vpo.util.errors import InputError
from vpo.util.files import check_new, new_folder, write_json
from vpo.util.row_files import write_rows

SETTINGS = "settings.json"
TRAIN, TEST = "train.parquet", "test.parquet"

# What the rows of a file must hold: columns, and fields of columns that are structs.
SCHEMA: Mapping[str, tuple[str, ...]] = {
    "prompt": (),
    "data_source": (),
    "reward_model": ("ground_truth",),
    "extra_info": ("split", "problem", DEPLOYED),
}


@dataclass(frozen=True, kw_only=True)
class Export:
    """The settings of the rewards of an exported folder.

    Attributes:
        task: a name, or a .py file.
        task_settings: of the task.
        method: one of `vpo.methods.get`, or one of your own from a module that verl's processes can import.
        target: w*, objective → weight; None for the task's own.
        group: G, rollouts per problem.
        seed: of random weightings.
        counts: how many problems of a split there are; all of one that is not named.
        stock: whether one of verl's own trainers trains, and not the plugin's.
    """

    task: str
    task_settings: dict[str, Any] = field(default_factory=dict)
    method: Method = field(default_factory=lambda: get_method("vpo"))
    target: dict[str, float] | None = None
    group: int = 8
    seed: int = 0
    counts: dict[str, int | None] = field(default_factory=dict)
    stock: bool = False

    def get_task(self) -> Task[Any]:
        """The task with its settings."""
        return get_task(self.task, **self.task_settings)

    def reward(self, split: str | None) -> RewardFunction:
        """The reward function for the problems of a split; without any problems where it is None."""
        task = self.get_task()
        problems = [] if split is None else task.problems(split, count=self.counts.get(split))
        target = None if self.target is None else weights_for(self.target, task.names).tolist()
        return reward_function(task, self.method, problems=problems, target=target, group=self.group, seed=self.seed)

    def to_json(self) -> dict[str, Any]:
        """The settings as `settings.json` holds them."""
        name, settings = reference(self.method)
        return {**vars(self), "method": name, "method_settings": settings}

    @classmethod
    def from_json(cls, settings: Mapping[str, Any]) -> "Export":
        """The settings as they were written."""
        own = dict(settings)
        return cls(method=get_method(own.pop("method"), **own.pop("method_settings")), **own)


def write_export(export: Export, folder: str | Path, *, train: str, test: str | None = None) -> dict[str, int]:
    """Write a new folder; how many rows each of its files has.

    Args:
        export: the settings.
        folder: a path that must not exist.
        train: the split to train on.
        test: the split that verl validates on; None for no validation.
    """
    path = Path(folder)
    check_new(path)
    files = {TRAIN: verl_rows(export, train, evaluation=False)}
    if test is not None:
        files[TEST] = verl_rows(export, test, evaluation=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    with new_folder(path) as temporary:
        for name, rows in files.items():
            write_rows(temporary / name, rows)
        write_json(temporary / SETTINGS, export.to_json())
    return {name: len(rows) for name, rows in files.items()}


def verl_rows(export: Export, split: str, *, evaluation: bool) -> list[dict[str, Any]]:
    """A row in verl's schema for each problem of a split. Structs have the same fields in every row."""
    reward, name = export.reward(split), find(export.task).name
    return [
        {
            "prompt": row["prompt"],
            "data_source": f"vpo/{name}",
            "ability": name,
            # verl needs a text here; the task has the ground truth of the problem.
            "reward_model": {"style": "rule", "ground_truth": row["problem"]},
            "extra_info": {"index": index, "split": split, "problem": row["problem"], DEPLOYED: evaluation},
        }
        for index, row in enumerate(task_rows(reward, evaluation=evaluation))
    ]


def read_export(folder: str | Path) -> Export:
    """The settings of an exported folder."""
    path = Path(folder) / SETTINGS
    try:
        return Export.from_json(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise InputError(f"{folder}: vpo export verl did not write this folder: it has no {SETTINGS}") from None
    except InputError:
        raise
    except (KeyError, ValueError, TypeError) as error:
        raise InputError(f"{path}: these are not the settings of an export ({error})") from None


def check_parquet(path: str | Path) -> None:
    """Refuse a file that is not Parquet, or lacks a column that verl or the reward function reads."""
    import pyarrow
    from pyarrow import parquet

    try:
        schema = parquet.read_schema(path)
    except FileNotFoundError:
        raise InputError(f"no such file of prompts: {path}") from None
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{path}: the file is not Parquet ({str(error).splitlines()[0]})") from None
    for column, inner in SCHEMA.items():
        if column not in schema.names:
            raise InputError(f"{path}: column {column} is missing; write the file with vpo export verl")
        kind = schema.field(column).type
        names = [each.name for each in kind] if pyarrow.types.is_struct(kind) else []
        for name in inner:
            if name not in names:
                raise InputError(f"{path}: field {name} of column {column} is missing; write it with vpo export verl")
    kind = schema.field("prompt").type
    if not (pyarrow.types.is_list(kind) and pyarrow.types.is_struct(kind.value_type)):
        raise InputError(f"{path}: column prompt must hold lists of chat messages, not {kind}")
