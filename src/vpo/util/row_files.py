"""Files of rows: out of JSONL and Parquet, each row with the number of its line, and into them."""

import gzip
import json
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from vpo.util.errors import InputError
from vpo.util.files import replacing
from vpo.util.packages import require

Row: TypeAlias = Mapping[str, Any]

FORMS = (".jsonl", ".jsonl.gz", ".parquet")


def read_rows(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield each row with the number of its line, from 1; in Parquet, the number of the row."""
    form = _form(path)
    if path.is_dir():
        raise InputError(f"{path}: this is a folder, not a file")
    if not path.is_file():
        raise InputError(f"{path}: there is no such file")
    yield from _parquet_rows(path) if form == ".parquet" else _json_rows(path, form)


def write_rows(path: Path, rows: Iterable[Row], *, maps: Sequence[str] = ()) -> None:
    """Write rows in the format of the file's ending. The file appears whole or not at all.

    Args:
        path: ends in .jsonl, .jsonl.gz or .parquet.
        rows: one mapping a row.
        maps: columns that hold name → number with other names in every row, which Parquet must be told.
    """
    form = _form(path)
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}")
    with replacing(path) as temporary:
        if form == ".parquet":
            _write_parquet(temporary, list(rows), maps)
        else:
            with (gzip.open if form == ".jsonl.gz" else open)(temporary, "wt", encoding="utf-8") as file:
                file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def without_form(name: str) -> str:
    """Return the name of a file of rows without its ending."""
    for form in FORMS:
        name = name.removesuffix(form)
    return name


def _form(path: Path) -> str:
    for form in FORMS:
        if path.name.endswith(form):
            return form
    raise InputError(f"{path}: a file of rows must end in {', '.join(FORMS[:-1])} or {FORMS[-1]}")


def _json_rows(path: Path, form: str) -> Iterator[tuple[int, Any]]:
    with (gzip.open if form == ".jsonl.gz" else open)(path, "rb") as file:
        number = 0
        while True:
            number += 1
            try:
                line = file.readline()
            except (gzip.BadGzipFile, zlib.error, EOFError) as error:
                raise InputError(f"{path}:{number}: the file is not whole gzip ({error})") from None
            if not line:
                return
            if line.strip():
                try:
                    row = json.loads(line, object_pairs_hook=_without_repeats)
                except (ValueError, RecursionError) as error:
                    raise InputError(f"{path}:{number}: the line is not JSON ({error})") from None
                yield number, row


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON, refusing a name that stands in it twice, of which one value would be dropped."""
    found = dict(pairs)
    if len(found) < len(pairs):
        repeated = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"{repeated!r} stands twice in one object")
    return found


def _parquet_rows(path: Path) -> Iterator[tuple[int, Any]]:
    pyarrow, parquet = _pyarrow()
    number = 0
    try:
        for batch in parquet.ParquetFile(path).iter_batches():
            for row in batch.to_pylist(maps_as_pydicts="strict"):
                number += 1
                yield number, row
    except (pyarrow.ArrowException, OSError, KeyError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{path}:{number + 1}: the file is not whole Parquet ({reason})") from None


def _write_parquet(path: str, rows: list[Row], maps: Sequence[str]) -> None:
    pyarrow, parquet = _pyarrow()
    columns: dict[str, Any] = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        values: list[Any] = [row.get(name) for row in rows]
        # A map keeps the names of each row; a struct, the default, would fill those of other rows with nulls.
        kind = pyarrow.map_(pyarrow.string(), pyarrow.float64()) if name in maps else None
        columns[name] = pyarrow.array([list(value.items()) for value in values] if kind else values, type=kind)
    parquet.write_table(pyarrow.table(columns), path)


def _pyarrow() -> tuple[Any, Any]:
    parquet = require("pyarrow.parquet", "Parquet", extra="parquet")
    return require("pyarrow", "Parquet", extra="parquet"), parquet
