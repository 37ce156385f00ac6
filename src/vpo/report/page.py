"""The page: one HTML file that needs no other file and no network."""

import html
import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from vpo.util.files import write_text


def write_page(path: Path, data: Mapping[str, Any]) -> None:
    """Write the page with its data, from `page_data` or `search_page`, inside."""
    parts = {name: (files("vpo.report") / f"page.{name}").read_text(encoding="utf-8") for name in ("html", "css", "js")}
    # Inside a script "<" can only be written so; JSON takes it.
    embedded = json.dumps(data, allow_nan=False).replace("<", "\\u003c")
    title = html.escape(str(data["title"]))
    text = Template(parts["html"]).substitute(title=title, style=parts["css"], script=parts["js"], data=embedded)
    write_text(path, text)
