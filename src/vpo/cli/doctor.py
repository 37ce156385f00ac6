"""`vpo doctor`: what this machine offers, and how to install the rest."""

import argparse
import importlib.util
import os
import platform
from dataclasses import asdict, dataclass

from vpo.cli.arguments import Commands, add_json
from vpo.cli.output import as_json

# Package → what it is for, how to install it.
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
    """A sandbox, a device or a package, and whether it can be used.

    Attributes:
        area: "sandbox", "device" or "package".
        name: of the thing.
        there: whether it can be used.
        detail: its version, what it lacks, or what it is for.
        remedy: how to install it.
    """

    area: str
    name: str
    there: bool
    detail: str
    remedy: str = ""


def examine() -> list[Finding]:
    """Check the sandboxes, the device and the packages; a program is run in each sandbox."""
    return [*_isolations(), _device(), *map(_package, PACKAGES)]


def can_sandbox(findings: list[Finding]) -> bool:
    """Whether untrusted programs can be run here."""
    return any(each.there for each in findings if each.area == "sandbox")


def _isolations() -> list[Finding]:
    from vpo.sandbox import ISOLATIONS, SAFE, unavailable_reason

    findings = []
    for name in SAFE:
        isolation = ISOLATIONS[name]
        if problem := unavailable_reason(isolation):
            findings.append(Finding("sandbox", name, False, problem, isolation.install))
        else:
            findings.append(Finding("sandbox", name, True, "a program ran in it"))
    return findings


def _device() -> Finding:
    cores = f"{platform.machine()}, {os.cpu_count()} cores"
    if importlib.util.find_spec("torch") is not None:
        import torch

        if torch.cuda.is_available():
            memory = torch.cuda.get_device_properties(0).total_memory / 1e9
            return Finding("device", "GPU", True, f"{torch.cuda.get_device_name()}, {memory:.0f} GB; {cores}")
    return Finding("device", "GPU", False, f"small models train on the CPU ({cores})")


def _package(name: str) -> Finding:
    from importlib.metadata import PackageNotFoundError, version

    purpose, remedy = PACKAGES[name]
    try:
        return Finding("package", name, True, f"{version(name)}, for {purpose}")
    except PackageNotFoundError:
        return Finding("package", name, False, f"for {purpose}", remedy)


def add(commands: Commands) -> None:
    """Add `vpo doctor`."""
    command = commands.add_parser(
        "doctor",
        help="what this machine offers, and how to install the rest",
        description="Check the sandboxes for untrusted programs (a program is run in each), the device, and the "
        "packages. The exit code is 1 where untrusted programs cannot be run.",
    )
    add_json(command)
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the findings; 1 where untrusted programs cannot be run."""
    findings = examine()
    if options.json:
        print(as_json([asdict(each) for each in findings]))
        return 0 if can_sandbox(findings) else 1
    width = max(len(each.name) for each in findings)
    for each in findings:
        print(f"{each.area:8} {each.name:{width}}  {'yes' if each.there else 'no ':3}  {each.detail}")
        if not each.there and each.remedy:
            print(f"{'':8} {'':{width}}       → {each.remedy}")
    if not can_sandbox(findings):
        print("\nThe task `code` cannot run here: no sandbox works for its programs.")
    return 0 if can_sandbox(findings) else 1
