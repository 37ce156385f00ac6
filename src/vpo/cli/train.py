"""`vpo train`: train a policy on a task, in a run folder."""

import argparse
from typing import TYPE_CHECKING, Any

from vpo.cli.arguments import (
    ROWS,
    Commands,
    add_assignments,
    add_evaluator,
    add_examples,
    add_json,
    add_method_settings,
    add_out,
    add_target,
    add_task,
    add_task_settings,
    distinct,
    method_settings,
    target_of,
    task_name,
    task_settings,
)
from vpo.cli.fields import add_fields, given_fields
from vpo.cli.train_report import report, report_verl
from vpo.training.config import EVAL_SETTINGS, TrainConfig
from vpo.util import processes
from vpo.util.errors import InputError
from vpo.util.row_files import SUFFIXES

if TYPE_CHECKING:
    from vpo.training.moved import NewPaths

GROUPS = {
    "optimisation and sampling": (
        *("steps", "prompts_per_step", "group", "learning_rate", "schedule", "warmup_steps", "kl"),
        *("temperature", "top_p", "max_tokens", "prefill", "lora", "seed"),
    ),
    "memory and speed": ("micro_batch", "precision", "generator", "vllm_mode"),
    "evaluation while training": ("eval_every", *EVAL_SETTINGS),
    "checkpoints and logs": ("save_every", "keep_checkpoints", "rollouts_every", "report_to"),
}


def add(commands: Commands) -> None:
    """Add `vpo train`."""
    command = commands.add_parser(
        "train",
        help="train a policy on a task",
        description="Train a policy on a task, with a stock TRL trainer on this machine or with verl. The run folder "
        "holds the settings, a line of metrics for each step, sampled rollouts, checkpoints and the model.",
        epilog="Ctrl-C saves a checkpoint and stops. Resume an interrupted or killed run with --resume RUN: it ends "
        "as if it had not been interrupted; on a CPU, bit for bit.",
    )
    add_task(command)
    command.add_argument(
        "--resume",
        default=argparse.SUPPRESS,
        metavar="RUN",
        help="resume a run, with its settings; --model, --data and --task-file name what is elsewhere after a move",
    )
    command.add_argument(
        "--config", metavar="FILE", help="TOML file of settings, see docs/training.md; options override it"
    )
    add_out(command, "a new folder for the run", shown="runs/TASK-METHOD")
    what = command.add_argument_group("what to train")
    add_fields(what, TrainConfig, ("method",))
    add_method_settings(what)
    add_fields(what, TrainConfig, ("model",))
    add_task_settings(what)
    add_evaluator(what)
    for name, file in (("prompts", ROWS), ("rewards", ".toml, see docs/rewards.md")):
        what.add_argument(
            f"--{name}",
            default=argparse.SUPPRESS,
            type=_prompts_file if name == "prompts" else str,
            metavar="FILE",
            help=f"for the task chat: the file of {name}, {file}",
        )
    add_fields(what, TrainConfig, ("split", "problems"))
    add_target(what, "the task's")
    for title, names in GROUPS.items():
        add_fields(command.add_argument_group(title), TrainConfig, names)
    add_assignments(command, "--trainer-set", "a further setting of trl.GRPOConfig, or of verl")
    verl = command.add_argument_group("engine")
    add_fields(verl, TrainConfig, ("engine",))
    verl.add_argument(
        "--python", default=argparse.SUPPRESS, metavar="PATH", help="the Python that has verl (default: this one)"
    )
    verl.add_argument(
        "--dry-run",
        action="store_true",
        default=argparse.SUPPRESS,
        help="with --engine verl: write and check what verl needs, then stop",
    )
    add_json(command)
    add_examples(
        command,
        "vpo train maze                                            # the policy that ships with vpo, on a CPU",
        "vpo train maze --method vpo_marginal --steps 200 --seed 1 --out runs/mine",
        "vpo train toolrl --model Qwen/Qwen3-1.7B --data rlla_4k/ --lora 16",
        "vpo train chat --model MODEL --prompts prompts.jsonl --rewards rewards.toml",
        "vpo train gsm8k --model MODEL --data gsm8k/ --lora 16 --eval-every 20 --keep-best best@8",
        "vpo train --resume runs/maze-vpo",
        "vpo train --resume runs/gsm8k-vpo --model models/Qwen2.5-0.5B-Instruct     # moved to another machine",
    )
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Train, and print where the run is."""
    if "resume" in options:
        return _resume(options)
    from vpo.tasks import find
    from vpo.training.config import config_of

    verl = {name: value for name, value in vars(options).items() if name in ("python", "dry_run")}
    with processes.together():
        config = config_of(_settings(options))
        out = options.out or f"runs/{find(config.task).name}-{config.method}"
        if verl and config.engine != "verl":
            raise InputError(f"{' and '.join(verl)} can be given with --engine verl only")
    if config.engine == "verl":
        processes.check_alone("vpo train --engine verl")
        from vpo.training.verl_launch import launch

        return report_verl(launch(config, out, **verl), json=options.json)
    from vpo.training.train import train

    return report(train(config, out), json=options.json)


def _resume(options: argparse.Namespace) -> int:
    from vpo.training.runs import find
    from vpo.training.train import resume

    folder = options.resume
    with processes.together():
        paths = _new_paths(options)
        run = find(folder)
        engine = run.config().engine
        if engine == "verl" and paths.named():
            raise InputError(f"{folder}: a run under verl is resumed where it was, without {', '.join(paths.named())}")
    if engine == "verl":
        processes.check_alone("vpo train --engine verl")
        from vpo.training.verl_launch import relaunch

        return report_verl(relaunch(run), json=options.json)
    return report(resume(folder, paths), json=options.json)


def _new_paths(options: argparse.Namespace) -> "NewPaths":
    """Where the model and the data of a run that was moved are now; nothing else can be given with --resume."""
    from vpo.training.moved import NewPaths

    files = {**task_settings(options), **_named(options, "prompts", "rewards")}
    known = ("run", "json", "resume", "model", "task_file", "data", "evaluator", "start", "set", "prompts", "rewards")
    given = [name for name, value in vars(options).items() if name not in known and value is not None]
    if given:
        raise InputError(
            f"a resumed run keeps its settings: give --resume {options.resume} without {', '.join(given)}; only paths "
            "that have changed can be given (--model, --data, --task-file)"
        )
    paths = {name: str(path) for name, path in files.items()}
    return NewPaths(getattr(options, "model", None), getattr(options, "task_file", None), paths)


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    """The settings of the config file, and over them those of the options."""
    from vpo.training.config import read_settings

    settings = read_settings(options.config) if options.config else {}
    given = given_fields(options, TrainConfig)
    if task := task_name(options):
        given["task"] = task
    if target := target_of(options):
        given["target"] = target
    if given.get("method", settings.get("method")) != settings.get("method"):
        settings.pop("method_settings", None)  # those of the file are another method's
    tables = {
        "task_settings": {**task_settings(options), **_named(options, "prompts", "rewards")},
        "method_settings": method_settings(options),
        "trainer": distinct(getattr(options, "trainer_set", ()), "trainer_set"),
    }
    merged = {table: {**settings.get(table, {}), **values} for table, values in tables.items()}
    return {**settings, **given, **merged}


def _named(options: argparse.Namespace, *names: str) -> dict[str, Any]:
    return {name: getattr(options, name) for name in names if name in options}


def _prompts_file(text: str) -> str:
    if not text.endswith(SUFFIXES):
        raise argparse.ArgumentTypeError(
            f"must be a file that ends in {ROWS}, not {text!r}; --prompts-per-step is a number"
        )
    return text
