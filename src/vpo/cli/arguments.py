"""Options that several commands share, and what they print with."""

import argparse
import json
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from vpo.tasks import Task

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

POOLS = (
    "A pool is a .jsonl, .jsonl.gz or .parquet file, one row an answer: problem, generation, position, scores, and "
    "optionally solved, tokens, answer."
)


def add_task(command: argparse.ArgumentParser, *files: str, nested: bool = False) -> None:
    """Add what names a task and its problems, then positional files."""
    command.add_argument("name", metavar="NAME", help="a name from `vpo tasks`, or a .py file that defines a task")
    for file in files:
        command.add_argument(file, metavar=file.upper(), help=f"file of {file}, .jsonl, .jsonl.gz or .parquet")
    add_task_file(command, nested=nested)
    command.add_argument("--split", default="test", help="which problems (test)")
    add_settings(command)


def add_settings(command: argparse.ArgumentParser | argparse._ArgumentGroup, default: Any = ()) -> None:
    """Add `--data` and `--set`, the settings of a task."""
    data: Any = argparse.SUPPRESS if default is argparse.SUPPRESS else None
    where = "file or folder of the task's data, or hub, or hub:OWNER/NAME"
    command.add_argument("--data", default=data, metavar="PATH", help=where)
    command.add_argument(
        "--set",
        action="append",
        default=default if default is argparse.SUPPRESS else list(default),
        type=setting,
        metavar="KEY=VALUE",
        help="a setting of the task, such as size=13; may be given again",
    )


def add_task_file(command: argparse.ArgumentParser, *, nested: bool = False) -> None:
    """Add `--task FILE`."""
    default: Any = argparse.SUPPRESS if nested else []
    command.add_argument(
        "--task", action="append", default=default, metavar="FILE", help="make the task of a .py file known by its name"
    )


def add_target(command: argparse.ArgumentParser, default: str = "all alike") -> None:
    """Add `--target`; `default` says what holds without it."""
    command.add_argument(
        "--target",
        metavar="NAME=W,…",
        help="the weighting that is deployed, such as gold=1 or gold=1,diamond=3; scaled to sum 1, objectives "
        f"not named weigh 0 ({default})",
    )


def add_json(command: argparse.ArgumentParser, *, nested: bool = False) -> None:
    """Add `--json`. A nested command is one whose parent has the option too."""
    # A default of a nested command would overwrite what was given before its name.
    default: Any = argparse.SUPPRESS if nested else False
    command.add_argument("--json", action="store_true", default=default, help="print JSON")


def add_k(command: argparse.ArgumentParser) -> None:
    """Add `--k`."""
    command.add_argument(
        "--k", type=_whole_numbers, metavar="K,K,…", help="budgets in answers and generations (1,3,5,10,30,100,300)"
    )


def setting(text: str) -> tuple[str, object]:
    """Read KEY=VALUE, the value as JSON or else as text."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"must be KEY=VALUE, not {text!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def task_of(options: argparse.Namespace) -> "Task[Any]":
    """Return the task that the options name, with its settings."""
    from vpo.tasks import get, register

    for file in options.task:
        register(file)
    return get(options.name, **task_settings(options))


def task_settings(options: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of a task that were given with `--set` and `--data`."""
    settings = dict(options.set)
    if options.data is not None:
        settings["data"] = options.data
    return settings


def names(text: str) -> list[str]:
    """Return names that are written with commas between them."""
    return [name.strip() for name in text.split(",") if name.strip()]


def _whole_numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be whole numbers such as 1,3,10, not {text!r}") from None


def as_json(data: object) -> str:
    """Return data as JSON in plain ASCII, which any terminal can show."""
    return json.dumps(data, indent=2)


def plain(text: str) -> str:
    """Return a text whose control characters, but for ends of lines, are shown and not obeyed by the terminal."""
    return "".join(sign if sign == "\n" or sign.isprintable() else ascii(sign)[1:-1] for sign in text)
