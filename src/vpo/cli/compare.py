"""`vpo compare`: evaluations of runs side by side, as a table and as curves."""

import argparse
from dataclasses import replace
from pathlib import Path

from vpo.cli.arguments import Commands, add_examples, add_json, add_k, add_out, add_target, target_of
from vpo.cli.output import as_json, plain

PAGE, DATA, TEXT = "report.html", "comparison.json", "comparison.txt"


def add(commands: Commands) -> None:
    """Add `vpo compare`."""
    command = commands.add_parser(
        "compare",
        help="compare evaluated runs: a table, and best@k curves",
        description="Compare what `vpo eval` measured of some runs: best@k by answers, by generations and by "
        "tokens, the first answer and one set, diversity, coverage and the share of the oracle, each with its 95% "
        "interval, the differences paired over problems. Writes a page, and the best@k curves as PNG and SVG.",
    )
    command.add_argument("runs", nargs="+", metavar="RUN", help="a run, a folder that vpo eval wrote, or a pool file")
    add_k(command)
    command.add_argument("--all", action="store_true", help="print every measure, pass@k and all of diversity too")
    add_out(command, "folder for the table, the curves and the page", default="comparison")
    add_target(command, "the target that the runs or pools state")
    add_json(command)
    add_examples(
        command,
        "vpo compare runs/maze-embedded runs/maze-vpo",
        "vpo compare runs/maze-grpo runs/maze-vpo --k 1,3,10 --out comparison",
    )
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Compare runs, draw, and print the table and where the page and the pictures are."""
    from vpo.evaluation.compare import compare
    from vpo.evaluation.comparison_text import comparison_data, comparison_text, short_names
    from vpo.evaluation.eval_folder import oracle_of, read_all, scoring_notes, task_notes
    from vpo.evaluation.stated_targets import shared_target
    from vpo.report.curves import curves_of, draw_curves
    from vpo.report.page import write_page
    from vpo.report.page_data import page_data
    from vpo.util.files import write_json, write_text
    from vpo.util.outputs import check_folder
    from vpo.util.records import command_line

    folder = Path(options.out)
    pictures = [folder / f"best_at_k.{form}" for form in ("png", "svg")]
    check_folder(folder, PAGE, DATA, TEXT, *(picture.name for picture in pictures))
    evaluations = read_all(options.runs)
    given = target_of(options)
    target, notes = (given, []) if given else shared_target(evaluations)
    oracle = oracle_of(evaluations, target)
    comparison = compare([each.pool for each in evaluations], target=target, ks=options.k, oracle=oracle)
    comparison = replace(
        comparison, notes=(*notes, *task_notes(evaluations), *scoring_notes(evaluations), *comparison.notes)
    )
    names = short_names(comparison)
    curves = curves_of(comparison)
    groups = [[each] for each in evaluations]
    shown = page_data(comparison, curves, groups, names, ", ".join(names), command_line())  # reads the logs of the runs
    folder.mkdir(parents=True, exist_ok=True)
    best = sum(oracle[name] for name in comparison.problems) / len(comparison.problems) if oracle else None
    draw_curves(comparison, curves, names, pictures, best)
    page = folder / PAGE
    write_page(page, shown)
    made = {"oracle": best, "page": str(page), "pictures": [str(picture) for picture in pictures]}
    data = {**comparison_data(comparison), **made}
    write_json(folder / DATA, data)
    write_text(folder / TEXT, comparison_text(comparison) + "\n")
    if options.json:
        print(as_json(data))
    else:
        text = comparison_text(comparison, brief=not options.all)
        print(plain(f"{text}\n\nthe page: {page}; the curves: {' and '.join(map(str, pictures))}"))
    return 0
