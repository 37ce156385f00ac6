"""`vpo warmup`: teach a model to write sets of answers in the form of its prompts."""

import argparse
import math

from vpo.cli.arguments import (
    Commands,
    add_examples,
    add_json,
    add_model,
    add_out,
    add_task_option,
    add_task_settings,
    needed_task,
    task_settings,
)
from vpo.cli.fields import add_fields, given_fields
from vpo.cli.output import as_json, plain
from vpo.models.warmup import WarmupConfig

FIELDS = (
    *("answers", "source", "split", "single_steps", "set_steps", "set_problems", "warmup_learning_rate", "max_tokens"),
    *("batch", "micro_batch", "seed"),
)


def add(commands: Commands) -> None:
    """Add `vpo warmup`."""
    command = commands.add_parser(
        "warmup",
        help="teach a model to write sets of answers, before training it to write good ones",
        description="Fine-tune a model on sets of answers in the form of its prompts (--format): on the task's "
        "demonstrations, or on the model's own single answers put together. For models that often fail to write sets "
        "in that form. Then train the result with `vpo train TASK --model PATH`.",
    )
    add_model(command)
    add_task_option(command, "required")
    add_task_settings(command)
    add_out(command, "a new folder for the model")
    add_fields(command, WarmupConfig, FIELDS)
    add_json(command)
    add_examples(
        command,
        "vpo warmup HuggingFaceTB/SmolLM2-135M-Instruct --task maze --out warm",
        "vpo warmup MODEL --task toolrl --data rlla_4k/ --source own --out warm",
        "vpo train maze --model warm   # then train the result",
    )
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Warm a model up, and print what it did to the parse rate."""
    from vpo.models.warmup import warm_up

    task, given = needed_task(options), given_fields(options, WarmupConfig)
    given.setdefault("micro_batch", math.gcd(given.get("batch", WarmupConfig.batch), WarmupConfig.micro_batch))
    done = warm_up(options.model, task, task_settings(options), options.out, WarmupConfig(**given))
    if options.json:
        print(as_json({**done, "model": options.out}))
        return 0
    lines = [
        f"{done['sets']} sets, loss {done['loss'][0]} → {done['loss'][-1]}; of the answers asked for in sets "
        f"{done['readable_before']:.0%} could be read before, {done['readable_after']:.0%} now"
    ]
    if done["left_out"]:
        lines.append(f"note: {done['left_out']} gold answers or sets of them are longer than --max-tokens: skipped")
    if done["sets_that_repeat"] > 0.5:
        lines.append(
            f"note: {done['sets_that_repeat']:.0%} of the sets repeat an answer, and teach that too: the task has one "
            "gold answer a problem; --source own has different ones"
        )
    which = f"--task-file {task}" if task.endswith(".py") else task
    lines.append(f"written to {options.out}; next: vpo train {which} --model {options.out}")
    print(plain("\n".join(lines)))
    return 0
