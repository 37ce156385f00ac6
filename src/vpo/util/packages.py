"""Optional packages: imported where they are used, with a message that says how to install one that is missing."""

import importlib
import importlib.util
from types import ModuleType

from vpo.util.errors import InputError


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


def _is_in(module: str, missing: str) -> bool:
    """Whether `missing` is the module itself or a package that it is in."""
    return f"{module}.".startswith(f"{missing}.")


def _missing(module: str, purpose: str, extra: str | None) -> InputError:
    package = module.partition(".")[0].replace("_", "-")
    installed = f"'vpo[{extra}]'" if extra else package
    return InputError(f"{purpose} needs the package {package}: pip install {installed}")
