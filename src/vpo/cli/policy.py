"""`vpo policy build`: build the small policy of a task from scratch."""

import argparse

from vpo.cli.arguments import Commands, add_examples, add_json, add_out
from vpo.cli.fields import add_fields, given_fields
from vpo.cli.output import as_json
from vpo.models.build_config import BuildConfig
from vpo.util.errors import InputError


def add(commands: Commands) -> None:
    """Add `vpo policy`."""
    policy = commands.add_parser(
        "policy",
        help="build the small policy of a task from scratch",
        description="Small policies, as they come with vpo.",
    )
    add_examples(policy, "vpo policy build maze --size 7 --out policy")
    verbs = policy.add_subparsers(title="commands", required=True, metavar="COMMAND")
    build = verbs.add_parser(
        "build",
        help="build a policy from demonstrations",
        description="Build the small policy of a task from scratch: demonstrations, then supervised training. For "
        "mazes of size 9 this takes about 7 minutes on an H200 with 16 cores.",
    )
    build.add_argument("task", metavar="TASK", help="maze")
    add_out(build, "a new folder for the policy")
    add_fields(build, BuildConfig, ("size", "mazes", "steps", "batch", "seed", "goals", "width"))
    add_json(build)
    add_examples(build, "vpo policy build maze --size 7 --mazes 2000 --steps 200 --out policy")
    build.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Build a policy and print its size, its loss and the time taken."""
    from vpo.models.build import build_maze

    if options.task != "maze":
        raise InputError(f"task must be maze, the only task with a small policy, not {options.task!r}")
    done = build_maze(options.out, BuildConfig(**given_fields(options, BuildConfig)))
    if options.json:
        print(as_json({**done, "policy": options.out}))
    else:
        print(
            f"{done['parameters']:,} parameters, {done['examples']:,} examples, loss {done['loss'][-1]}; on "
            f"{done['device']} {done['seconds_for_demonstrations']} s for demonstrations and "
            f"{done['seconds_for_training']} s for training\n"
            f"written to {options.out}; next: vpo eval {options.out}"
        )
    return 0
