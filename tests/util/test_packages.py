"""Tests of optional packages."""

import json
import sys
from pathlib import Path

import pytest

from vpo.util.errors import InputError
from vpo.util.packages import check_installed, require


def test_a_module_that_is_installed_is_imported() -> None:
    assert require("json", "reading", extra="parquet") is json


@pytest.mark.parametrize(
    ("module", "extra", "message"),
    [
        ("pyarrow_x.parquet", "parquet", "Parquet needs the package pyarrow-x: pip install 'vpo[parquet]'"),
        ("vllm_x", None, "Parquet needs the package vllm-x: pip install vllm-x"),
    ],
)
def test_a_missing_package_is_one_line_that_says_how_to_install_it(
    module: str, extra: str | None, message: str
) -> None:
    with pytest.raises(InputError) as raised:
        require(module, "Parquet", extra=extra)
    assert str(raised.value) == message


def test_an_installed_package_with_a_missing_dependency_raises_its_own_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "installed_but_broken.py").write_text("import no_such_dependency")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError, match="No module named 'no_such_dependency'"):
        require("installed_but_broken", "reading", extra=None)


def test_a_package_is_looked_up_without_importing_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "installed_and_heavy.py").write_text("raise AssertionError")
    monkeypatch.syspath_prepend(str(tmp_path))
    check_installed("installed_and_heavy", "serving", extra=None)
    assert "installed_and_heavy" not in sys.modules
    with pytest.raises(InputError, match=r"^serving needs the package no-such-package: pip install 'vpo\[serve\]'$"):
        check_installed("no_such_package", "serving", extra="serve")
