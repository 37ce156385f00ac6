"""Optional packages: imported where they are used, with a message that says how to install one that is missing."""

import importlib
import importlib.util
import json
import shlex
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from vpo.util.errors import InputError

# The checkout, where this file is in one; else some folder without a pyproject.toml.
_ROOT = Path(__file__).resolve().parents[3]


def require(module: str, purpose: str, *, extra: str | None) -> ModuleType:
    """Import a module of an optional package: ``require("pyarrow.parquet", "Parquet", extra="parquet")``.

    A package that is installed but fails to import raises its own error.

    Args:
        module: its import path.
        purpose: what needs it; the subject of the message.
        extra: the extra of vpo that installs it; None where the package itself is to be installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not _is_in(module, error.name):
            raise
        raise _missing(module, purpose, extra) from None


def check_installed(module: str, purpose: str, *, extra: str | None) -> None:
    """Raise as `require` does for a missing package, without importing it."""
    if importlib.util.find_spec(module) is None:
        raise _missing(module, purpose, extra)


def install_command(extra: str | None = None) -> str:
    """The command that installs vpo with an extra from where the vpo that is running came from.

    A checkout, a Git repository, a folder or an archive is named again: a package registry may not have vpo, or may
    have another package of that name.
    """
    from importlib.metadata import PackageNotFoundError, distribution  # slow to import

    extras = f"[{extra}]" if extra else ""
    if (_ROOT / "pyproject.toml").exists():
        checkout = "." if Path.cwd() == _ROOT else str(_ROOT)
        return f"pip install -e {shlex.quote(checkout + extras)}"
    try:
        vpo = distribution("vpo")
    except PackageNotFoundError:
        return f"pip install {shlex.quote('vpo' + extras)}"
    source = _source(json.loads(vpo.read_text("direct_url.json") or "{}"))
    # Where the source is not known or gone, the version that is installed is: pip keeps it, and needs no other.
    return f"pip install {shlex.quote(f'vpo{extras}' + (f' @ {source}' if source else f'=={vpo.version}'))}"


def _source(origin: dict[str, Any]) -> str | None:
    """The URL to install from, by a package's direct_url.json (PEP 610); None where there is none that still works."""
    from urllib.request import url2pathname  # slow to import

    url = str(origin.get("url", ""))
    parts = urlsplit(url)
    if "vcs_info" in origin:
        if not parts.netloc:  # pip refuses git+file:///…
            return None
        subdirectory = f"#subdirectory={origin['subdirectory']}" if "subdirectory" in origin else ""
        return f"{origin['vcs_info']['vcs']}+{url}@{origin['vcs_info']['commit_id']}{subdirectory}"
    is_gone = parts.scheme == "file" and not Path(url2pathname(parts.path)).exists()
    return None if is_gone else url or None


def _is_in(module: str, missing: str) -> bool:
    """Whether `missing` is the module itself or a package that it is in."""
    return f"{module}.".startswith(f"{missing}.")


def _missing(module: str, purpose: str, extra: str | None) -> InputError:
    package = module.partition(".")[0].replace("_", "-")
    command = install_command(extra) if extra else f"pip install {package}"
    return InputError(f"{purpose} needs the package {package}: {command}")
