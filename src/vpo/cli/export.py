"""`vpo export`: a task's prompts and rewards as files for a trainer that runs elsewhere."""

import argparse

from vpo.cli.arguments import Commands, add_json, add_settings, add_target, as_json, plain, setting, task_settings
from vpo.util.errors import InputError


def add(commands: Commands) -> None:
    """Add `vpo export` and what it exports to."""
    command = commands.add_parser(
        "export",
        help="write a task's prompts and rewards for another trainer",
        description="Write what a trainer elsewhere needs. `vpo train --engine verl` does this by itself.",
    )
    trainers = command.add_subparsers(title="trainers", required=True, metavar="TRAINER")
    verl = trainers.add_parser(
        "verl",
        help="Parquet files in verl's schema, and the settings of its reward function",
        description="Write a folder: train.parquet, test.parquet where a split is named for it, and settings.json, by "
        "which vpo.engines.verl.reward pays. Prints the settings to give to verl.",
    )
    verl.add_argument("name", metavar="TASK", help="a name from `vpo tasks`, or a .py file that defines a task")
    verl.add_argument("--out", required=True, metavar="FOLDER", help="a new folder")
    verl.add_argument("--method", default="vpo", metavar="NAME", help="vpo, grpo, gdpo, max_at_k, … (vpo)")
    verl.add_argument("--answers", type=int, metavar="M", help="answers a completion is asked for (the method's own)")
    verl.add_argument(
        "--method-set",
        action="append",
        default=[],
        type=setting,
        metavar="KEY=VALUE",
        help="a setting of the method, such as concentration=0.5; may be given again",
    )
    verl.add_argument("--split", default="train", help="the problems to train on (train)")
    verl.add_argument("--problems", type=int, metavar="N", help="how many of them (all)")
    verl.add_argument("--test-split", metavar="SPLIT", help="the problems that verl validates on (none)")
    verl.add_argument("--test-problems", type=int, metavar="N", help="how many of them (all)")
    verl.add_argument("--group", type=int, default=8, metavar="G", help="rollouts per problem (8)")
    verl.add_argument("--max-tokens", type=int, default=256, metavar="N", help="room for each answer (256)")
    verl.add_argument("--seed", type=int, default=0, help="of weightings that are drawn (0)")
    verl.add_argument("--stock", action="store_true", help="for verl's own trainers, without the plugin's")
    add_target(verl, "the task's own")
    add_settings(verl)
    add_json(verl)
    verl.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the folder, and print what verl is to be given."""
    from pathlib import Path

    from vpo.core.targets import parse_target
    from vpo.engines.verl.export import TEST, TRAIN, Export, write_export
    from vpo.engines.verl.fitting import ROLLOUT, fitting
    from vpo.methods import get as get_method
    from vpo.models.locate import absolute
    from vpo.tasks import get
    from vpo.training.verl_overrides import hydra

    settings = task_settings(options)
    if "data" in settings:
        settings["data"] = absolute(settings["data"])
    task = get(options.name, **settings)
    if options.test_problems is not None and options.test_split is None:
        raise InputError("test_problems needs test_split, the split that it counts")
    if options.test_split == options.split:
        raise InputError(f"test_split must be another than the split that is trained on, not {options.split!r}")
    counts = {options.split: options.problems}
    if options.test_split:
        counts[options.test_split] = options.test_problems
    chosen = dict(options.method_set) | ({} if options.answers is None else {"answers": options.answers})
    export = Export(
        task=absolute(options.name) if options.name.endswith(".py") else options.name,
        task_settings=settings,
        method=get_method(options.method, **chosen),
        target=parse_target(options.target) if options.target else task.target,
        group=options.group,
        seed=options.seed,
        counts=counts,
        stock=options.stock,
    )
    method, folder = export.method, Path(options.out).absolute()
    longest = options.max_tokens * method.answers
    given = {
        "data.train_files": str(folder / TRAIN),
        "data.val_files": str(folder / (TEST if options.test_split else TRAIN)),
        "data.max_response_length": longest,
        f"{ROLLOUT}.n": options.group,
        **fitting(method, folder, stock=options.stock, longest=longest),
    }
    rows = write_export(export, folder, train=options.split, test=options.test_split)
    lines = [f"{name}={hydra(value)}" for name, value in given.items()]
    if options.json:
        print(as_json({"folder": str(folder), "rows": rows, "settings": lines}))
    else:
        written = ", ".join(f"{name} of {count} rows" for name, count in rows.items())
        print(plain("\n".join([f"{folder}: {written}. Give to python -m verl.trainer.main_ppo:", *lines])))
    return 0
