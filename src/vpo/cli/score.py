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
    from vpo.evaluation.comparison_text import tally_text
    from vpo.evaluation.pools import write_pool
    from vpo.evaluation.score import Tally, score_completions
    from vpo.util.row_files import without_form

    out = options.out or without_form(options.completions) + ".pool.jsonl"
    if Path(out).resolve() == Path(options.completions).resolve():
        raise InputError(f"{out}: the pool must be another file than the completions")
    tally = Tally()
    rows = score_completions(
        task_of(options), options.completions, split=options.split, answers=options.answers, tally=tally
    )
    write_pool(out, rows)
    print(as_json({**tally.data(), "pool": out}) if options.json else plain(tally_text(tally, out)))
    return 0
