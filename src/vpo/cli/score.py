"""`vpo score`: turn completions into a pool of scored answers."""

import argparse
from pathlib import Path

from vpo.cli.arguments import (
    ROWS,
    Commands,
    add_answers,
    add_examples,
    add_json,
    add_out,
    add_split,
    add_task_option,
    add_task_settings,
    task_of,
)
from vpo.cli.output import as_json, plain, print_warning
from vpo.util.errors import InputError


def add(commands: Commands) -> None:
    """Add `vpo score`."""
    score = commands.add_parser(
        "score",
        help="turn completions into a pool of scored answers",
        description="Parse and score completions of any model, and write a pool for `vpo measure` and `vpo "
        "diagnose`. The pool keeps the completions; where most answers cannot be read, some are shown.",
        epilog="A row of COMPLETIONS is an object with problem (its id; an integer n is the id that is n or ends in n, "
        "as Mbpp/11) or index (in the split, from 0), completion, and optionally generation, tokens, and answers.",
    )
    score.add_argument("completions", metavar="COMPLETIONS", help=f"file of completions, {ROWS}")
    add_task_option(score, "required")
    add_task_settings(score)
    add_split(score)
    add_answers(score)
    add_out(score, f"the pool to write, {ROWS}", shown="COMPLETIONS with .pool.jsonl")
    add_json(score)
    add_examples(
        score,
        "vpo score completions.jsonl --task maze --answers 3",
        "vpo score completions.jsonl --task math --data math/ --out pool.parquet",
    )
    score.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Score completions and print the counts."""
    from vpo.evaluation.score import score_file
    from vpo.evaluation.scored import counts_text, unread_text, write_scored
    from vpo.util.outputs import check_file
    from vpo.util.row_files import without_suffix

    out = options.out or without_suffix(options.completions) + ".pool.jsonl"
    if Path(out).resolve() == Path(options.completions).resolve():
        raise InputError(f"out must not be the file of completions, {out}")
    check_file(out)
    task = task_of(options)
    counts = write_scored(out, score_file(task, options.completions, split=options.split, answers=options.answers))
    if options.json:
        print(as_json({**counts.data(), "target": task.target, "pool": out}))
    else:
        print(plain(counts_text(counts, out)))
    if warning := unread_text(counts):
        print_warning(warning)
    return 0
