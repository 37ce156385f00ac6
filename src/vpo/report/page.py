"""The page: one HTML file that needs no other file and no network."""

import html
import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from vpo.util.files import storable, write_text

# The parts of the page that are inlined, in this order: later scripts use the functions of earlier ones.
STYLES = ("palette", "layout", "parts")
SCRIPTS = (
    *("dom", "scale", "readout", "plot", "tables", "diff"),
    *("head", "curves", "search", "gallery", "front", "main"),
)


def write_page(path: Path, data: Mapping[str, Any]) -> None:
    """Write the page with its data, from `page_data` or `search_page`, inside."""
    # Inside a script "<" can only be written so; JSON takes it.
    embedded = json.dumps(data, allow_nan=False).replace("<", "\\u003c")
    style = "".join(_part(f"{name}.css") for name in STYLES)
    script = "".join(_part(f"{name}.js") for name in SCRIPTS)
    title = html.escape(storable(str(data["title"])))
    write_text(path, Template(_part("page.html")).substitute(title=title, style=style, script=script, data=embedded))


def _part(name: str) -> str:
    return (files("vpo.report") / "assets" / name).read_text(encoding="utf-8")
