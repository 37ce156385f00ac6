"""Names, paths, links and quoted messages in the documentation exist, and pages keep their size.

tests/cli/test_options.py parses the commands that they show, and tests/test_docs_blocks.py runs their code.
"""

import importlib
import re

import pytest

from tests.launch import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FOLDERS = "src/vpo|tests|examples|benchmarks|results|environments|docs"
FILES = ("json", "jsonl", "py", "toml")  # vpo.json is a file, not a name


def of_all_pages(pattern):
    return sorted({(page, match) for page in PAGES for match in re.findall(pattern, page.read_text())})


def exists(name):
    """Attributes come first: to import a folder of data as a module would put it in the place of a function."""
    value, path = None, ""
    for part in name.split("."):
        path = f"{path}.{part}".lstrip(".")
        value = getattr(value, part, None)
        if value is None:
            try:
                value = importlib.import_module(path)
            except ModuleNotFoundError:
                return False
    return True


def anchors(page):
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_names_can_be_imported():
    names = [(page.name, name) for page, name in of_all_pages(r"\bvpo(?:\.[A-Za-z_]\w*)+")]
    imports = of_all_pages(r"from (vpo[\w.]*) import ([\w, ]+)")
    names += [(page.name, f"{module}.{each.strip()}") for page, (module, some) in imports for each in some.split(",")]
    assert len(names) > 20
    assert [name for name in names if name[1].rpartition(".")[2] not in FILES and not exists(name[1])] == []


def test_paths_exist():
    paths = of_all_pages(rf"(?<![\w/.-])(?:{FOLDERS})/[\w./-]*\w")
    assert len(paths) > 20
    assert [(page.name, path) for page, path in paths if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if not link.startswith(("http", "mailto:")):
            path, _, anchor = link.partition("#")
            target = page.parent / path if path else page
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link


def messages():
    """All texts of the sources, joined where a text continues on the next line; `…` for what is filled in."""
    sources = "\n".join(path.read_text() for path in sorted((ROOT / "src").rglob("*.py")))
    joined = re.sub(r"\"\s*\n\s*(?:\+ )?f?\"", "", sources)
    return re.sub(r"\{[^{}]*\}", "…", joined)


def test_messages_that_are_explained_exist():
    page = (ROOT / "docs" / "troubleshooting.md").read_text()
    quoted = [
        text for heading in re.findall(r"^### (.*)$", page, re.MULTILINE) for text in re.findall(r"`(.*?)`", heading)
    ]
    assert len(quoted) >= 20
    known = messages()
    pieces = [(text, piece.strip()) for text in quoted for piece in text.split("…") if len(piece.strip()) > 3]
    assert [text for text, piece in pieces if piece not in known] == []


def test_results_fit_one_page():
    assert len((ROOT / "docs" / "results.md").read_text().splitlines()) <= 250


def test_figures_of_the_archive_are_whole():
    """Every file of results/ is named on one of the two pages."""
    pages = "".join((ROOT / "docs" / name).read_text() for name in ("results.md", "results_archive.md"))
    unnamed = [path.name for path in (ROOT / "results").glob("*.json") if path.name not in pages]
    assert unnamed in ([], ["policies.json"])


def test_the_address_of_the_repository_stands_in_one_place():
    address = re.search(r'^Repository = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)[1]
    pages = [*PAGES, ROOT / "mkdocs.yml", ROOT / "CITATION.cff", *sorted((ROOT / "src").rglob("*.py"))]
    assert [page.name for page in pages if address in page.read_text()] == []
