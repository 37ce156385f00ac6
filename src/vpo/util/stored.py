"""Files that vpo wrote, read back. Damage is an `InputError` that names the file and the line, never a traceback."""

import json
import tomllib
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vpo.util.errors import InputError, one_line
from vpo.util.type_checks import matches_type, type_name

Fields = Mapping[str, Any]  # name → annotation of its type


def read_object(path: Path, fields: Fields | None = None) -> dict[str, Any]:
    """Read a JSON file that holds an object.

    Args:
        path: of the file.
        fields: that the object must have, with their types.
    """
    return _object(_text(path), f"{path}: the file", fields or {})


def read_toml(path: Path) -> tuple[dict[str, Any], str]:
    """Read a TOML file: its settings, and its text."""
    text = _text(path)
    try:
        return tomllib.loads(text), text
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{path}: the file is not TOML ({one_line(error)})") from None


def read_log(path: Path, fields: Fields) -> list[dict[str, Any]]:
    """The rows of a log that `append_rows` writes; see `log_lines`."""
    return [row for _, row in log_lines(path, fields)]


def log_lines(path: Path, fields: Fields) -> list[tuple[str, dict[str, Any]]]:
    """The lines of a log that `append_rows` writes, each as text and as an object; none without a file.

    A last line that was cut off, by a kill or a full disk, is left out with a warning. Any other damage raises.

    Args:
        path: of the log.
        fields: that each row must have, with their types.
    """
    if not path.is_file():
        return []
    *lines, rest = _bytes(path).split(b"\n")
    if rest:
        warnings.warn(f"{path}:{len(lines) + 1}: the last line is cut off, and is left out", stacklevel=3)
    rows = []
    for number, line in enumerate(lines, start=1):
        where = f"{path}:{number}: the line"
        text = _decoded(line, where)
        rows.append((text, _object(text, where, fields)))
    return rows


def _text(path: Path) -> str:
    return _decoded(_bytes(path), f"{path}: the file")


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"no such file: {path}") from None
    except OSError as error:
        raise InputError(f"{path}: the file cannot be read ({error.strerror})") from None


def _decoded(content: bytes, where: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{where} is damaged: it is not UTF-8 ({one_line(error)})") from None


def _object(text: str, where: str, fields: Fields) -> dict[str, Any]:
    if not text.strip():
        raise InputError(f"{where} is damaged: it is empty")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where} is not JSON ({one_line(error)})") from None
    if not isinstance(data, dict):
        raise InputError(f"{where} is damaged: it must hold an object, not {_shown(data)}")
    for name, annotation in fields.items():
        if name not in data:
            raise InputError(f"{where} is damaged: it has no {name!r}")
        if not matches_type(data[name], annotation):
            raise InputError(f"{where} is damaged: {name} must be {type_name(annotation)}, not {_shown(data[name])}")
    return data


def _shown(value: Any) -> str:
    return one_line(repr(value))[:60]
