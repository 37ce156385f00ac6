"""Options that several commands share, each made once, and how they are read."""

import argparse
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from vpo.cli.fields import Options, integers
from vpo.util.errors import InputError
from vpo.util.row_files import SUFFIXES

if TYPE_CHECKING:
    from vpo.tasks import Task

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

ROWS = f"{', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
EVALUATOR = "evaluator"  # the task that --evaluator stands for
SETTINGS = ("data", "format", "evaluator", "start")  # of tasks that have options of their own
POOLS = (
    f"A pool is a {ROWS} file, one row an answer: problem, generation, position, scores, and optionally solved, "
    "tokens, answer, answers, target."
)


class HelpFormatter(argparse.HelpFormatter):
    """Wraps the paragraphs of descriptions and epilogs, and leaves indented lines, such as examples, as typed."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n\n".join(
            part if "\n  " in part else super(HelpFormatter, self)._fill_text(part, width, indent)
            for part in text.split("\n\n")
        )


def add_examples(command: argparse.ArgumentParser, *examples: str) -> None:
    """Add commands that can be typed to the end of a command's help; text after # explains one."""
    text = "\n  ".join(["examples:", *examples])
    command.epilog = f"{command.epilog}\n\n{text}" if command.epilog else text


def add_model(
    command: argparse.ArgumentParser, help: str = "a run, a model folder, a name on the Hugging Face hub"
) -> None:
    """Add the positional MODEL."""
    command.add_argument("model", metavar="MODEL", help=f"{help}, or `embedded`, the small policy of the task")


def add_task(command: argparse.ArgumentParser, help: str = "a name from `vpo tasks`") -> None:
    """Add the positional TASK, and `--task-file` instead of it."""
    command.add_argument("task", nargs="?", default=argparse.SUPPRESS, metavar="TASK", help=help)
    add_task_file(command)


def add_task_option(options: Options, default: str = "default: the task that the model was trained on") -> None:
    """Add `--task`, and `--task-file` instead of it, to a command that is about a model or its completions."""
    options.add_argument(
        "--task", default=argparse.SUPPRESS, metavar="NAME", help=f"a name from `vpo tasks` ({default})"
    )
    add_task_file(options)


def add_task_file(options: Options) -> None:
    """Add `--task-file`."""
    options.add_argument(
        "--task-file", default=argparse.SUPPRESS, metavar="FILE.py", help="a Python file that defines the task"
    )


def add_task_settings(options: Options) -> None:
    """Add `--data`, `--format` and `--set`, the settings of a task."""
    options.add_argument(
        "--data",
        default=argparse.SUPPRESS,
        metavar="PATH",
        help="file or folder of the task's data; or hub, or hub:OWNER/NAME, to load it from the Hugging Face hub",
    )
    options.add_argument(
        "--format",
        default=argparse.SUPPRESS,
        metavar="NAME",
        help="form of several answers in one completion: tags, tags-system, tags-shot, headings or json (default: as "
        "the model was trained, else the form of the task)",
    )
    add_assignments(options, "--set", "a setting of the task, such as size=13")


def add_evaluator(options: Options) -> None:
    """Add `--evaluator` and `--start`, the files of the task evaluator."""
    options.add_argument(
        "--evaluator",
        default=argparse.SUPPRESS,
        metavar="PATH",
        help="for the task evaluator: the file with evaluate(path) -> dict of metrics, or a folder such as those of "
        "OpenEvolve's examples, with evaluator.py, initial_program.py and config.yaml",
    )
    options.add_argument(
        "--start",
        default=argparse.SUPPRESS,
        metavar="FILE",
        help="for the task evaluator: the program to start from (default: initial_program.* in its folder)",
    )


def add_assignments(options: Options, flag: str, help: str) -> None:
    """Add an option that takes KEY=VALUE, and may be repeated."""
    options.add_argument(
        flag,
        action="append",
        default=argparse.SUPPRESS,
        type=assignment,
        metavar="KEY=VALUE",
        help=f"{help}; may be repeated",
    )


def add_method_settings(options: Options) -> None:
    """Add `--answers` and `--method-set`, the settings of a method."""
    options.add_argument(
        "--answers",
        type=int,
        default=argparse.SUPPRESS,
        metavar="M",
        help="answers that one completion is to hold (default: as the method has it)",
    )
    add_assignments(options, "--method-set", "a setting of the method, such as concentration=0.5")


def add_split(options: Options) -> None:
    """Add `--split` to a command without a settings dataclass."""
    options.add_argument("--split", default="test", metavar="SPLIT", help="the split of the problems (default: test)")


def add_answers(options: Options) -> None:
    """Add `--answers` to a command without a settings dataclass."""
    options.add_argument(
        "--answers", type=int, default=1, metavar="M", help="answers that one completion is to hold (default: 1)"
    )


def add_target(options: Options, default: str) -> None:
    """Add `--target`; `default` says what holds without it."""
    options.add_argument(
        "--target",
        default=argparse.SUPPRESS,
        metavar="NAME=W,…",
        help="the deployed weighting w*, such as gold=1 or gold=1,diamond=3; scaled to sum 1, objectives that are not "
        f"named have weight 0 (default: {default})",
    )


def add_out(options: Options, help: str, *, default: str | None = None, shown: str | None = None) -> None:
    """Add `--out`. It is required, unless there is a default, or `shown` says how the command chooses one."""
    shown = shown or default
    options.add_argument(
        "--out",
        required=shown is None,
        default=default,
        metavar="PATH",
        help=f"{help} (default: {shown})" if shown else f"{help} (required)",
    )


def add_jobs(options: Options, help: str, default: str) -> None:
    """Add `--jobs`."""
    options.add_argument("--jobs", type=int, metavar="N", help=f"{help} in parallel (default: {default})")


def add_k(options: Options) -> None:
    """Add `--k`."""
    options.add_argument(
        "--k",
        type=integers,
        metavar="K,…",
        help="the k of best@k and pass@k, in answers and in generations (default: 1,3,5,10,30,100,300)",
    )


def add_json(command: argparse.ArgumentParser, *, nested: bool = False) -> None:
    """Add `--json`. A nested command is one whose parent has the option too."""
    # A default of a nested command would overwrite what was given before its name.
    default: Any = argparse.SUPPRESS if nested else False
    command.add_argument("--json", action="store_true", default=default, help="print JSON")


def assignment(text: str) -> tuple[str, object]:
    """Read KEY=VALUE, the value as JSON or else as text."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"must be KEY=VALUE, not {text!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def task_name(options: argparse.Namespace) -> str | None:
    """The name of the task, or the path of the file that defines it; None where neither was given."""
    name, file = getattr(options, "task", None), getattr(options, "task_file", None)
    if "evaluator" in options:
        if file is not None or name not in (None, EVALUATOR):
            raise InputError(f"--evaluator is an option of the task evaluator, not of {file or name}")
        return EVALUATOR
    if name is not None and name.endswith(".py"):
        raise InputError(f"task {name!r} is a file, not a name: give --task-file {name}")
    if file is None:
        return name
    if not file.endswith(".py"):
        raise InputError(f"task_file must be a .py file, not {file!r}")
    from vpo.tasks import find

    if name is not None and name != (defined := find(file).name):
        raise InputError(f"task_file {file} defines task {defined!r}, not {name!r}")
    return str(file)


def needed_task(options: argparse.Namespace) -> str:
    """As `task_name`, for commands that need a task."""
    name = task_name(options)
    if name is None:
        raise InputError("task must be given: a name from `vpo tasks`, or --task-file FILE.py")
    return name


def task_flags(task: str) -> list[str]:
    """The arguments that name a task to another command."""
    return ["--task-file" if task.endswith(".py") else "--task", task]


def task_settings(options: argparse.Namespace) -> dict[str, Any]:
    """The settings of the task: `--set`, and those with an option of their own."""
    named = [(name, getattr(options, name)) for name in SETTINGS if name in options]
    return distinct([*getattr(options, "set", ()), *named], "set")


def method_settings(options: argparse.Namespace) -> dict[str, Any]:
    """The settings of the method: `--method-set` and `--answers`."""
    answers = [("answers", options.answers)] if "answers" in options else []
    return distinct([*getattr(options, "method_set", ()), *answers], "method_set")


def distinct(pairs: Iterable[tuple[str, Any]], option: str) -> dict[str, Any]:
    """Values by name; refuses a name that is given twice, since one of the values would be dropped."""
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            twice = f"{values[name]!r} and {value!r}"
            raise InputError(f"{option} must give each name once, and gives {name!r} twice: {twice}")
        values[name] = value
    return values


def task_of(options: argparse.Namespace) -> "Task[Any]":
    """The task that the options name, with its settings."""
    from vpo.tasks import get

    return get(needed_task(options), **task_settings(options))


def target_of(options: argparse.Namespace) -> dict[str, float] | None:
    """The weighting of `--target`, None without it."""
    from vpo.core.targets import parse_target

    return parse_target(options.target) if "target" in options else None
