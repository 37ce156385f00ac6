"""`vpo warmup`: teach a model to write sets of answers in their tags."""

import argparse
import math

from vpo.cli.arguments import Commands, add_json, add_settings, as_json, plain, task_settings


def add(commands: Commands) -> None:
    """Add `vpo warmup`."""
    command = commands.add_parser(
        "warmup",
        help="teach a model to write sets of answers, before training it to write good ones",
        description="Fine-tune a model on sets of answers in their tags: on the task's demonstrations, or on the "
        "model's own single answers put together. For models whose parse rate is low. Writes a model that "
        "`vpo train TASK --model FOLDER` goes on from.",
    )
    command.add_argument("model", metavar="MODEL", help="folder of a model, its name on the hub, or `embedded`")
    command.add_argument("--task", required=True, metavar="NAME", help="a name from `vpo tasks`, or a .py file")
    command.add_argument("--out", required=True, metavar="FOLDER", help="a new folder for the model")
    command.add_argument(
        "--source",
        default="demonstrations",
        metavar="NAME",
        help="demonstrations, those of the task; or own, single answers of the model (demonstrations)",
    )
    add_settings(command)
    command.add_argument("--answers", type=int, default=3, metavar="M", help="answers of a set (3)")
    command.add_argument(
        "--single-steps",
        type=int,
        default=0,
        metavar="N",
        help="steps on single gold answers first, for a model that cannot do the task yet (0)",
    )
    command.add_argument("--set-problems", type=int, default=500, metavar="N", help="problems to learn sets from (500)")
    command.add_argument("--set-steps", type=int, default=100, metavar="N", help="steps on sets (100)")
    command.add_argument("--batch", type=int, default=16, metavar="N", help="sets a step (16)")
    command.add_argument(
        "--micro-batch", type=int, metavar="N", help="sets in one backward pass (4, or what of it divides the batch)"
    )
    command.add_argument("--warmup-learning-rate", type=float, default=1e-5, metavar="RATE", help="its peak (1e-5)")
    command.add_argument("--max-tokens", type=int, default=256, metavar="N", help="room for an answer (256)")
    command.add_argument("--seed", type=int, default=0, help="of everything (0)")
    add_json(command)
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Warm a model up, and print what it did to the parse rate."""
    from vpo.models.warmup import Warmup, warm_up

    warmup = Warmup(
        answers=options.answers,
        source=options.source,
        single_steps=options.single_steps,
        set_problems=options.set_problems,
        set_steps=options.set_steps,
        batch=options.batch,
        micro_batch=math.gcd(options.batch, 4) if options.micro_batch is None else options.micro_batch,
        warmup_learning_rate=options.warmup_learning_rate,
        max_tokens=options.max_tokens,
        seed=options.seed,
    )
    done = warm_up(options.model, options.task, task_settings(options), options.out, warmup)
    if options.json:
        print(as_json({**done, "model": options.out}))
        return 0
    lines = [
        f"{done['sets']} sets, loss {done['loss'][0]} → {done['loss'][-1]}; of the answers asked for in sets "
        f"{done['readable_before']:.0%} could be read before, {done['readable_after']:.0%} now"
    ]
    if done["left_out"]:
        lines.append(f"note: {done['left_out']} gold answers or sets of them do not fit into --max-tokens: left out")
    if done["sets_that_repeat"] > 0.5:
        lines.append(
            f"note: {done['sets_that_repeat']:.0%} of the sets repeat an answer, and teach that too: the task has one "
            "gold answer a problem; --source own has different ones"
        )
    lines.append(f"written to {options.out}; next: vpo train {options.task} --model {options.out}")
    print(plain("\n".join(lines)))
    return 0
