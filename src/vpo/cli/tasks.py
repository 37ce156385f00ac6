"""`vpo tasks`: list the tasks, show a problem, grade the gold answers."""

import argparse
import sys

from vpo.cli.arguments import (
    Commands,
    add_answers,
    add_examples,
    add_json,
    add_split,
    add_target,
    add_task,
    add_task_file,
    add_task_settings,
    target_of,
    task_of,
)
from vpo.cli.output import as_json, plain
from vpo.util.errors import InputError


def add(commands: Commands) -> None:
    """Add `vpo tasks`."""
    tasks = commands.add_parser(
        "tasks",
        help="list the tasks; show a problem; grade the gold answers",
        description="List the tasks with their objectives.",
    )
    tasks.set_defaults(run=run)
    add_task_file(tasks)
    add_json(tasks)
    add_examples(
        tasks,
        "vpo tasks",
        "vpo tasks show maze --answers 3",
        "vpo tasks validate maze",
        "vpo tasks --task-file my_task.py   # with a task of your own",
    )
    verbs = tasks.add_subparsers(title="commands", metavar="COMMAND")

    showing = verbs.add_parser(
        "show",
        help="show a problem, its prompt and its picture",
        description="Show a problem of a task: the prompt that asks for m answers, a gold answer with its scores, and "
        "a picture where the task has one.",
    )
    add_task(showing)
    add_task_settings(showing)
    add_split(showing)
    showing.add_argument(
        "--index", type=int, default=0, metavar="N", help="which problem of the split, from 0 (default: 0)"
    )
    add_answers(showing)
    add_target(showing, "the prompt states no weighting")
    showing.add_argument("--picture", metavar="FILE", help="draw the problem into a .png or .svg file")
    add_json(showing, nested=True)
    add_examples(
        showing,
        "vpo tasks show maze",
        "vpo tasks show maze --set size=7 --index 4 --answers 3 --picture maze.png",
        "vpo tasks show gsm8k --data hub --split test",
    )
    showing.set_defaults(run=show)

    grading = verbs.add_parser(
        "validate",
        help="grade the gold answers, without a model",
        description="Grade the gold answer of every problem of a split, without a model, and list those that do not "
        "score as they should. Exits with 1 if there are any.",
    )
    add_task(grading)
    add_task_settings(grading)
    add_split(grading)
    add_json(grading, nested=True)
    add_examples(
        grading,
        "vpo tasks validate maze",
        "vpo tasks validate math --data math/ --split test",
        "vpo tasks validate --task-file my_task.py",
    )
    grading.set_defaults(run=validate)


def run(options: argparse.Namespace) -> int:
    """List the tasks."""
    from vpo.cli.task_text import task_data, task_text
    from vpo.tasks import find, names, register

    if "task_file" in options:
        register(options.task_file)
    tasks = []
    for name in names():
        try:
            tasks.append(find(name))
        except InputError as error:  # a task of another package
            print(f"vpo: note: task {name} cannot be loaded: {error}", file=sys.stderr)
    print(as_json([task_data(task) for task in tasks]) if options.json else "\n\n".join(map(task_text, tasks)))
    return 0


def show(options: argparse.Namespace) -> int:
    """Show a problem."""
    from vpo.cli.task_text import problem_data, problem_text
    from vpo.core.targets import weights_for

    task = task_of(options)
    problems = task.problems(options.split)
    if not 0 <= options.index < len(problems):
        raise InputError(f"index must lie in 0..{len(problems) - 1}, the problems of the split, not {options.index}")
    problem = problems[options.index]
    names = task.names_of(problem)
    target = target_of(options)
    weights = None if target is None else weights_for(target, names).tolist()
    prompt = task.ask(problem, options.answers, weights)
    if options.picture:
        gold = task.gold(problem)
        task.draw(problem, [gold] if gold else [], options.picture)
    if options.json:
        print(as_json(problem_data(task, problem, prompt)))
    else:
        print(problem_text(task, problem, prompt, colour=sys.stdout.isatty()))
    return 0


def validate(options: argparse.Namespace) -> int:
    """Grade the gold answers; 1 if one does not score as it should."""
    from dataclasses import asdict

    from vpo.cli.task_text import flaws_text
    from vpo.util.progress import progress

    task = task_of(options)
    problems = task.problems(options.split)
    graded = list(progress(task.validate(problems), f"grading {task.name}", len(problems)))
    flaws = [flaw for flaw in graded if flaw is not None]
    if options.json:
        print(as_json({"graded": len(graded), "flaws": [asdict(flaw) for flaw in flaws]}))
    else:
        print(plain(flaws_text(task.name, len(graded), flaws)))
    return 1 if flaws else 0
