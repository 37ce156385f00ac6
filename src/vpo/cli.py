"""The command line: parses, calls, prints."""

import argparse
import io
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from vpo import __version__
from vpo.errors import InputError

if TYPE_CHECKING:
    from vpo.tasks import Task

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

POOLS = "one row an answer: problem, generation, position, scores, and optionally solved, tokens, answer"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `vpo`. Returns the exit code: 0, 1 where a check failed, 2 for wrong input."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that lacks a sign shows its number instead
            stream.reconfigure(errors="backslashreplace")
    options = _parser().parse_args(arguments)
    try:
        code: int = options.run(options)
        sys.stdout.flush()
    except (InputError, OSError) as error:
        if isinstance(error, BrokenPipeError):  # the reader, such as `head`, has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        print(f"vpo: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("vpo: interrupted", file=sys.stderr)
        return 130
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="vpo",
        description="Vector Policy Optimization: train language models to write sets of different good answers.",
    )
    parser.add_argument("--version", action="version", version=f"vpo {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_tasks(commands)
    _add_score(commands)
    _add_measure(commands)
    _add_diagnose(commands)
    return parser


def _add_tasks(commands: Commands) -> None:
    tasks = commands.add_parser(
        "tasks",
        help="list the tasks; show a problem; grade the gold answers",
        description="List the tasks with their objectives.",
    )
    tasks.set_defaults(run=_tasks)
    _add_task_file(tasks)
    _add_json(tasks)
    verbs = tasks.add_subparsers(title="commands", metavar="COMMAND")

    show = verbs.add_parser(
        "show",
        help="show a problem, its prompt and its picture",
        description="Show a problem of a task: the prompt that asks for m answers, a gold answer with its scores, and "
        "a picture where the task has one.",
    )
    _add_task(show, nested=True)
    show.add_argument("--index", type=int, default=0, metavar="N", help="which problem of the split, from 0 (0)")
    show.add_argument("--answers", type=int, default=1, metavar="M", help="how many answers to ask for (1)")
    show.add_argument("--target", metavar="NAME=W,…", help="a weighting to write into the prompt")
    show.add_argument("--picture", metavar="FILE", help="draw the problem into a .png or .svg file")
    _add_json(show, nested=True)
    show.set_defaults(run=_show_task)

    validate = verbs.add_parser(
        "validate",
        help="grade the gold answers, without a model",
        description="Grade the gold answer of every problem of a split, without a model, and list those that do not "
        "score as they should. Exits with 1 if there are any.",
    )
    _add_task(validate, nested=True)
    _add_json(validate, nested=True)
    validate.set_defaults(run=_validate_task)


def _add_score(commands: Commands) -> None:
    score = commands.add_parser(
        "score",
        help="turn completions into a pool of scored answers",
        description="Parse and score completions of any model, and write a pool for `vpo measure` and `vpo diagnose`.",
        epilog="A row of the completions is an object with problem (id, or place in the split from 0), completion, and "
        "optionally generation, tokens, and answers.",
    )
    _add_task(score, "completions")
    score.add_argument(
        "--out", metavar="POOL", help="the pool to write, .jsonl, .jsonl.gz or .parquet (COMPLETIONS with .pool.jsonl)"
    )
    score.add_argument("--answers", type=int, default=1, metavar="M", help="answers asked for per completion (1)")
    _add_json(score)
    score.set_defaults(run=_score)


def _add_measure(commands: Commands) -> None:
    measure = commands.add_parser(
        "measure",
        help="best@k, pass@k and diversity of pools of scored answers; two or more are compared",
        description="Measure pools of scored answers: best@k and pass@k by answers, by generations and by tokens, "
        "with bootstrap intervals over problems, and diversity. Further pools are compared with the first one, "
        "paired over the problems they share.",
        epilog=f"A pool is a .jsonl, .jsonl.gz or .parquet file, {POOLS}.",
    )
    measure.add_argument("pools", nargs="+", metavar="POOL", help="pool file")
    measure.add_argument(
        "--k", type=_whole_numbers, metavar="K,K,…", help="budgets in answers and generations (1,3,5,10,30,100,300)"
    )
    _add_target(measure)
    _add_json(measure)
    measure.set_defaults(run=_measure)


def _add_diagnose(commands: Commands) -> None:
    diagnose = commands.add_parser(
        "diagnose",
        help="say whether a reward has trade-offs worth VPO",
        description="Say in plain words whether the reward behind a pool of scored answers has trade-offs: the "
        "effective rank of its objectives, the share of weightings that each answer wins, the headroom of a set "
        "over the best single answer, objectives that say the same, and a verdict.",
        epilog=f"A pool is a .jsonl, .jsonl.gz or .parquet file, {POOLS}.",
    )
    diagnose.add_argument("pool", metavar="POOL", help="pool file")
    _add_target(diagnose)
    _add_json(diagnose)
    diagnose.set_defaults(run=_diagnose)


def _add_task(command: argparse.ArgumentParser, *files: str, nested: bool = False) -> None:
    """Add what names a task and its problems, then positional files."""
    command.add_argument("name", metavar="NAME", help="a name from `vpo tasks`, or a .py file that defines a task")
    for file in files:
        command.add_argument(file, metavar=file.upper(), help=f"file of {file}, .jsonl, .jsonl.gz or .parquet")
    _add_task_file(command, nested=nested)
    command.add_argument("--split", default="test", help="which problems (test)")
    command.add_argument("--data", metavar="PATH", help="file or folder of the task's data, or hub, or hub:OWNER/NAME")
    command.add_argument(
        "--set",
        action="append",
        default=[],
        type=_setting,
        metavar="KEY=VALUE",
        help="a setting of the task, such as size=13; may be given again",
    )


def _add_task_file(command: argparse.ArgumentParser, *, nested: bool = False) -> None:
    default: Any = argparse.SUPPRESS if nested else []
    command.add_argument(
        "--task", action="append", default=default, metavar="FILE", help="make the task of a .py file known by its name"
    )


def _add_target(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--target",
        metavar="NAME=W,…",
        help="the weighting that is deployed, such as gold=1 or gold=1,diamond=3; scaled to sum 1, objectives "
        "not named weigh 0 (all alike)",
    )


def _add_json(command: argparse.ArgumentParser, *, nested: bool = False) -> None:
    # A default of a nested command would overwrite what was given before its name.
    default: Any = argparse.SUPPRESS if nested else False
    command.add_argument("--json", action="store_true", default=default, help="print JSON")


def _setting(text: str) -> tuple[str, object]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"must be KEY=VALUE, not {text!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _whole_numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be whole numbers such as 1,3,10, not {text!r}") from None


def _task(options: argparse.Namespace) -> "Task[Any]":
    from vpo.tasks import get, register

    for file in options.task:
        register(file)
    settings = dict(options.set)
    if options.data is not None:
        settings["data"] = options.data
    return get(options.name, **settings)


def _tasks(options: argparse.Namespace) -> int:
    from vpo.tables import task_data, task_text
    from vpo.tasks import find, names, register

    for file in options.task:
        register(file)
    tasks = []
    for name in names():
        try:
            tasks.append(find(name))
        except InputError as error:  # a package of somebody else's
            print(f"vpo: note: task {name} is left out: {error}", file=sys.stderr)
    print(_json([task_data(task) for task in tasks]) if options.json else "\n\n".join(map(task_text, tasks)))
    return 0


def _show_task(options: argparse.Namespace) -> int:
    from vpo.tables import problem_data, problem_text
    from vpo.targets import parse_target, weights_for

    task = _task(options)
    problems = task.problems(options.split)
    if not 0 <= options.index < len(problems):
        raise InputError(f"index must lie in 0..{len(problems) - 1}, the problems of the split, not {options.index}")
    problem = problems[options.index]
    target = None if options.target is None else weights_for(parse_target(options.target), task.names).tolist()
    prompt = task.ask(problem, options.answers, target)
    if options.picture:
        gold = task.gold(problem)
        task.draw(problem, [gold] if gold else [], options.picture)
    if options.json:
        print(_json(problem_data(task, problem, prompt)))
    else:
        print(problem_text(task, problem, prompt, colour=sys.stdout.isatty()))
    return 0


def _validate_task(options: argparse.Namespace) -> int:
    from dataclasses import asdict

    from vpo.progress import progress
    from vpo.tables import flaws_text

    task = _task(options)
    problems = task.problems(options.split)
    graded = list(progress(task.validate(problems), f"grading {task.name}", len(problems)))
    flaws = [flaw for flaw in graded if flaw is not None]
    if options.json:
        print(_json({"graded": len(graded), "flaws": [asdict(flaw) for flaw in flaws]}))
    else:
        print(_plain(flaws_text(task.name, len(graded), flaws)))
    return 1 if flaws else 0


def _score(options: argparse.Namespace) -> int:
    from vpo.pools import write_pool
    from vpo.row_files import without_form
    from vpo.score import Tally, score_completions
    from vpo.tables import tally_text

    out = options.out or without_form(options.completions) + ".pool.jsonl"
    if Path(out).resolve() == Path(options.completions).resolve():
        raise InputError(f"{out}: the pool must be another file than the completions")
    tally = Tally()
    rows = score_completions(
        _task(options), options.completions, split=options.split, answers=options.answers, tally=tally
    )
    write_pool(out, rows)
    print(_json({**tally.data(), "pool": out}) if options.json else _plain(tally_text(tally, out)))
    return 0


def _measure(options: argparse.Namespace) -> int:
    from vpo.measure import compare
    from vpo.pools import read_pool
    from vpo.tables import comparison_data, comparison_text
    from vpo.targets import parse_target

    target = parse_target(options.target) if options.target is not None else None
    comparison = compare([read_pool(path) for path in options.pools], target=target, ks=options.k)
    print(_json(comparison_data(comparison)) if options.json else _plain(comparison_text(comparison)))
    return 0


def _diagnose(options: argparse.Namespace) -> int:
    from dataclasses import asdict

    from vpo.diagnose import diagnose
    from vpo.pools import read_pool
    from vpo.tables import diagnosis_text
    from vpo.targets import parse_target

    target = parse_target(options.target) if options.target is not None else None
    found = diagnose(read_pool(options.pool), target=target)
    print(_json(asdict(found)) if options.json else _plain(diagnosis_text(found)))
    return 0


def _json(data: object) -> str:
    return json.dumps(data, indent=2)


def _plain(text: str) -> str:
    """Return a text whose control characters, but for ends of lines, are shown and not obeyed by the terminal."""
    return "".join(sign if sign == "\n" or sign.isprintable() else ascii(sign)[1:-1] for sign in text)
