"""What this machine offers: what keeps untrusted programs in, what trains, what searches."""

import importlib.util
import os
import platform
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from vpo.sandbox import ISOLATIONS, SAFE, unavailable_reason

# What each package is for, and how to get it.
PACKAGES = {
    "torch": ("training", "pip install 'vpo[train]'"),
    "transformers": ("training", "pip install 'vpo[train]'"),
    "trl": ("training", "pip install 'vpo[train]'"),
    "datasets": ("training, data from a hub", "pip install 'vpo[train]'"),
    "peft": ("training low-rank adapters", "pip install 'vpo[train]'"),
    "vllm": ("fast generation on a GPU", "pip install vllm"),
    "openevolve": ("vpo search --strategy openevolve", "pip install 'vpo[search]'"),
}


@dataclass(frozen=True)
class Finding:
    """One thing that is there or not.

    Attributes:
        area: what it belongs to.
        name: what it is called.
        there: whether it is.
        detail: its version, what it lacks, or how it is used.
        remedy: how to get it where it is not there.
    """

    area: str
    name: str
    there: bool
    detail: str
    remedy: str = ""


def examine() -> list[Finding]:
    """Return what was found, the walls tried by running a program behind each."""
    return [*_walls(), _device(), *map(_package, PACKAGES)]


def can_judge(findings: list[Finding]) -> bool:
    """Return whether programs that nobody trusts can be run here."""
    return any(each.there for each in findings if each.area == "sandbox")


def _walls() -> list[Finding]:
    found = []
    for name in SAFE:
        isolation = ISOLATIONS[name]
        if problem := unavailable_reason(isolation):
            found.append(Finding("sandbox", name, False, problem, isolation.install))
        else:
            found.append(Finding("sandbox", name, True, "a program was run behind it"))
    return found


def _device() -> Finding:
    cores = f"{platform.machine()}, {os.cpu_count()} cores"
    if importlib.util.find_spec("torch") is not None:
        import torch

        if torch.cuda.is_available():
            memory = torch.cuda.get_device_properties(0).total_memory / 1e9
            return Finding("device", "GPU", True, f"{torch.cuda.get_device_name()}, {memory:.0f} GB; {cores}")
    return Finding("device", "GPU", False, f"small models train on the CPU ({cores})")


def _package(name: str) -> Finding:
    purpose, remedy = PACKAGES[name]
    try:
        return Finding("package", name, True, f"{version(name)}, for {purpose}")
    except PackageNotFoundError:
        return Finding("package", name, False, f"for {purpose}", remedy)
