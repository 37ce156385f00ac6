"""Turns pages that read well in a checkout into pages of the site.

- `REPOSITORY_URL` becomes the address in `[project.urls]` of pyproject.toml, the one place where it stands.
- Links that lead out of docs/, to sources, results and tests, lead to the repository.
- `<!-- include: ../FILE.md -->` is replaced by that file, with its links.
- Indented blocks of commands become blocks of bash, so that they have colours.
"""

import posixpath
import re
import tomllib
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError

ROOT = Path(__file__).resolve().parents[2]
BRANCH = "main"
COMMANDS = r"vpo|make|pip|python3?|git|accelerate|swift|zcat|PYTHON|PYTHONPATH=\S+|\.venv\S*"
LINK = re.compile(r"(?<=\]\()([^)\s]+)(?=\))")
INCLUDE = re.compile(r"^<!-- include: (\S+) -->$", re.MULTILINE)
FENCED = re.compile(r"^(```.*?^```)$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(rf"(?<=\n\n)(    (?:{COMMANDS}) .*\n(?:(?:    .*)?\n)*)(?=\S|\Z)")


def repository_url() -> str:
    """The address of the repository."""
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    return str(urls["Repository"]).rstrip("/")


def on_config(config: Any) -> Any:
    """Give the theme the address of the repository, for its icon in the footer, and nothing to load from elsewhere."""
    # The plugin `offline` adds a script from another host, for search in a page that is opened from the disk.
    config["extra"]["polyfills"] = ["assets/file_worker.js"]
    config["extra"]["social"] = [{"icon": "simple/git", "link": repository_url(), "name": "Source code"}]
    return config


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Rewrite the text of a page before it is rendered."""
    path = page.file.src_uri
    markdown = INCLUDE.sub(lambda match: included(match[1], path), markdown + "\n")
    pieces = FENCED.split(markdown)  # code fences are every second piece, and stay as they are
    pieces[::2] = [INDENTED.sub(as_fence, LINK.sub(lambda m: site_link(m[1], path), piece)) for piece in pieces[::2]]
    return "".join(pieces).replace("REPOSITORY_URL", repository_url())


def included(name: str, path: str) -> str:
    """The text of a file outside docs/, its links relative to the page that includes it."""
    file = (ROOT / "docs" / path).parent / name
    if not file.is_file():
        raise PluginError(f"{path} includes {name}, which does not exist")
    folder = posixpath.dirname(name)
    return LINK.sub(
        lambda match: match[1] if external(match[1]) else posixpath.join(folder, match[1]), file.read_text()
    )


def site_link(link: str, path: str) -> str:
    """A link as it must be on the site; one that leads nowhere is an error."""
    if external(link):
        return link
    target, _, anchor = link.partition("#")
    base = posixpath.dirname(posixpath.join("docs", path))
    whole = posixpath.normpath(posixpath.join(base, target))
    if not (ROOT / whole).exists():
        raise PluginError(f"{path} links to {link}, which does not exist")
    inside = whole.startswith("docs/") and not whole.startswith(("docs/figures/", "docs/hooks/"))
    if inside and (ROOT / whole).is_file():
        return posixpath.relpath(whole, base) + (f"#{anchor}" if anchor else "")
    kind = "tree" if (ROOT / whole).is_dir() else "blob"
    return f"{repository_url()}/{kind}/{BRANCH}/{whole}" + (f"#{anchor}" if anchor else "")


def external(link: str) -> bool:
    """Whether a link leads to another site, or to a heading of the same page."""
    return link.startswith(("http://", "https://", "#", "mailto:"))


def as_fence(match: re.Match[str]) -> str:
    """An indented block as a fenced one."""
    lines = [line.removeprefix("    ") for line in match[1].rstrip("\n").split("\n")]
    return "\n".join(["```bash", *lines, "```", "", ""])
