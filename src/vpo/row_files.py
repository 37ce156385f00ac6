"""Files of rows: out of JSONL and Parquet, each row with the number of its line, and into them."""

import gzip
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from vpo.errors import InputError

Row: TypeAlias = Mapping[str, Any]

FORMS = (".jsonl", ".jsonl.gz", ".parquet")


def read_rows(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield each row with the number of its line, from 1; in Parquet, the number of the row."""
    form = _form(path)
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
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    try:
        if form == ".parquet":
            _write_parquet(temporary, list(rows), maps)
        else:
            with (gzip.open if form == ".jsonl.gz" else open)(temporary, "wt", encoding="utf-8") as file:
                file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        os.chmod(temporary, 0o644)  # a temporary file is private
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _form(path: Path) -> str:
    for form in FORMS:
        if path.name.endswith(form):
            return form
    raise InputError(f"{path}: a file of rows must end in {', '.join(FORMS[:-1])} or {FORMS[-1]}")


def _json_rows(path: Path, form: str) -> Iterator[tuple[int, Any]]:
    with (gzip.open if form == ".jsonl.gz" else open)(path, "rb") as file:
        number = 0
        try:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, json.loads(line)
        except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InputError(f"{path}:{number}: the line is not JSON ({error})") from None
        except (gzip.BadGzipFile, EOFError) as error:
            raise InputError(f"{path}:{number + 1}: the file is not whole gzip ({error})") from None


def _parquet_rows(path: Path) -> Iterator[tuple[int, Any]]:
    pyarrow, parquet = _pyarrow()
    try:
        file = parquet.ParquetFile(path)
    except pyarrow.ArrowInvalid as error:
        raise InputError(f"{path}: the file is not Parquet ({error})") from None
    rows = (row for batch in file.iter_batches() for row in batch.to_pylist(maps_as_pydicts="strict"))
    yield from enumerate(rows, start=1)


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
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InputError("Parquet files need pyarrow: pip install 'vpo[parquet]'") from None
    return pyarrow, pyarrow.parquet
