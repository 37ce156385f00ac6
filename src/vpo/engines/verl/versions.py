"""The versions that verl's engine was run with; others are refused."""

from collections.abc import Mapping

from vpo.util.errors import InputError
from vpo.util.packages import install_command

# The range of transformers is verl's own pin, which a later install may break.
RANGES = {"verl": ">=0.9,<0.10", "transformers": ">=5.5.3,!=5.6.0,<5.11"}
# Packages that verl's default trainer imports and that verl does not depend on: module → package.
NEEDED = {"transfer_queue": "TransferQueue", "cachetools": "cachetools"}


def check_versions(versions: Mapping[str, str | None], python: str) -> None:
    """Refuse an environment that lacks a package or has one outside the range.

    Args:
        versions: of each package; None for one that is not installed.
        python: whose packages they are.
    """
    from packaging.specifiers import SpecifierSet

    for name, bounds in RANGES.items():
        version = versions.get(name)
        if version is None:
            raise InputError(f"{python} has no {name}: give the Python of an environment with verl by --python")
        if version not in SpecifierSet(bounds):
            raise InputError(f"{name} must be {bounds} for vpo with verl, and {python} has {version}")
    for package in NEEDED.values():
        if versions.get(package) is None:
            raise InputError(f"{python} has no {package}, which verl's trainer needs: pip install 'verl[verl-core]'")
    if versions.get("vpo") is None:
        command = install_command().replace("pip install", "pip install --no-deps")
        raise InputError(f"{python} has no vpo, which verl loads the reward and plugin from: there, {command}")
