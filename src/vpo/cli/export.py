"""`vpo export`: a task's prompts and rewards as files for a trainer that runs elsewhere."""

import argparse
from typing import TYPE_CHECKING

from vpo.cli.arguments import (
    Commands,
    add_examples,
    add_json,
    add_method_settings,
    add_out,
    add_target,
    add_task,
    add_task_settings,
    method_settings,
    needed_task,
    target_of,
    task_settings,
)
from vpo.cli.fields import add_fields, given_fields
from vpo.cli.output import as_json, plain
from vpo.training.config import TrainConfig
from vpo.util.errors import InputError

if TYPE_CHECKING:
    from vpo.engines.verl.export import Export


def add(commands: Commands) -> None:
    """Add `vpo export` and what it exports to."""
    command = commands.add_parser(
        "export",
        help="write a task's prompts and rewards for another trainer",
        description="Write the files that a trainer on another machine needs. `vpo train --engine verl` includes this.",
    )
    add_examples(command, "vpo export verl maze --out verl-data")
    trainers = command.add_subparsers(title="trainers", required=True, metavar="TRAINER")
    verl = trainers.add_parser(
        "verl",
        help="Parquet files in verl's schema, and the settings of its reward function",
        description="Write a folder with train.parquet, test.parquet (with --test-split) and settings.json, the "
        "settings of vpo.engines.verl.reward. Prints the settings to pass to verl.",
    )
    add_task(verl)
    add_task_settings(verl)
    add_out(verl, "a new folder")
    add_fields(verl, TrainConfig, ("method",))
    add_method_settings(verl)
    add_fields(verl, TrainConfig, ("split", "problems"))
    verl.add_argument("--test-split", metavar="SPLIT", help="the split that verl validates on (default: none)")
    verl.add_argument("--test-problems", type=int, metavar="N", help="how many problems of --test-split (default: all)")
    add_fields(verl, TrainConfig, ("group", "max_tokens", "seed"))
    verl.add_argument(
        "--stock",
        action="store_true",
        help="train with verl's own trainers, not with the trainer of vpo's plugin for verl",
    )
    add_target(verl, "the task's")
    add_json(verl)
    add_examples(
        verl,
        "vpo export verl maze --method vpo --out verl-data",
        "vpo export verl gsm8k --data hub --test-split test --test-problems 100 --out verl-data",
    )
    verl.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the folder, and print the settings for verl."""
    from pathlib import Path

    from vpo.engines.verl.compatibility import ROLLOUT, required_settings
    from vpo.engines.verl.export import TEST, TRAIN, write_export
    from vpo.tasks import get
    from vpo.training.verl_overrides import hydra

    name, test = needed_task(options), options.test_split
    config = TrainConfig(task=_resolved(name), **given_fields(options, TrainConfig))
    export = _export(options, config)
    method, folder = export.method, Path(options.out).absolute()
    needed = get(export.task, **export.task_settings).answer_tokens
    longest = (config.max_tokens or needed) * method.answers
    verl = {
        "data.train_files": str(folder / TRAIN),
        "data.val_files": str(folder / (TEST if test else TRAIN)),
        "data.max_response_length": longest,
        f"{ROLLOUT}.n": config.group,
        **required_settings(method, folder, stock=options.stock, longest=longest),
    }
    rows = write_export(export, folder, train=config.split, test=test)
    lines = [f"{name}={hydra(value)}" for name, value in verl.items()]
    if options.json:
        print(as_json({"folder": str(folder), "rows": rows, "settings": lines}))
    else:
        written = ", ".join(f"{name} of {count} rows" for name, count in rows.items())
        print(plain("\n".join([f"{folder}: {written}. Give to python -m verl.trainer.main_ppo:", *lines])))
    return 0


def _resolved(task: str) -> str:
    """The name of a task, or the absolute path of its file: verl runs in another folder."""
    from vpo.models.locate import absolute

    return absolute(task) if task.endswith(".py") else task


def _export(options: argparse.Namespace, config: TrainConfig) -> "Export":
    from vpo.engines.verl.export import Export
    from vpo.methods import get as get_method
    from vpo.models.locate import absolute
    from vpo.tasks import get

    settings, test = task_settings(options), options.test_split
    if "data" in settings:
        settings["data"] = absolute(settings["data"])
    task = get(config.task, **settings)
    if options.test_problems is not None and test is None:
        raise InputError("test_problems needs test_split")
    if test == config.split:
        raise InputError(f"test_split must differ from split, and both are {test!r}")
    return Export(
        task=config.task,
        task_settings=settings,
        method=get_method(config.method, **method_settings(options)),
        target=target_of(options) or task.target,
        group=config.group,
        seed=config.seed,
        counts={config.split: config.problems} | ({test: options.test_problems} if test else {}),
        stock=options.stock,
    )
