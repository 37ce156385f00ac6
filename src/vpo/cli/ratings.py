"""`--group-by` and `--objectives`: files of ratings where a command takes pools."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vpo.cli.fields import Options, names
from vpo.util.errors import InputError

if TYPE_CHECKING:
    from vpo.evaluation.pools import Pool

Ranges = Mapping[str, tuple[float, float]]

RATINGS = "A file of ratings has any rows with numbers in them."


def add_ratings(options: Options) -> None:
    """Add `--group-by` and `--objectives`."""
    options.add_argument(
        "--group-by",
        metavar="COLUMN",
        help="POOL is a file of ratings: rows with the same value in this column answer the same problem; each "
        "rating is scaled to 0..1 by its range, over all files",
    )
    options.add_argument(
        "--objectives",
        type=names,
        metavar="NAME,…",
        help="with --group-by: the columns that are ratings (default: all in column `scores`)",
    )


def read_pools(
    options: argparse.Namespace, paths: Sequence[str], instead: str
) -> "tuple[Sequence[Pool], Ranges | None]":
    """The pools, and the ranges that ratings were scaled by; `instead` says how to leave out objectives of a pool."""
    from vpo.evaluation.ratings import read_ratings

    if options.group_by is not None:
        ratings = read_ratings(*paths, group_by=options.group_by, objectives=options.objectives or [])
        return ratings.pools, ratings.ranges
    if options.objectives is not None:
        raise InputError(f"objectives needs --group-by; to leave out objectives of a pool, use {instead}")
    return [read_pool_of(path) for path in paths], None


def read_pool_of(path: str) -> "Pool":
    """The pool of an evaluation's folder, or in a file."""
    from vpo.evaluation.eval_folder import read_evaluation
    from vpo.evaluation.pools import read_pool

    return read_evaluation(path).pool if Path(path).is_dir() else read_pool(path)


def ranges_text(ranges: Ranges | None, where: str) -> list[str]:
    """A line that says how ratings were scaled; no line for pools."""
    if ranges is None:
        return []
    each = ", ".join(f"{name} {low:g}..{high:g}" for name, (low, high) in ranges.items())
    return [f"scaled to 0..1     {each} (by their range in {where})"]
