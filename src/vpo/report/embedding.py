"""What the pages are put together of: the files of `assets`, and their data as JSON."""

import json
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any


def assets(names: Iterable[str]) -> str:
    """The text of some files of `assets`, one after the other."""
    return "".join((files("vpo.report") / "assets" / name).read_text(encoding="utf-8") for name in names)


def script_json(data: Mapping[str, Any]) -> str:
    """Data as JSON that can stand inside a script, where "<" can only be written by its number."""
    return json.dumps(data, allow_nan=False).replace("<", "\\u003c")
