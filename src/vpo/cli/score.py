"""`vpo score`: turn completions into a pool of scored answers."""

import argparse
from pathlib import Path

from vpo.cli.arguments import Commands, add_json, add_task, as_json, plain, task_of
from vpo.util.errors import InputError


def add(commands: Commands) -> None:
    """Add `vpo score`."""
    score = commands.add_parser(
        "score",
        help="turn completions into a pool of scored answers",
        description="Parse and score completions of any model, and write a pool for `vpo measure` and `vpo diagnose`.",
        epilog="A row of the completions is an object with problem (id, or place in the split from 0), completion, and "
        "optionally generation, tokens, and answers.",
    )
    add_task(score, "completions")
    score.add_argument(
        "--out", metavar="POOL", help="the pool to write, .jsonl, .jsonl.gz or .parquet (COMPLETIONS with .pool.jsonl)"
    )
    score.add_argument("--answers", type=int, default=1, metavar="M", help="answers asked for per completion (1)")
    add_json(score)
    score.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Score completions and print what was found."""
    from vpo.evaluation.score import score_file
    from vpo.evaluation.scored import counts_text, write_scored
    from vpo.util.row_files import without_suffix

    out = options.out or without_suffix(options.completions) + ".pool.jsonl"
    if Path(out).resolve() == Path(options.completions).resolve():
        raise InputError(f"{out}: the pool must be another file than the completions")
    task = task_of(options)
    counts = write_scored(out, score_file(task, options.completions, split=options.split, answers=options.answers))
    if options.json:
        print(as_json({**counts.data(), "target": task.target, "pool": out}))
    else:
        print(plain(counts_text(counts, out, task.target)))
    return 0
