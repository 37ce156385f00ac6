"""`vpo serve`: put a trained model behind an OpenAI-compatible endpoint."""

import argparse
import json
import shlex
import sys
from pathlib import Path

from vpo.cli.arguments import Commands, add_settings, task_settings


def add(commands: Commands) -> None:
    """Add `vpo serve`."""
    command = commands.add_parser(
        "serve",
        help="put a model behind an OpenAI-compatible endpoint",
        description="Serve a model by `transformers serve`, or by vLLM where it is installed, until it is stopped "
        "(Ctrl-C). It is asked for by the name of its folder.",
    )
    command.add_argument("model", metavar="MODEL", help="run, folder of a model, or `embedded` for the task's own")
    command.add_argument("--task", metavar="NAME", help="whose embedded policy to serve")
    add_settings(command)
    command.add_argument(
        "--generator", default="transformers", metavar="NAME", help="transformers or vllm (transformers)"
    )
    command.add_argument("--host", default="127.0.0.1", help="to listen on (127.0.0.1)")
    command.add_argument("--port", type=int, default=8000, help="to listen on (8000)")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve a model until it is stopped."""
    from vpo.models.locate import locate
    from vpo.models.serve import serve

    located = locate(options.model, options.task, task_settings(options))
    name = Path(options.model).absolute().name
    address = f"http://{options.host}:{options.port}/v1"

    def ready() -> None:
        given = [] if options.task is None else ["--task", options.task]
        given += [part for key, value in options.set for part in ("--set", f"{key}={json.dumps(value)}")]
        again = shlex.join(["vpo", "search", options.model, *given, "--endpoint", address])
        print(f"{name} is served at {address}; search with it: {again}", file=sys.stderr, flush=True)

    return serve(located, name, options.generator, options.host, options.port, ready)
