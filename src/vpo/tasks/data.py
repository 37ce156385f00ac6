"""Reads the data of a task from a local file or folder, or from the Hugging Face hub."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from vpo.tasks.task import P
from vpo.util.errors import InputError
from vpo.util.packages import require
from vpo.util.row_files import SUFFIXES, read_rows

T = TypeVar("T")


@dataclass(frozen=True)
class Published:
    """Where the data of a task is published, and in which files.

    Attributes:
        title: its name, for messages.
        hub: its repository on the hub.
        files: for each part of the data, words that the names of its files contain, in order of preference.
        hub_splits: for each part, the name of its split on the hub.
    """

    title: str
    hub: str
    files: Mapping[str, tuple[str, ...]]
    hub_splits: Mapping[str, str]


def read_data(task: str, published: Published, data: str | None, part: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the rows of a part of the data, each with its location, such as "dev.jsonl:17".

    Args:
        task: the name of the task, for messages.
        published: where the data is published.
        data: a file, refused if its name is that of another part; a folder, searched for the part's files; "hub"; or
            "hub:OWNER/NAME" for another repository, then ":CONFIG" for one of its configurations.
        part: which part of the data, a key of `published.files`.
    """
    if data is None:
        raise InputError(
            f"task {task} needs data: download {published.title} (on the hub: {published.hub}) and pass its file or "
            f"folder with --data PATH, or load it with --data hub"
        )
    if data == "hub" or data.startswith("hub:"):
        yield from _from_hub(data.partition(":")[2] or published.hub, published.hub_splits[part])
        return
    path = Path(data)
    if not path.exists():
        raise InputError(f"no such file or folder: {data} (data of task {task})")
    for file in [_of_part(path, published, part)] if path.is_file() else _files(path, published, part, task):
        for line, row in read_rows(file):
            if not isinstance(row, Mapping):
                raise InputError(f"{file}:{line}: a row must be an object")
            yield f"{file}:{line}", row


def _of_part(file: Path, published: Published, part: str) -> Path:
    """Refuse a file whose name is that of another part of the data."""
    if not any(_named(file, word) for word in published.files[part]):
        for other, words in published.files.items():
            if any(_named(file, word) for word in words):
                raise InputError(f"{file}: by its name this is the part {other!r}, not {part!r}")
    return file


def _named(file: Path, word: str) -> bool:
    """Whether a file's name contains a word, not as part of a longer one: "contests" does not contain "test"."""
    return re.search(rf"(?<![a-z]){word}(?![a-z])" if word.isalpha() else re.escape(word), file.name) is not None


def _files(folder: Path, published: Published, part: str, task: str) -> list[Path]:
    everything = sorted(file for file in folder.rglob("*") if file.name.endswith(SUFFIXES))
    for word in published.files[part]:
        if files := [file for file in everything if _named(file, word)]:
            return files
    # Seal-Tools keeps its tools in the same folder.
    data = [file for file in everything if not file.name.startswith("tools.")]
    if len(data) == 1:
        return [_of_part(data[0], published, part)]
    words = " or ".join(map(repr, published.files[part]))
    raise InputError(
        f"{folder}: no file of task {task}: its name must contain {words} and end in {' or '.join(SUFFIXES)}"
    )


def _from_hub(source: str, split: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    repository, _, configuration = source.partition(":")
    datasets = require("datasets", "the hub", extra="train")
    try:
        rows = datasets.load_dataset(repository, configuration or None, split=split)
    except Exception as error:  # the client raises errors of many packages: no network, no such repository, no access
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise InputError(f"hub:{source}: split {split!r} cannot be loaded ({reason})") from None
    for number, row in enumerate(rows, start=1):
        yield f"hub:{source}:{number}", row


def shuffled(items: Sequence[T], seed: int) -> list[T]:
    """The items in the order of `datasets.Dataset.shuffle(seed)`, with which papers make splits."""
    return [items[index] for index in np.random.default_rng(seed).permutation(len(items))]


def field(row: Mapping[str, Any], name: str, kind: type | tuple[type, ...], where: str) -> Any:
    """A field of a row. One that is absent or of another type is refused; `where` begins the message."""
    if name not in row:
        raise InputError(
            f"{where}: the field {name!r} is missing; the row has {', '.join(map(str, row)) or 'no fields'}"
        )
    value = row[name]
    if not isinstance(value, kind):
        kinds: Sequence[type] = kind if isinstance(kind, tuple) else (kind,)
        expected = " or ".join(each.__name__ for each in kinds)
        raise InputError(f"{where}: {name} must be {expected}, not {type(value).__name__}")
    return value


def items(row: Mapping[str, Any], name: str, kind: type | tuple[type, ...], where: str) -> list[Any]:
    """A list of a row. One that is absent or has items of another type is refused."""
    values = field(row, name, list, where)
    for number, item in enumerate(values):
        field({name: item}, name, kind, f"{where}: item {number}")
    return list(values)


def unique(problems: Sequence[P], task: str) -> Sequence[P]:
    """The problems themselves, refused where there are none or where two have the same id."""
    if not problems:
        raise InputError(f"the data of task {task} has no rows for this split")
    seen: set[str] = set()
    for problem in problems:
        if problem.id in seen:
            raise InputError(f"the data of task {task} has two problems with the id {problem.id!r}")
        seen.add(problem.id)
    return problems


def take(problems: Sequence[P], count: int | None) -> Sequence[P]:
    """The first `count` problems, refused where there are fewer; all of them for None."""
    if count is None:
        return problems
    if not 1 <= count <= len(problems):
        raise InputError(f"count must lie in 1..{len(problems)}, the problems of the split, not {count}")
    return problems[:count]


def check_split(split: str, splits: Sequence[str], task: str) -> None:
    """Refuse a split that a task does not have."""
    if split not in splits:
        raise InputError(f"no split {split!r} in {task}: there are {', '.join(splits)}")
