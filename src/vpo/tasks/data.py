"""Where the data of a task comes from: a local file or folder, or a hub."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from vpo.errors import InputError
from vpo.row_files import FORMS, read_rows

T = TypeVar("T")


@dataclass(frozen=True)
class Published:
    """Where the data of a task is published, and in which files.

    Attributes:
        title: what it is called, for people.
        hub: its repository on the hub.
        files: for each part of the data, what its file names contain.
        hub_splits: for each part, the name of its split on the hub.
    """

    title: str
    hub: str
    files: Mapping[str, str]
    hub_splits: Mapping[str, str]


def read_data(task: str, published: Published, data: str | None, part: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the rows of a part of the data, each with its place, such as "dev.jsonl:17".

    Args:
        task: the name of the task, for messages.
        published: what to look for.
        data: a file, which is read whatever the part; a folder, searched for the part's files; "hub", or
            "hub:OWNER/NAME" for another repository than the published one.
        part: which part of the data, a key of `published.files`.
    """
    if data is None:
        raise InputError(
            f"task {task} needs data: get {published.title} (on the hub: {published.hub}) and give its file or "
            f"folder with --data PATH, or load it with --data hub"
        )
    if data == "hub" or data.startswith("hub:"):
        yield from _from_hub(data.partition(":")[2] or published.hub, published.hub_splits[part])
        return
    path = Path(data)
    if not path.exists():
        raise InputError(f"{data}: there is no such file or folder (data of task {task})")
    for file in [path] if path.is_file() else _files(path, published.files[part], task):
        for line, row in read_rows(file):
            if not isinstance(row, Mapping):
                raise InputError(f"{file}:{line}: a row must be an object")
            yield f"{file}:{line}", row


def _files(folder: Path, part: str, task: str) -> list[Path]:
    found = sorted(file for file in folder.rglob("*") if part in file.name and file.name.endswith(FORMS))
    if not found:
        raise InputError(
            f"{folder}: no file of task {task} is there: its name must contain {part!r} and end in {' or '.join(FORMS)}"
        )
    return found


def _from_hub(repository: str, split: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    try:
        from datasets import load_dataset
    except ImportError:
        raise InputError("the hub needs the package datasets: pip install 'vpo[train]'") from None
    try:
        rows = load_dataset(repository, split=split)
    except Exception as error:  # the client raises errors of many packages: no network, no such repository, no access
        raise InputError(
            f"hub:{repository}: split {split!r} cannot be loaded ({type(error).__name__}: {error})"
        ) from None
    for number, row in enumerate(rows, start=1):
        yield f"hub:{repository}:{number}", row


def shuffled(items: Sequence[T], seed: int) -> list[T]:
    """Return the items in the order that `datasets.Dataset.shuffle(seed)` gives, with which papers make splits."""
    return [items[place] for place in np.random.default_rng(seed).permutation(len(items))]


def field(row: Mapping[str, Any], name: str, kind: type | tuple[type, ...], place: str) -> Any:
    """Return a field of a row, refusing one that is absent or of another kind."""
    value = row.get(name)
    if not isinstance(value, kind):
        kinds: Sequence[type] = kind if isinstance(kind, tuple) else (kind,)
        wanted = " or ".join(each.__name__ for each in kinds)
        raise InputError(f"{place}: {name} must be {wanted}, not {type(value).__name__}")
    return value
