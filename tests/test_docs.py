"""Names, paths and links in the documentation exist. (tests/cli/test_options.py parses the commands that it shows.)"""

import importlib
import re

import pytest

from tests.launch import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
FOLDERS = "src/vpo|tests|examples|benchmarks|results|environments|docs"
FILES = ("json", "jsonl", "py", "toml")  # vpo.json is a file, not a name


def of_all_pages(pattern):
    return sorted({(page, match) for page in PAGES for match in re.findall(pattern, page.read_text())})


def exists(name):
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[end:]:
            value = getattr(value, attribute, None)
        return value is not None
    return False


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
        if not link.startswith("http"):
            path, _, anchor = link.partition("#")
            target = page.parent / path if path else page
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link
