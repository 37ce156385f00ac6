"""A command that imports a heavy package says so, and a quick one says nothing."""

import importlib
import importlib.util
import sys
import threading
import time

import pytest

from vpo.cli import imports
from vpo.cli.imports import announced_imports
from vpo.util import progress

said = threading.Event()


@pytest.fixture
def heavy(tmp_path, monkeypatch):
    """A heavy package, where what takes a hundredth of a second to import is said."""
    (tmp_path / "heavy_package.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(imports, "HEAVY", ("heavy_package",))
    monkeypatch.setattr(progress, "WAIT_SECONDS", 0.01)
    yield "heavy_package"
    sys.modules.pop("heavy_package", None)


def test_a_slow_import_is_said_on_standard_error(heavy, tmp_path, monkeypatch, capsys):
    say = progress.say
    said.clear()
    monkeypatch.setattr(progress, "say", lambda line: (say(line), said.set()))
    # However slow the machine is, its import lasts until the line was said.
    (tmp_path / f"{heavy}.py").write_text(f"import {__name__} as test\nassert test.said.wait(timeout=600)")
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
