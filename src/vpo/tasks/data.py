"""Where the data of a task comes from: a local file or folder, or a hub."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from vpo.tasks.task import P
from vpo.util.errors import InputError
from vpo.util.row_files import SUFFIXES, read_rows

T = TypeVar("T")


@dataclass(frozen=True)
class Published:
    """Where the data of a task is published, and in which files.

    Attributes:
        title: what it is called, for people.
        hub: its repository on the hub.
        files: for each part of the data, what its file names contain; of several, the first that any file has.
        hub_splits: for each part, the name of its split on the hub.
    """

    title: str
    hub: str
    files: Mapping[str, tuple[str, ...]]
    hub_splits: Mapping[str, str]


def read_data(task: str, published: Published, data: str | None, part: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the rows of a part of the data, each with its place, such as "dev.jsonl:17".

    Args:
        task: the name of the task, for messages.
        published: what to look for.
        data: a file, which is read unless its name says that it is another part; a folder, searched for the part's
            files; "hub", or "hub:OWNER/NAME" for another repository than the published one, with ":CONFIG" for one of
            its configurations.
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
    for file in [_of_part(path, published, part)] if path.is_file() else _files(path, published, part, task):
        for line, row in read_rows(file):
            if not isinstance(row, Mapping):
                raise InputError(f"{file}:{line}: a row must be an object")
            yield f"{file}:{line}", row


def _of_part(file: Path, published: Published, part: str) -> Path:
    """Refuse a file whose name says that it holds another part of the data."""
    if not any(_named(file, sign) for sign in published.files[part]):
        for other, signs in published.files.items():
            if any(_named(file, sign) for sign in signs):
                raise InputError(f"{file}: by its name this is the part {other!r}, and the part {part!r} is asked for")
    return file


def _named(file: Path, sign: str) -> bool:
    """Return whether a file's name has a sign, not within a longer word: "contests" is no "test"."""
    return re.search(rf"(?<![a-z]){sign}(?![a-z])" if sign.isalpha() else re.escape(sign), file.name) is not None


def _files(folder: Path, published: Published, part: str, task: str) -> list[Path]:
    everything = sorted(file for file in folder.rglob("*") if file.name.endswith(SUFFIXES))
    for sign in published.files[part]:
        if found := [file for file in everything if _named(file, sign)]:
            return found
    data = [file for file in everything if not file.name.startswith("tools.")]  # Seal-Tools has its tools beside it
    if len(data) == 1:
        return [_of_part(data[0], published, part)]
    signs = " or ".join(map(repr, published.files[part]))
    raise InputError(
        f"{folder}: no file of task {task} is there: its name must contain {signs} and end in {' or '.join(SUFFIXES)}"
    )


def _from_hub(place: str, split: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    repository, _, configuration = place.partition(":")
    try:
        from datasets import load_dataset
    except ImportError:
        raise InputError("the hub needs the package datasets: pip install 'vpo[train]'") from None
    try:
        rows = load_dataset(repository, configuration or None, split=split)
    except Exception as error:  # the client raises errors of many packages: no network, no such repository, no access
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise InputError(f"hub:{place}: split {split!r} cannot be loaded ({reason})") from None
    for number, row in enumerate(rows, start=1):
        yield f"hub:{place}:{number}", row


def shuffled(items: Sequence[T], seed: int) -> list[T]:
    """Return the items in the order that `datasets.Dataset.shuffle(seed)` gives, with which papers make splits."""
    return [items[place] for place in np.random.default_rng(seed).permutation(len(items))]


def field(row: Mapping[str, Any], name: str, kind: type | tuple[type, ...], place: str) -> Any:
    """Return a field of a row, refusing one that is absent or of another kind."""
    if name not in row:
        raise InputError(f"{place}: there is no {name!r} in it; it has {', '.join(map(str, row)) or 'nothing'}")
    value = row[name]
    if not isinstance(value, kind):
        kinds: Sequence[type] = kind if isinstance(kind, tuple) else (kind,)
        wanted = " or ".join(each.__name__ for each in kinds)
        raise InputError(f"{place}: {name} must be {wanted}, not {type(value).__name__}")
    return value


def items(row: Mapping[str, Any], name: str, kind: type | tuple[type, ...], place: str) -> list[Any]:
    """Return a list of a row, refusing one that is absent or holds things of another kind."""
    found = field(row, name, list, place)
    for number, item in enumerate(found):
        field({name: item}, name, kind, f"{place}: item {number}")
    return list(found)


def unique(problems: Sequence[P], task: str) -> Sequence[P]:
    """Return problems that can be told apart by their id, refusing none at all and two of one id."""
    if not problems:
        raise InputError(f"the data of task {task} holds no rows for this split")
    seen: set[str] = set()
    for problem in problems:
        if problem.id in seen:
            raise InputError(f"the data of task {task} holds two problems of the id {problem.id!r}")
        seen.add(problem.id)
    return problems
