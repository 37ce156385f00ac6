"""What `vpo train` prints at its end, and the exit code that it returns."""

import shlex
from dataclasses import asdict
from typing import TYPE_CHECKING

from vpo.cli.output import as_json, plain
from vpo.util import processes

if TYPE_CHECKING:
    from vpo.training.train import TrainResult
    from vpo.training.verl_launch import LaunchResult


def report(result: "TrainResult", *, json: bool) -> int:
    """Print the result once for all processes; 130 where the run was stopped."""
    if processes.is_main():
        print(as_json(_data(result)) if json else plain(_text(result)))
    processes.leave()
    return 0 if result.finished else 130


def report_verl(launched: "LaunchResult", *, json: bool) -> int:
    """Print how verl ended; 1 where it failed."""
    from vpo.training.verl_launch import COMMAND, DATA

    folder, code = launched.run.folder, launched.code
    if json:
        print(as_json({"run": str(folder), "command": launched.command, "code": code}))
    elif code is None:
        print(plain(f"{folder}: checked, and not launched; {folder / DATA / COMMAND} is the command"))
    elif code == 0:
        print(plain(f"{folder}: verl is done, and its checkpoints are in {launched.run.checkpoints}"))
    else:
        print(plain(f"{folder}: verl ended with code {code}; continue with: vpo train --resume {folder}"))
    return 0 if not code else 1


def _data(result: "TrainResult") -> dict[str, object]:
    from vpo.training.best import best_facts

    run = result.run
    return {
        "run": str(run.folder),
        "steps": result.steps,
        "finished": result.finished,
        "best": best_facts(run),
        "config": asdict(run.config()),
    }


def _text(result: "TrainResult") -> str:
    from vpo.training.best import best_facts

    folder = shlex.quote(str(result.run.folder))
    if result.finished:
        best = best_facts(result.run)
        kept = best and f", the best ({best['measure']} {best['value']:.3f}, step {best['step']}) in {folder}/best"
        models = f"the model is in {folder}/model{kept or ''}"
        return f"{folder}: {result.steps} steps done, {models}; next: vpo eval {folder}"
    steps, resume = result.run.config().steps, f"{processes.command()} train --resume {folder}"
    return f"{folder}: stopped after step {result.steps} of {steps}, with a checkpoint; continue with: {resume}"
