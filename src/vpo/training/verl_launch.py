"""Training under verl: exports the data, writes the command, checks it in verl's Python, and starts it."""

import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vpo.engines.verl.compatibility import is_stock
from vpo.engines.verl.export import TRAIN, Export, write_export
from vpo.engines.verl.versions import NEEDED, RANGES, check_versions
from vpo.methods import get as get_method
from vpo.models.model_files import check_whole
from vpo.training import runs
from vpo.training.config import TrainConfig
from vpo.training.prepare import resolve
from vpo.training.runs import Run
from vpo.training.verl_overrides import check_engine, overrides
from vpo.util import supervised
from vpo.util.errors import InputError
from vpo.util.files import write_text
from vpo.util.progress import waiting
from vpo.util.records import command_line, now

DATA, COMMAND, MODULE = "verl", "command.sh", "verl.trainer.main_ppo"

# Prints the versions of the packages of a Python, without importing any.
PROBE = f"""
import json
from importlib.metadata import PackageNotFoundError, version
versions = {{}}
for name in {[*RANGES, *NEEDED.values(), "vpo"]!r}:
    try:
        versions[name] = version(name)
    except PackageNotFoundError:
        versions[name] = None
print(json.dumps(versions))
"""


@dataclass(frozen=True)
class LaunchResult:
    """A run under verl.

    Attributes:
        run: its folder.
        command: the command that trains.
        code: exit code of verl; None where the command was only checked.
    """

    run: Run
    command: list[str]
    code: int | None


def launch(
    config: TrainConfig, folder: str | Path, *, python: str | None = None, dry_run: bool = False
) -> LaunchResult:
    """Train under verl in a new run folder. Wrong input raises before verl starts, and leaves no folder.

    Args:
        config: of the run.
        folder: of the run.
        python: a Python that has verl; by default the one that runs.
        dry_run: write and check the command, but do not train.
    """
    runs.check_free(folder)
    python = _python_path(python)
    check_versions(_versions(python), python)
    check_engine(config)
    resolved, model = resolve(config)
    check_whole(model.path, "engine verl")
    config = replace(resolved, micro_batch=config.micro_batch, precision=config.precision)  # verl chooses its own
    method = get_method(config.method, **config.method_settings)
    export = Export(
        task=config.task,
        task_settings=config.task_settings,
        method=method,
        target=config.target,
        group=config.group,
        seed=config.seed,
        counts={config.split: config.problems},
        stock=is_stock(config.trainer),
    )
    run = runs.create(Path(folder).absolute(), config)
    try:
        data = run.folder / DATA
        rows = write_export(export, data, train=config.split)
        settings = overrides(
            config, method, model=model.path, data=data, checkpoints=run.checkpoints, problems=rows[TRAIN]
        )
        command = [python, "-m", MODULE, *settings]
        write_text(data / COMMAND, shlex.join(command) + "\n")
        facts = _check(run, python, settings, machine=not dry_run)
    except BaseException:
        shutil.rmtree(run.folder)  # nothing was trained, so the same --out can be used again
        raise
    run.note({"command": command_line(), "versions": facts["versions"], "python": python})
    if dry_run:
        return LaunchResult(run, command, None)
    with run.lock() as lock:
        return LaunchResult(run, command, _start(run, command, lock))


def relaunch(run: Run) -> LaunchResult:
    """Start verl on a run again, unless it is finished. verl resumes from its newest checkpoint."""
    command = _stored_command(run.folder / DATA / COMMAND)
    with run.lock() as lock:
        if run.notes().get("code") == 0:
            return LaunchResult(run, command, 0)
        _check(run, command[0], command[3:], machine=True)
        return LaunchResult(run, command, _start(run, command, lock))


def _stored_command(path: Path) -> list[str]:
    """The command that launched verl; refuses a file that is cut off, which would be a shorter command."""
    try:
        text = path.read_text(encoding="utf-8")
        command = shlex.split(text)
    except FileNotFoundError:
        raise InputError(f"no such file: {path}") from None
    except ValueError as error:
        raise InputError(f"{path}: the command is damaged ({error})") from None
    if not text.endswith("\n") or command[1:2] != ["-m"]:
        raise InputError(f"{path}: the command is damaged: its end or its beginning is missing")
    return command


def _start(run: Run, command: Sequence[str], lock: int) -> int:
    """Run verl. It never outlives this process, and all of its processes hold the lock of the run."""
    run.note_start({"began": now()})
    code = supervised.run(command, cwd=run.folder, keep=[lock])
    run.note({"ended": now(), "code": code})
    return code


def _python_path(python: str | None) -> str:
    """The path of a Python. Links are not resolved: they tell which virtual environment it is of."""
    path = shutil.which(python or sys.executable)
    if path is None:
        raise InputError(f"no such Python: {python}")
    return str(Path(path).absolute())


def _versions(python: str) -> dict[str, str | None]:
    with waiting(f"looking for verl in {python}"):
        process = subprocess.run([python, "-c", PROBE], capture_output=True, text=True)
    try:
        versions: dict[str, str | None] = json.loads(process.stdout)
    except ValueError:
        raise InputError(f"{python} is no Python that runs ({_last_line(process.stderr)})") from None
    return versions


def _check(run: Run, python: str, settings: Sequence[str], *, machine: bool) -> dict[str, Any]:
    """Run `vpo.engines.verl.check` in verl's Python; the facts that it prints."""
    command = [python, "-m", "vpo.engines.verl.check", *(["--machine"] if machine else []), "--", *settings]
    with waiting("checking the settings with verl"):
        process = subprocess.run(command, capture_output=True, text=True, cwd=run.folder)
    last = _last_line(process.stderr)
    if process.returncode == 2 and last.startswith("vpo: error: "):
        raise InputError(last.removeprefix("vpo: error: "))
    if process.returncode:
        raise InputError(f"{python}: verl could not be checked ({last}); see: {shlex.join(command[:4])} …")
    facts: dict[str, Any] = json.loads(_last_line(process.stdout))
    return facts


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no output"])[-1]
