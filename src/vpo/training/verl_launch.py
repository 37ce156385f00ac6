"""Starts verl on a run: exports the data, writes the command, checks all that can be checked, and launches."""

import json
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vpo.engines.verl.export import TRAIN, Export, write_export
from vpo.engines.verl.fitting import is_stock
from vpo.engines.verl.versions import NEEDED, RANGES, check_versions
from vpo.methods import get as get_method
from vpo.training import runs
from vpo.training.config import TrainConfig
from vpo.training.prepare import resolve
from vpo.training.runs import Run
from vpo.training.verl_overrides import check_engine, overrides
from vpo.util.errors import InputError
from vpo.util.files import command_line, now, write_text
from vpo.util.signals import handling

DATA, COMMAND, MODULE = "verl", "command.sh", "verl.trainer.main_ppo"

# Says which packages a Python has, without importing any.
PROBE = f"""
import json
from importlib.metadata import PackageNotFoundError, version
found = {{}}
for name in {[*RANGES, *NEEDED.values(), "vpo"]!r}:
    try:
        found[name] = version(name)
    except PackageNotFoundError:
        found[name] = None
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Launched:
    """What became of a launch.

    Attributes:
        run: its folder.
        command: that trains, in a shell.
        code: that verl ended with; None where it was only checked.
    """

    run: Run
    command: list[str]
    code: int | None


def launch(config: TrainConfig, folder: str | Path, *, python: str | None = None, dry_run: bool = False) -> Launched:
    """Train under verl in a new run folder. What is wrong is said before verl starts, and leaves nothing.

    Args:
        config: of the run.
        folder: of the run.
        python: the one that has verl; this one by default.
        dry_run: write and check only.
    """
    python = _found(python)
    check_versions(_versions(python), python)
    check_engine(config)
    given = config
    config, model = resolve(given)
    config = replace(config, micro_batch=given.micro_batch, precision=given.precision)  # verl chooses its own
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
        shutil.rmtree(run.folder)  # nothing was trained, and the name is free again
        raise
    run.note({"command": command_line(), "versions": facts["versions"], "python": python})
    return Launched(run, command, None if dry_run else _start(run, command))


def relaunch(run: Run) -> Launched:
    """Start verl on a run again, which goes on from its own newest checkpoint; not on one that verl went through."""
    command = shlex.split((run.folder / DATA / COMMAND).read_text(encoding="utf-8"))
    if run.notes().get("code") == 0:
        return Launched(run, command, 0)
    _check(run, command[0], command[3:], machine=True)
    return Launched(run, command, _start(run, command))


def _start(run: Run, command: Sequence[str]) -> int:
    with run.lock():
        run.note_start({"began": now()})
        process = subprocess.Popen(command, cwd=run.folder)
        # What asks this process to end is handed on, so that verl never outlives the lock of its run.
        with handling((signal.SIGTERM, signal.SIGHUP), lambda *_: process.send_signal(signal.SIGTERM)):
            code = _wait(process)
        run.note({"ended": now(), "code": code})
    return code


def _wait(process: "subprocess.Popen[bytes]") -> int:
    """Wait for verl to end, which Ctrl-C reaches as well: it stops its own processes, and must not be killed at it."""
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue


def _found(python: str | None) -> str:
    """Return the path of a Python; a link stays one, since a virtual environment is known by it."""
    path = shutil.which(python or sys.executable)
    if path is None:
        raise InputError(f"{python}: there is no such Python (with verl)")
    return str(Path(path).absolute())


def _versions(python: str) -> dict[str, str | None]:
    ended = subprocess.run([python, "-c", PROBE], capture_output=True, text=True)
    try:
        found: dict[str, str | None] = json.loads(ended.stdout)
    except ValueError:
        raise InputError(f"{python}: this is not a Python that runs ({_last_line(ended.stderr)})") from None
    return found


def _check(run: Run, python: str, settings: Sequence[str], *, machine: bool) -> dict[str, Any]:
    """Run the checks in verl's Python, where verl will run, and return what they found."""
    command = [python, "-m", "vpo.engines.verl.check", *(["--machine"] if machine else []), "--", *settings]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=run.folder)
    last = _last_line(ended.stderr)
    if ended.returncode == 2 and last.startswith("vpo: error: "):
        raise InputError(last.removeprefix("vpo: error: "))
    if ended.returncode:
        raise InputError(f"{python}: verl could not be checked ({last}); see: {shlex.join(command[:4])} …")
    found: dict[str, Any] = json.loads(_last_line(ended.stdout))
    return found


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["nothing was said"])[-1]
