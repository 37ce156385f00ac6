"""`vpo doctor`: what this machine offers, and how to install the rest."""

import argparse
import importlib.util
import os
import platform
from dataclasses import asdict, dataclass

from vpo.cli.arguments import Commands, add_examples, add_json
from vpo.cli.output import as_json
from vpo.util.packages import install_command

# Extra of vpo → the packages that it installs → what each is for. Those of "" are installed by their own names.
PACKAGES = {
    "train": {
        "torch": "everything that runs a model",
        "transformers": "loading models and sampling from them",
        "trl": "the trainer of `vpo train`",
        "datasets": "the trainer's data, and data from a hub",
        "accelerate": "devices, and training on several GPUs",
        "peft": "low-rank adapters, `--lora`",
        "tomli-w": "the settings in a run folder",
    },
    "report": {"matplotlib": "the curves of `vpo compare`, pictures of mazes"},
    "parquet": {"pyarrow": "pools and data in Parquet"},
    "math": {"math-verify": "the task math"},
    "rewards": {
        "textstat": "rewards of readability",
        "regex": "rewards by a pattern, within a time limit",
        "openai": "an LLM judge, and `--endpoint`",
    },
    "search": {"openevolve": "`vpo search --evaluator`, and `--strategy openevolve`"},
    "serve": {"fastapi": "`vpo serve`"},  # one of those that the extra `serving` of transformers installs
    "verl": {"verl": "`--engine verl`; in an environment of its own, since it needs an older transformers"},
    "": {
        "vllm": "fast sampling on a GPU, `--generator vllm`",
        "triton": "faster sampling on a GPU with transformers; a torch for CUDA brings it",
        "tensorboard": "`--report-to tensorboard`",
        "wandb": "`--report-to wandb`",
        "trackio": "`--report-to trackio`",
    },
}


@dataclass(frozen=True)
class Finding:
    """A sandbox, the wall around evaluators, a device or a package, and whether it can be used.

    Attributes:
        area: "sandbox", "wall", "device" or "package".
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
    return [*_isolations(), _wall(), _device(), *_packages()]


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


def _wall() -> Finding:
    from vpo.sandbox import ISOLATIONS
    from vpo.sandbox.wall import wall_problem

    problem = wall_problem()
    detail = problem or "a process ran behind it, in bubblewrap"
    return Finding("wall", "evaluators", not problem, detail, ISOLATIONS["bubblewrap"].install)


def _device() -> Finding:
    cores = f"{platform.machine()}, {os.cpu_count()} cores"
    if importlib.util.find_spec("torch") is not None:
        import torch

        if torch.cuda.is_available():
            memory = torch.cuda.get_device_properties(0).total_memory / 1e9
            return Finding("device", "GPU", True, f"{torch.cuda.get_device_name()}, {memory:.0f} GB; {cores}")
    return Finding("device", "GPU", False, f"small models train on the CPU ({cores})")


def _packages() -> list[Finding]:
    from importlib.metadata import PackageNotFoundError, version

    findings = []
    for extra, purposes in PACKAGES.items():
        for name, purpose in purposes.items():
            command = install_command(extra) if extra else f"pip install {name}"
            try:
                findings.append(Finding("package", name, True, f"{version(name)}, for {purpose}", command))
            except PackageNotFoundError:
                findings.append(Finding("package", name, False, f"for {purpose}", command))
    return findings


def add(commands: Commands) -> None:
    """Add `vpo doctor`."""
    command = commands.add_parser(
        "doctor",
        help="what this machine offers, and how to install the rest",
        description="Check the sandboxes for untrusted programs (a program is run in each), the device, and the "
        "optional packages, with the command that installs each. The exit code is 1 where untrusted programs cannot be "
        "run.",
    )
    add_json(command)
    add_examples(command, "vpo doctor")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the findings; 1 where untrusted programs cannot be run."""
    findings = examine()
    if options.json:
        print(as_json([asdict(each) for each in findings]))
        return 0 if can_sandbox(findings) else 1
    _show([(each.area, each) for each in findings if each.area != "package"])
    print(f"\noptional packages, by the extra that installs them: {install_command('EXTRA')}")
    extras = {name: extra or "(none)" for extra, purposes in PACKAGES.items() for name in purposes}
    _show([(extras[each.name], each) for each in findings if each.area == "package"])
    if not can_sandbox(findings):
        print("\nThe task `code` cannot run here: no sandbox works for its programs.")
    return 0 if can_sandbox(findings) else 1


def _show(rows: list[tuple[str, Finding]]) -> None:
    """Print findings under labels; a label, and the command for what is missing, once in a row."""
    label_shown = remedy_shown = None
    for label, each in rows:
        shown = "" if label == label_shown else label
        print(f"{shown:8} {each.name:12}  {'yes' if each.there else 'no':3}  {each.detail}")
        if not each.there and each.remedy and each.remedy != remedy_shown:
            print(f"{'':28}→ {each.remedy}")
            remedy_shown = each.remedy
        label_shown = label
