"""`vpo serve`: put a trained model behind an OpenAI-compatible endpoint."""

import argparse
import json
import shlex
import sys
from pathlib import Path

from vpo.cli.arguments import (
    Commands,
    add_examples,
    add_model,
    add_task_option,
    add_task_settings,
    task_flags,
    task_name,
    task_settings,
)
from vpo.training.config import GENERATORS


def add(commands: Commands) -> None:
    """Add `vpo serve`."""
    command = commands.add_parser(
        "serve",
        help="put a model behind an OpenAI-compatible endpoint",
        description="Serve a model with `transformers serve` or with vLLM, until Ctrl-C. Requests name the model by "
        "the name of its folder.",
    )
    add_model(command, "a run, a model folder")
    add_task_option(command)
    add_task_settings(command)
    command.add_argument(
        "--generator",
        default="transformers",
        metavar="|".join(GENERATORS),
        help="what samples the completions (default: transformers)",
    )
    command.add_argument(
        "--host", default="127.0.0.1", metavar="ADDRESS", help="address to listen on (default: 127.0.0.1)"
    )
    command.add_argument("--port", type=int, default=8000, metavar="N", help="port to listen on (default: 8000)")
    add_examples(
        command,
        "vpo serve runs/maze-vpo",
        "vpo serve runs/toolrl-vpo --generator vllm --port 8001",
    )
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve a model until it is stopped."""
    from vpo.models.locate import locate
    from vpo.models.serve import serve

    task, settings = task_name(options), task_settings(options)
    located = locate(options.model, task, settings)
    name = Path(options.model).absolute().name
    address = f"http://{options.host}:{options.port}/v1"

    def ready() -> None:
        flags = task_flags(task) if task else []
        for key, value in settings.items():
            flags += ["--data", value] if key == "data" else ["--set", f"{key}={json.dumps(value)}"]
        if located.format.prefill:
            flags.append("--no-prefill")
            print(f"vpo: {name} was trained with --prefill, and a server does not force tags", file=sys.stderr)
        again = shlex.join(["vpo", "search", options.model, *flags, "--endpoint", address])
        print(f"{name} is served at {address}; search with it: {again}", file=sys.stderr, flush=True)

    return serve(located, name, options.generator, options.host, options.port, ready)
