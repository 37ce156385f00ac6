"""The site: what its build refuses, that it loads nothing from elsewhere, and its reference is complete."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("mkdocs")
pytest.importorskip("mkdocstrings")

from mkdocs.exceptions import PluginError

import vpo
from tests.launch import ROOT
from vpo.cli.main import parser


def hook(name):
    spec = importlib.util.spec_from_file_location(f"docs_hooks_{name}", ROOT / "docs" / "hooks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


pages, commands, names = hook("pages"), hook("cli_reference"), hook("api_reference")


def test_links_out_of_the_pages_lead_to_the_repository():
    assert pages.site_link("training.md#settings", "verl.md") == "training.md#settings"
    assert pages.site_link("../verl.md", "quickstart/trl.md") == "../verl.md"
    assert pages.site_link("#here", "verl.md") == "#here"
    address = pages.repository_url()
    assert pages.site_link("../src/vpo/core/credit.py", "verl.md") == f"{address}/blob/main/src/vpo/core/credit.py"
    assert pages.site_link("../results", "verl.md") == f"{address}/tree/main/results"
    with pytest.raises(PluginError, match=r"verl.md links to ../src/absent.py, which does not exist"):
        pages.site_link("../src/absent.py", "verl.md")


def test_a_file_is_included_with_its_links():
    text = pages.included("../CONTRIBUTING.md", "contributing.md")
    assert "](../docs/architecture.md)" in text
    with pytest.raises(PluginError, match=r"contributing.md includes ../absent.md, which does not exist"):
        pages.included("../absent.md", "contributing.md")


def test_commands_become_blocks_of_bash():
    page = type("Page", (), {"file": type("File", (), {"src_uri": "install.md"})})
    text = "Install:\n\n    pip install x @ git+REPOSITORY_URL\n    vpo doctor\n\nand\n\n    R(S) = 1\n"
    shown = pages.on_page_markdown(text, page)
    assert f"```bash\npip install x @ git+{pages.repository_url()}\nvpo doctor\n```\n\nand\n\n    R(S) = 1" in shown
    fenced = "```python\n    pip = '](absent.md)'\n```\n"
    assert fenced in pages.on_page_markdown(f"Text\n\n{fenced}", page)


def test_every_command_and_option_is_in_the_reference():
    text = commands.reference()
    listed = dict(commands.commands(parser(), "vpo"))
    assert len(listed) > 15
    for name, command in listed.items():
        section = text.partition(f"## {name}\n")[2].partition("\n## ")[0]
        for action in filter(commands.shown, command._actions):
            for flag in action.option_strings:
                assert f"{flag}" in section, (name, flag)


def test_a_public_name_without_a_docstring_is_refused(monkeypatch, tmp_path):
    assert [each for module in names.public_modules() for each in names.without_docstring(module)] == []
    import vpo.core

    def bare():
        pass

    monkeypatch.setattr(vpo.core, "bare", bare, raising=False)
    monkeypatch.setattr(vpo.core, "__all__", [*vpo.core.__all__, "bare"])
    assert list(names.without_docstring("vpo.core")) == ["vpo.core.bare"]
    with pytest.raises(PluginError, match=r"public names without a docstring: vpo.core.bare"):
        names.on_pre_build({"docs_dir": str(ROOT / "docs")})
    with pytest.raises(PluginError, match="no page of the reference has"):
        names.on_pre_build({"docs_dir": str(tmp_path)})


def build(folder):
    environment = {"PATH": "/usr/bin:/bin", "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder / "out")]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.fixture
def copy(tmp_path):
    """The documentation with few pages, which is built in seconds."""
    for name in ("docs", "src", "examples", "results", "tests", "environments"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "docs").unlink()
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "CITATION.cff", "pyproject.toml", "mkdocs.yml"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


@pytest.mark.slow
def test_the_site_is_built_and_loads_nothing_from_elsewhere(copy):
    result = build(copy)
    assert result.returncode == 0, result.stderr
    built = list((copy / "out").rglob("*.html"))
    assert len(built) > 30
    for page in built:
        text = page.read_text()
        loaded = re.findall(r"<(?:script|img|iframe|source)[^>]* src=\"(https?:[^\"]+)", text)
        loaded += re.findall(r"<link[^>]* rel=\"(?:stylesheet|icon|preconnect)\"[^>]* href=\"(https?:[^\"]+)", text)
        assert loaded == [], page
    reference = (copy / "out" / "reference" / "api.html").read_text()
    assert 'id="vpo.core.diversity.diversity"' in reference
    assert "--prompts-per-step" in (copy / "out" / "reference" / "cli.html").read_text()


def test_the_pictures_of_the_concepts_are_drawn(tmp_path):
    script = ROOT / "docs" / "figures" / "concepts.py"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    subprocess.run([sys.executable, script, "--out", tmp_path], check=True, env=environment)
    drawn = {path.name: path for path in tmp_path.iterdir()}
    page = (ROOT / "docs" / "concepts.md").read_text()
    assert set(drawn) == set(re.findall(r"images/(concepts_\w+\.svg)", page))
    assert all(path.read_text().startswith("<?xml") for path in drawn.values())


def test_the_picture_of_the_readme_is_drawn(tmp_path):
    subprocess.run([sys.executable, ROOT / "docs" / "figures" / "headline.py", "--out", tmp_path], check=True)
    (drawn,) = tmp_path.iterdir()
    assert drawn.read_bytes().startswith(b"\x89PNG")
    for page in ("README.md", "docs/index.md"):
        assert f"images/{drawn.name}" in (ROOT / page).read_text()


def test_the_citation_has_the_version_of_the_package():
    text = (ROOT / "CITATION.cff").read_text()
    assert re.search(r"^version: (.*)$", text, re.MULTILINE)[1] == vpo.__version__
    assert "arXiv:2605.22817" in text


def append(page, text):
    page.write_text(f"{page.read_text()}\n{text}\n")


@pytest.mark.slow
def test_a_link_to_nowhere_ends_the_build(copy):
    append(copy / "docs" / "faq.md", "[x](absent.md)")
    result = build(copy)
    assert result.returncode != 0
    assert "faq.md links to absent.md, which does not exist" in result.stderr


@pytest.mark.slow
def test_warnings_of_the_build_are_errors(copy):
    """An anchor that is not there, and a page that is in no menu."""
    append(copy / "docs" / "faq.md", "[x](training.md#absent)")
    (copy / "docs" / "lost.md").write_text("# Lost\n")
    result = build(copy)
    assert result.returncode != 0
    assert "'training.md' does not contain an anchor '#absent'" in result.stderr
    assert "lost.md" in result.stderr
    assert "Aborted with 2 warnings in strict mode" in result.stdout + result.stderr
