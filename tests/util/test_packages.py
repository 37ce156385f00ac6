"""Tests of optional packages."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.launch import ROOT
from vpo.util import packages
from vpo.util.errors import InputError
from vpo.util.packages import check_installed, install_command, require

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def fake_installation(folder: Path, monkeypatch: pytest.MonkeyPatch, origin: dict[str, Any] | None) -> None:
    """Let vpo be installed in a folder, as pip records it, and not be run from a checkout."""
    information = folder / "site-packages" / "vpo-9.9.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text("Metadata-Version: 2.4\nName: vpo\nVersion: 9.9.0\n")
    if origin is not None:
        (information / "direct_url.json").write_text(json.dumps(origin))
    monkeypatch.syspath_prepend(str(information.parent))
    monkeypatch.setattr(packages, "_ROOT", folder)


def test_a_module_that_is_installed_is_imported() -> None:
    assert require("json", "reading", extra="parquet") is json


@pytest.mark.parametrize(
    ("module", "extra", "message"),
    [
        ("pyarrow_x.parquet", "parquet", "Parquet needs the package pyarrow-x: pip install -e '.[parquet]'"),
        ("vllm_x", None, "Parquet needs the package vllm-x: pip install vllm-x"),
    ],
)
def test_a_missing_package_is_one_line_that_says_how_to_install_it(
    module: str, extra: str | None, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
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
    monkeypatch.chdir(ROOT)
    with pytest.raises(InputError, match=r"^serving needs the package no-such-package: pip install -e '.\[serve\]'$"):
        check_installed("no_such_package", "serving", extra="serve")


def test_a_checkout_is_installed_again_with_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout = tmp_path / "a checkout"
    checkout.mkdir()
    (checkout / "pyproject.toml").touch()
    monkeypatch.setattr(packages, "_ROOT", checkout)
    assert install_command("train") == f"pip install -e '{checkout}[train]'"
    assert install_command() == f"pip install -e '{checkout}'"
    monkeypatch.chdir(checkout)
    assert install_command("train") == "pip install -e '.[train]'"
    assert install_command() == "pip install -e ."


@pytest.mark.parametrize(
    ("origin", "requirement"),
    [
        (
            {"url": "https://git.test/vpo.git", "vcs_info": {"vcs": "git", "commit_id": COMMIT}},
            f"vpo[math] @ git+https://git.test/vpo.git@{COMMIT}",
        ),
        (
            {
                "url": "ssh://git@git.test/all.git",
                "vcs_info": {"vcs": "git", "requested_revision": "main", "commit_id": COMMIT},
                "subdirectory": "python/vpo",
            },
            f"vpo[math] @ git+ssh://git@git.test/all.git@{COMMIT}#subdirectory=python/vpo",
        ),
        # pip reads no requirement that ends in git+file:///…
        ({"url": "file:///no/such/repository", "vcs_info": {"vcs": "git", "commit_id": COMMIT}}, "vpo[math]==9.9.0"),
        (
            {"url": "https://files.test/vpo-9.9.0-py3-none-any.whl", "archive_info": {}},
            "vpo[math] @ https://files.test/vpo-9.9.0-py3-none-any.whl",
        ),
        ({"url": "file:///no/such/vpo-9.9.0-py3-none-any.whl", "archive_info": {}}, "vpo[math]==9.9.0"),
        (None, "vpo[math]==9.9.0"),  # from a package registry
    ],
)
def test_an_installed_vpo_is_installed_from_where_it_came_from(
    origin: dict[str, Any] | None, requirement: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_installation(tmp_path, monkeypatch, origin)
    assert install_command("math") == f"pip install '{requirement}'"


@pytest.mark.parametrize("name", ["vpo-9.9.0-py3-none-any.whl", "a folder"])
def test_a_file_or_folder_that_is_still_there_is_named(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).touch()
    url = (tmp_path / name).as_uri()
    fake_installation(tmp_path, monkeypatch, {"url": url, "dir_info": {}})
    assert install_command("math") == f"pip install 'vpo[math] @ {url}'"
    assert install_command() == f"pip install 'vpo @ {url}'"


def test_a_vpo_that_nobody_installed_has_its_name_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "_ROOT", tmp_path)
    monkeypatch.setattr(sys, "path", [])
    assert install_command("math") == "pip install 'vpo[math]'"
