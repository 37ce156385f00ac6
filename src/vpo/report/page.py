"""The page: one HTML file that needs no other file and no network."""

import html
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Any

from vpo.report.embedding import assets, script_json
from vpo.util.files import storable, write_text

# The parts of the page that are inlined, in this order: later scripts use the functions of earlier ones.
STYLES = ("palette.css", "layout.css", "parts.css", "search.css")
SCRIPTS = (
    *("dom.js", "ticks.js", "data.js", "scale.js", "readout.js", "plot.js", "tables.js", "diff.js"),
    *("head.js", "curves.js", "gallery.js", "front.js"),
    *("cases.js", "candidate.js", "descent.js", "nondominated.js", "search.js", "main.js"),
)


def write_page(path: Path, data: Mapping[str, Any]) -> None:
    """Write the page with its data, from `page_data` or `search_page`, inside."""
    text = Template(assets(["page.html"])).substitute(
        title=html.escape(storable(str(data["title"]))),
        style=assets(STYLES),
        script=assets(SCRIPTS),
        data=script_json(data),
    )
    write_text(path, text)
