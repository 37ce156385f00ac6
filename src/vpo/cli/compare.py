"""`vpo compare`: evaluations of runs side by side, as a table and as curves."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from vpo.cli.arguments import (
    Commands,
    add_examples,
    add_json,
    add_k,
    add_out,
    add_split,
    add_target,
    add_task_option,
    add_task_settings,
    target_of,
    task_name,
    task_of,
    task_settings,
)
from vpo.cli.output import as_json, plain
from vpo.util.errors import InputError

if TYPE_CHECKING:
    from vpo.evaluation.compare import Comparison
    from vpo.evaluation.eval_folder import Evaluation

PAGE, DATA, TEXT = "report.html", "comparison.json", "comparison.txt"


def add(commands: Commands) -> None:
    """Add `vpo compare`."""
    command = commands.add_parser(
        "compare",
        help="compare evaluated runs: a verdict, a table, and a page",
        description="Compare what `vpo eval` measured of some runs. A verdict comes first: which run is ahead, and "
        "from how many samples on. Then best@k by answers, by generations and by "
        "tokens, the first answer and one set, diversity, coverage and the share of the oracle, each with its 95% "
        "interval, the differences paired over problems. Writes a page, and, where matplotlib is installed, the best@k "
        "curves as PNG and SVG.",
    )
    command.add_argument("runs", nargs="+", metavar="RUN", help="a run, a folder that vpo eval wrote, or a pool file")
    add_k(command)
    command.add_argument("--all", action="store_true", help="print every measure, pass@k and all of diversity too")
    add_out(command, "folder for the table, the curves and the page", default="comparison")
    add_target(command, "the target that the runs or pools state")
    files = command.add_argument_group("pool files", "their task, for the questions and gold answers on the page")
    add_task_option(files, "default: none")
    add_task_settings(files)
    add_split(files)
    add_json(command)
    add_examples(
        command,
        "vpo compare runs/maze-embedded runs/maze-vpo",
        "vpo compare runs/maze-grpo runs/maze-vpo --k 1,3,10 --out comparison",
    )
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Compare runs: write the page, print the verdict and the table, draw, and print where everything is."""
    from vpo.evaluation.compare import compare
    from vpo.evaluation.comparison_text import comparison_data, comparison_text, short_names
    from vpo.evaluation.eval_folder import oracle_of, read_all, scoring_notes, task_notes
    from vpo.evaluation.stated_targets import shared_target
    from vpo.evaluation.untrained import untrained_groups
    from vpo.evaluation.verdict import verdict
    from vpo.report.page import write_page
    from vpo.report.page_data import page_data
    from vpo.util.files import storable, write_json, write_text
    from vpo.util.outputs import check_folder
    from vpo.util.records import command_line

    folder = Path(options.out)
    pictures = [folder / f"best_at_k.{form}" for form in ("png", "svg")]
    check_folder(folder, PAGE, DATA, TEXT, *(picture.name for picture in pictures))
    evaluations = _with_task(read_all(options.runs), options)
    given = target_of(options)
    target, notes = (given, []) if given else shared_target(evaluations)
    oracle = oracle_of(evaluations, target)
    comparison = compare([each.pool for each in evaluations], target=target, ks=options.k, oracle=oracle)
    comparison = replace(
        comparison, notes=(*notes, *task_notes(evaluations), *scoring_notes(evaluations), *comparison.notes)
    )
    names = short_names(comparison)
    groups = [[each] for each in evaluations]
    said = verdict(comparison, names, untrained_groups(groups, names))
    best = sum(oracle[name] for name in comparison.problems) / len(comparison.problems) if oracle else None
    shown = page_data(comparison, groups, names, command_line(), verdict=said, oracle=best)  # reads the runs' logs
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / PAGE
    write_page(page, shown)
    write_text(folder / TEXT, storable(f"{said}\n\n{comparison_text(comparison)}\n"))
    if not options.json:  # before the pictures, which take longest
        print(plain(f"{said}\n\n{comparison_text(comparison, brief=not options.all)}\n"))
    missing = _draw(comparison, names, pictures, best)
    drawn = [] if missing else [str(picture) for picture in pictures]
    data = {"verdict": said, **comparison_data(comparison), "oracle": best, "page": str(page), "pictures": drawn}
    write_json(folder / DATA, data)
    if options.json:
        print(as_json(data))
    else:
        curves = missing or f"the curves: {' and '.join(drawn)}"
        print(plain(f"the page: {page}; {curves}"))
    return 0


def _with_task(evaluations: "list[Evaluation]", options: argparse.Namespace) -> "list[Evaluation]":
    """Evaluations, where those that are a pool file alone have the task that the options name."""
    if task_name(options) is None:
        if task_settings(options):
            raise InputError("data, format and set are settings of the task of pool files: name it with --task")
        return evaluations
    ids = {str(problem.id) for problem in task_of(options).problems(options.split)}
    for each in evaluations:
        if not each.facts and (others := [name for name in each.pool.problems if name not in ids]):
            raise InputError(
                f"{each.pool.path} has the problem {others[0]!r}, which is not in the split {options.split} of task "
                f"{task_name(options)}: leave out --task, or name the task, its settings and --split as they were"
            )
    known = {"task": task_name(options), "task_settings": task_settings(options), "split": options.split}
    return [each if each.facts else replace(each, facts={**known, "problems": len(ids)}) for each in evaluations]


def _draw(comparison: "Comparison", names: list[str], pictures: list[Path], oracle: float | None) -> str:
    """Draw the curves; why they are not drawn where matplotlib is missing."""
    from vpo.report.curves import curves_of, draw_curves
    from vpo.util.packages import check_installed

    try:
        check_installed("matplotlib", "a picture of the curves", extra="report")
    except InputError as error:
        return f"no PNG and SVG: {error}"
    draw_curves(comparison, curves_of(comparison), names, pictures, oracle)
    return ""
