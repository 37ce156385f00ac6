"""Files of rows: JSONL, gzipped JSONL and Parquet, read with the line number of each row, and written."""

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

SUFFIXES = (".jsonl", ".jsonl.gz", ".parquet")


def read_rows(path: Path, *, without: Sequence[str] = ()) -> Iterator[tuple[int, Any]]:
    """Yield each row with its line number, from 1; in Parquet, its row number.

    Args:
        path: ends in .jsonl, .jsonl.gz or .parquet.
        without: columns that are not needed. Those of Parquet are not read.
    """
    suffix = _suffix(path)
    if path.is_dir():
        raise InputError(f"{path} is a folder, not a file")
    if not path.is_file():
        raise InputError(f"no such file: {path}")
    yield from _parquet_rows(path, without) if suffix == ".parquet" else _json_rows(path, suffix)


def write_rows(path: Path, rows: Iterable[Row], *, maps: Sequence[str] = ()) -> None:
    """Write rows in the format that the suffix of the path names. The file appears complete or not at all.

    Args:
        path: ends in .jsonl, .jsonl.gz or .parquet.
        rows: one mapping a row.
        maps: columns of name → number with different names in every row; Parquet needs a map type for them.
    """
    suffix = _suffix(path)
    if not path.parent.is_dir():
        raise InputError(f"{path}: no such folder: {path.parent}")
    with replacing(path) as temporary:
        if suffix == ".parquet":
            _write_parquet(temporary, list(rows), maps)
        else:
            with (gzip.open if suffix == ".jsonl.gz" else open)(temporary, "wt", encoding="utf-8") as file:
                file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def without_suffix(name: str) -> str:
    """The name of a file of rows without .jsonl, .jsonl.gz or .parquet."""
    for suffix in SUFFIXES:
        name = name.removesuffix(suffix)
    return name


def _suffix(path: Path) -> str:
    for suffix in SUFFIXES:
        if path.name.endswith(suffix):
            return suffix
    raise InputError(f"{path}: a file of rows must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}")


def _json_rows(path: Path, suffix: str) -> Iterator[tuple[int, Any]]:
    with (gzip.open if suffix == ".jsonl.gz" else open)(path, "rb") as file:
        number = 0
        while True:
            number += 1
            try:
                line = file.readline()
            except (gzip.BadGzipFile, zlib.error, EOFError) as error:
                raise InputError(f"{path}:{number}: the gzip file is broken ({error})") from None
            if not line:
                return
            if line.strip():
                try:
                    row = json.loads(line, object_pairs_hook=_without_repeats)
                except (ValueError, RecursionError) as error:
                    raise InputError(f"{path}:{number}: the line is not JSON ({error})") from None
                yield number, row


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; raises where a name occurs twice, since one of the values would be dropped."""
    result = dict(pairs)
    if len(result) < len(pairs):
        repeated = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"{repeated!r} occurs twice in one object")
    return result


def _parquet_rows(path: Path, without: Sequence[str]) -> Iterator[tuple[int, Any]]:
    pyarrow, parquet = _pyarrow()
    number = 0
    try:
        file = parquet.ParquetFile(path)
        for batch in file.iter_batches(columns=[name for name in file.schema_arrow.names if name not in without]):
            for row in batch.to_pylist(maps_as_pydicts="strict"):
                number += 1
                yield number, row
    except (pyarrow.ArrowException, OSError, KeyError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{path}:{number + 1}: the Parquet file is broken ({reason})") from None


def _write_parquet(path: str, rows: list[Row], maps: Sequence[str]) -> None:
    pyarrow, parquet = _pyarrow()
    columns: dict[str, Any] = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        values: list[Any] = [row.get(name) for row in rows]
        # A map keeps the names of each row; a struct, the default, would fill those of other rows with nulls.
        kind = pyarrow.map_(pyarrow.string(), pyarrow.float64()) if name in maps else None
        columns[name] = pyarrow.array(
            [value and list(value.items()) for value in values] if kind else values, type=kind
        )
    parquet.write_table(pyarrow.table(columns), path)


def _pyarrow() -> tuple[Any, Any]:
    parquet = require("pyarrow.parquet", "Parquet", extra="parquet")
    return require("pyarrow", "Parquet", extra="parquet"), parquet
