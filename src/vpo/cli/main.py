"""The command line: finds the command, runs it, turns wrong input into one line and exit code 2."""

import argparse
import difflib
import io
import os
import sys
import warnings
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from vpo import __version__
from vpo.cli import (
    compare,
    diagnose,
    doctor,
    evaluate,
    export,
    import_pool,
    measure,
    policy,
    reproduce,
    rewards,
    score,
    search,
    select,
    serve,
    tasks,
    train,
    warmup,
    watch,
)
from vpo.cli.arguments import HelpFormatter
from vpo.cli.imports import announced_imports
from vpo.util.errors import InputError
from vpo.util.packages import install_command
from vpo.util.processes import OtherProcessError, check_alone

# What `vpo` prints: the way from a task to answers, with commands that work in this order.
JOURNEY = (
    ("vpo tasks", "the tasks, and what each one scores"),
    ("vpo eval embedded --task maze", "how good a model is before training"),
    ("vpo train maze", "train it; look on with: vpo watch runs/maze-vpo"),
    ("vpo eval runs/maze-vpo", "how good it is after training"),
    ("vpo compare runs/maze-embedded runs/maze-vpo", "both side by side: a table and a page"),
    ("vpo search runs/maze-vpo --target gold=1", "spend a budget on it, for a goal chosen afterwards"),
)
# In the order of `vpo --help`.
GROUPS = {
    "from a task to answers": (tasks, evaluate, train, watch, compare, search),
    "more on training": (warmup, reproduce, policy, export, serve),
    "answers that you have": (import_pool, score, measure, diagnose, select, rewards),
    "this machine": (doctor,),
}
# Packages of the extra `train`, and those that they install.
TRAIN = (
    *("torch", "transformers", "trl", "datasets", "accelerate", "peft", "tomli_w"),
    *("tokenizers", "safetensors", "huggingface_hub", "packaging"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `vpo`. Returns the exit code: 0, 1 where a check failed, 2 for wrong input."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # show characters that the terminal lacks by their numbers
            stream.reconfigure(errors="backslashreplace")
    arguments = sys.argv[1:] if arguments is None else arguments
    if not arguments:
        print(journey())
        return 0
    options = parser().parse_args(arguments)
    warnings.formatwarning = _formatted
    try:
        if options.run is not train.run:
            check_alone("this command")
        with announced_imports():
            code: int = options.run(options)
        sys.stdout.flush()
    except OtherProcessError:
        return 2  # that process prints the error
    except (InputError, OSError) as error:
        if isinstance(error, BrokenPipeError):  # the reader, such as `head`, stopped reading
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        print(f"vpo: error: {_reason(error)}", file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        if error.name not in TRAIN:
            raise
        print(f"vpo: error: this command needs {error.name}: {install_command('train')}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("vpo: interrupted", file=sys.stderr)
        return 130
    return code


def _reason(error: Exception) -> str:
    """What an error says: of one of the system, the file and the reason, without its number."""
    named = isinstance(error, OSError) and error.filename is not None and error.strerror
    return f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and named else str(error)


def _formatted(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """Format a warning to the user as one line, without the line of code that raised it."""
    if category is UserWarning:
        return f"vpo: warning: {message}\n"
    return f"{filename}:{lineno}: {category.__name__}: {message}\n"


class Parser(argparse.ArgumentParser):
    """Takes options by their whole names: an abbreviation would be a second name. Errors are one line, with a hint."""

    def __init__(self, **settings: Any) -> None:
        """As `argparse.ArgumentParser`."""
        super().__init__(**settings, allow_abbrev=False, formatter_class=HelpFormatter)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """As `argparse.ArgumentParser`, but nothing may be left over: each command refuses what it does not know."""
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"argument {unknown[0]!r} is not known{_similar(unknown[0], self._option_string_actions)}")
        return options, unknown

    def error(self, message: str) -> NoReturn:
        """End with the message alone: the usage of a command may fill the screen."""
        self.exit(2, f"{self.prog}: error: {message} (see `{self.prog} --help`)\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            raise argparse.ArgumentError(action, f"{value!r} is not known{_similar(value, action.choices)}")


def _similar(name: str, known: Iterable[str]) -> str:
    """A hint where a known name is similar."""
    similar = difflib.get_close_matches(name.partition("=")[0], list(known), n=1)
    return f": did you mean {similar[0]!r}?" if similar else ""


def parser() -> argparse.ArgumentParser:
    """Make the parser of all commands."""
    vpo = Parser(
        prog="vpo",
        usage="vpo [-h] [--version] COMMAND ...",
        description="Vector Policy Optimization: train language models to write sets of different good answers.",
    )
    vpo.add_argument("--version", action="version", version=f"vpo {__version__}")
    # argparse would list all commands in one group.
    commands = vpo.add_subparsers(prog="vpo", required=True, metavar="COMMAND", help=argparse.SUPPRESS)
    parts = []
    for title, modules in GROUPS.items():
        before = len(commands.choices)
        for module in modules:
            module.add(commands)
        added = list(commands._get_subactions())[before:]  # the names with their help texts
        parts.append("\n".join([f"{title}:", *(f"  {each.dest:10} {each.help}" for each in added)]))
    parts.append("`vpo COMMAND --help` explains a command, with examples.")
    vpo.epilog = "\n\n".join(parts)
    return vpo


def journey() -> str:
    """The way from a task to answers, a command a line."""
    width = max(len(command) for command, _ in JOURNEY)
    return "\n".join(
        [
            "vpo trains language models to write sets of different good answers. In this order:",
            "",
            *(f"  {command:{width}}  # {meaning}" for command, meaning in JOURNEY),
            "",
            "`vpo --help` lists all commands, and `vpo COMMAND --help` explains one.",
        ]
    )
