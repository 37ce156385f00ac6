"""A command that imports a heavy package says so, and a quick one says nothing."""

import importlib
import importlib.util
import sys
import time

import pytest

from vpo.cli import imports
from vpo.cli.imports import announced_imports
from vpo.util import progress


@pytest.fixture
def heavy(tmp_path, monkeypatch):
    """A package that takes a second to import, where what takes a hundredth is said."""
    (tmp_path / "heavy_package.py").write_text("import time; time.sleep(1)")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(imports, "HEAVY", ("heavy_package",))
    monkeypatch.setattr(progress, "WAIT_SECONDS", 0.01)
    yield "heavy_package"
    sys.modules.pop("heavy_package", None)


def test_a_slow_import_is_said_on_standard_error(heavy, capsys):
    finders = list(sys.meta_path)
    with announced_imports():
        importlib.import_module(heavy)
    captured = capsys.readouterr()
    assert captured.err == "vpo: importing heavy_package …\n"
    assert captured.out == ""
    assert sys.meta_path == finders


def test_looking_whether_it_is_installed_is_no_import(heavy, capsys):
    with announced_imports():
        assert importlib.util.find_spec(heavy)
        time.sleep(0.2)
    assert capsys.readouterr().err == ""


def test_a_quick_import_is_not_said(heavy, monkeypatch, capsys):
    monkeypatch.setattr(progress, "WAIT_SECONDS", 60)
    with announced_imports():
        importlib.import_module(heavy)
    assert capsys.readouterr().err == ""
