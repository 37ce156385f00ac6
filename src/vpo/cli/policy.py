"""`vpo policy build`: make the small policy of a task from nothing."""

import argparse

from vpo.cli.arguments import Commands, add_json, as_json
from vpo.util.errors import InputError


def add(commands: Commands) -> None:
    """Add `vpo policy`."""
    policy = commands.add_parser(
        "policy", help="make the small policy of a task from nothing", description="Small policies that ship with vpo."
    )
    verbs = policy.add_subparsers(title="commands", required=True, metavar="COMMAND")
    build = verbs.add_parser(
        "build",
        help="make a policy from demonstrations",
        description="Make the small policy of a task from nothing: demonstrations, then supervised training. For maze "
        "of size 9, on one H200 with 16 cores and another run beside it: 57 s for the demonstrations, 386 s to train.",
    )
    build.add_argument("task", metavar="TASK", help="maze")
    build.add_argument("--out", required=True, metavar="FOLDER", help="a new folder for the policy")
    build.add_argument("--size", type=int, default=9, help="of the mazes (9)")
    build.add_argument(
        "--mazes", type=int, default=80_000, metavar="N", help="to learn from, four examples each (80000)"
    )
    build.add_argument("--steps", type=int, default=8_000, metavar="N", help="of training (8000)")
    build.add_argument("--batch", type=int, default=512, metavar="N", help="examples a step (512)")
    build.add_argument("--seed", type=int, default=0, help="of the weights and the order of examples (0)")
    build.add_argument("--goals", action="store_true", help="let it learn to be told a weighting, for goal_conditioned")
    build.add_argument(
        "--width", type=int, metavar="N", help="of its layers, a multiple of 32 (that of the shipped one)"
    )
    add_json(build)
    build.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Build a policy and print what was done."""
    from vpo.models.build import build_maze

    if options.task != "maze":
        raise InputError(f"no policy can be built for task {options.task!r}: there is one for maze")
    done = build_maze(
        options.out,
        size=options.size,
        mazes=options.mazes,
        steps=options.steps,
        batch=options.batch,
        seed=options.seed,
        goals=options.goals,
        width=options.width,
    )
    if options.json:
        print(as_json({**done, "policy": options.out}))
    else:
        print(
            f"{done['parameters']:,} parameters, {done['examples']:,} examples, loss {done['loss'][-1]}; on "
            f"{done['device']} {done['seconds_for_demonstrations']} s for demonstrations and "
            f"{done['seconds_for_training']} s for training\n"
            f"written to {options.out}; next: vpo eval {options.out} "
        )
    return 0
