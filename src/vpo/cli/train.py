"""`vpo train`: train a policy on a task, in a run folder."""

import argparse
import shlex
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from vpo.cli.arguments import Commands, add_json, add_settings, as_json, names, plain, setting
from vpo.util import processes
from vpo.util.errors import InputError
from vpo.util.row_files import SUFFIXES

if TYPE_CHECKING:
    from vpo.training.train import Outcome
    from vpo.training.verl_launch import Launched

TABLES = {"set": "task_settings", "method_set": "method_settings", "trainer_set": "trainer"}


def add(commands: Commands) -> None:
    """Add `vpo train`."""
    command = commands.add_parser(
        "train",
        argument_default=argparse.SUPPRESS,  # what is not given is left to the config file, then to the defaults
        help="train a policy on a task",
        description="Train a policy on a task with a stock TRL trainer on whatever this machine has, or with verl. The "
        "run folder holds the settings, a line of metrics a step, sampled rollouts, checkpoints and the model.",
        epilog="Ctrl-C saves a checkpoint and stops. An interrupted run, killed or not, goes on with --resume RUN and "
        "ends where it would have ended; on a CPU, bit for bit.",
    )
    command.add_argument("task", nargs="?", metavar="TASK", help="a name from `vpo tasks`, or a .py file")
    command.add_argument("--resume", metavar="RUN", help="go on with a run; its own settings hold")
    command.add_argument("--config", metavar="FILE", help="TOML file of settings; those given here come first")
    command.add_argument("--out", metavar="RUN", help="a new folder for the run (runs/TASK-METHOD)")
    what = command.add_argument_group("what to train")
    what.add_argument("--method", metavar="NAME", help="vpo, grpo, gdpo, max_at_k, … (vpo)")
    what.add_argument("--model", help="folder, run, name on the hub, or `embedded` for the task's own (embedded)")
    add_settings(what, argparse.SUPPRESS)
    what.add_argument(
        "--prompts",
        type=_prompts,
        metavar="FILE",
        help="file of the prompts of task chat, .jsonl, .jsonl.gz or .parquet",
    )
    what.add_argument("--rewards", metavar="FILE", help="TOML file of the rewards of task chat, see docs/rewards.md")
    what.add_argument("--split", help="the problems to train on (train)")
    what.add_argument("--problems", type=int, metavar="N", help="how many of them (all)")
    what.add_argument("--answers", type=int, metavar="M", help="answers a completion is asked for (the method's own)")
    what.add_argument("--target", metavar="NAME=W,…", help="the weighting that is deployed (the task's own)")
    how = command.add_argument_group("how long, and how")
    how.add_argument("--steps", type=int, metavar="N", help="of the optimiser (100)")
    how.add_argument("--prompts-per-step", type=int, metavar="P", help="problems a step (32)")
    how.add_argument("--group", type=int, metavar="G", help="rollouts per problem (8)")
    how.add_argument("--learning-rate", type=float, metavar="RATE", help="1e-4 embedded, 1e-5 LoRA, else 1e-6")
    how.add_argument("--schedule", metavar="NAME", help="of the learning rate (constant_with_warmup)")
    how.add_argument("--warmup-steps", type=int, metavar="N", help="over which the learning rate rises (10)")
    how.add_argument("--kl", type=float, metavar="BETA", help="weight of the KL term (0 embedded, else 1e-3)")
    how.add_argument("--temperature", type=float, help="of the rollouts (1)")
    how.add_argument("--top-p", type=float, help="of the rollouts (1)")
    how.add_argument("--max-tokens", type=int, metavar="N", help="room for each answer (256)")
    how.add_argument("--lora", type=int, metavar="RANK", help="train a low-rank adapter (0: all weights)")
    how.add_argument("--seed", type=int, help="of everything (0)")
    machine = command.add_argument_group("on which machine")
    machine.add_argument("--micro-batch", type=int, metavar="N", help="rollouts in a backward pass (G; embedded: all)")
    machine.add_argument("--precision", metavar="NAME", help="auto, float32, mixed or, with --lora, bfloat16 (auto)")
    machine.add_argument("--generator", metavar="NAME", help="of the rollouts: transformers or vllm (transformers)")
    machine.add_argument(
        "--vllm-mode", metavar="MODE", help="vLLM in this process (colocate) or a server that runs already (server)"
    )
    log = command.add_argument_group("what to keep")
    log.add_argument("--save-every", type=int, metavar="N", help="steps between checkpoints (20)")
    log.add_argument("--keep-checkpoints", type=int, metavar="N", help="how many stay (2)")
    log.add_argument("--rollouts-every", type=int, metavar="N", help="steps between sampled rollouts (10)")
    log.add_argument("--report-to", type=names, metavar="NAME,…", help="tensorboard, wandb, trackio")
    more = command.add_argument_group("further settings, each may be given again")
    more.add_argument(
        "--method-set", action="append", type=setting, metavar="KEY=VALUE", help="of the method: concentration=0.5"
    )
    more.add_argument(
        "--trainer-set", action="append", type=setting, metavar="KEY=VALUE", help="of trl.GRPOConfig, or of verl"
    )
    other = command.add_argument_group("another engine")
    other.add_argument("--engine", metavar="NAME", help="trl, or verl in an environment of its own (trl)")
    other.add_argument("--python", metavar="PATH", help="the Python that has verl (this one)")
    other.add_argument("--dry-run", action="store_true", help="write what verl needs and check it, do not launch")
    add_json(command)
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Train, and print where the run is."""
    given = dict(vars(options))
    for name in ("run", "json"):
        given.pop(name)
    if "resume" in given:
        folder = given.pop("resume")
        with processes.together():
            if given:
                raise InputError(f"a resumed run keeps its settings: give --resume {folder} without {', '.join(given)}")
        return _resume(folder, json=options.json)
    verl = {name: given.pop(name) for name in ("python", "dry_run") if name in given}
    from vpo.tasks import find
    from vpo.training.config import config_of

    with processes.together():
        settings, out = _settings(given)
        config = config_of(settings)
        out = out or f"runs/{find(config.task).name}-{config.method}"
        if verl and config.engine != "verl":
            raise InputError(f"{' and '.join(verl)} can be given with --engine verl only")
    if config.engine == "verl":
        processes.check_alone("vpo train --engine verl")
        from vpo.training.verl_launch import launch

        return _report_verl(launch(config, out, **verl), json=options.json)
    from vpo.training.train import train

    return _report(train(config, out), json=options.json)


def _resume(folder: str, *, json: bool) -> int:
    from vpo.training.runs import find
    from vpo.training.train import resume

    with processes.together():
        run = find(folder)
        engine = run.config().engine
    if engine == "verl":
        processes.check_alone("vpo train --engine verl")
        from vpo.training.verl_launch import relaunch

        return _report_verl(relaunch(run), json=json)
    return _report(resume(folder), json=json)


def _settings(given: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    """Return the settings of a config, those of the file under those of the options, and the folder."""
    from vpo.core.targets import parse_target
    from vpo.training.config import read_settings

    out = given.pop("out", None)
    settings = read_settings(given.pop("config")) if "config" in given else {}
    tables = {table: dict(given.pop(flag, [])) for flag, table in TABLES.items()}
    for name in ("data", "prompts", "rewards"):
        if name in given:
            tables["task_settings"][name] = given.pop(name)
    if "answers" in given:
        tables["method_settings"]["answers"] = given.pop("answers")
    if "target" in given:
        given["target"] = parse_target(given["target"])
    if given.get("method", settings.get("method")) != settings.get("method"):
        settings.pop("method_settings", None)  # those of the file are another method's
    for table, values in tables.items():
        given[table] = {**settings.get(table, {}), **values}
    return {**settings, **given}, out


def _report(outcome: "Outcome", *, json: bool) -> int:
    if processes.is_main():
        _print(outcome, json=json)
    processes.leave()
    return 0 if outcome.finished else 130


def _print(outcome: "Outcome", *, json: bool) -> None:
    folder = shlex.quote(str(outcome.run.folder))
    config = outcome.run.config()
    if json:
        data = {
            "run": str(outcome.run.folder),
            "steps": outcome.steps,
            "finished": outcome.finished,
            "config": asdict(config),
        }
        print(as_json(data))
    elif outcome.finished:
        print(plain(f"{folder}: {outcome.steps} steps done, the model is in {folder}/model; next: vpo eval {folder}"))
    else:
        print(
            plain(
                f"{folder}: stopped after step {outcome.steps} of {config.steps}, with a checkpoint; go on with: "
                f"{processes.command()} train --resume {folder}"
            )
        )


def _report_verl(launched: "Launched", *, json: bool) -> int:
    from vpo.training.verl_launch import COMMAND, DATA

    folder, code = launched.run.folder, launched.code
    if json:
        print(as_json({"run": str(folder), "command": launched.command, "code": code}))
    elif code is None:
        print(plain(f"{folder}: checked, and not launched; {folder / DATA / COMMAND} is the command"))
    elif code == 0:
        print(plain(f"{folder}: verl is done, and its checkpoints are in {launched.run.checkpoints}"))
    else:
        print(plain(f"{folder}: verl ended with code {code}; go on with: vpo train --resume {folder}"))
    return 0 if not code else 1


def _prompts(text: str) -> str:
    if not text.endswith(SUFFIXES):
        raise argparse.ArgumentTypeError(
            f"must be a file that ends in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}, not {text!r}; "
            "--prompts-per-step is a number"
        )
    return text
