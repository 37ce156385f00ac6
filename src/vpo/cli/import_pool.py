"""`vpo import`: turn what other packages wrote into a pool of scored answers."""

import argparse
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from vpo.cli.arguments import ROWS, Commands, add_examples, add_json, add_out, distinct
from vpo.cli.fields import names
from vpo.cli.output import as_json, plain
from vpo.evaluation.importers.formats import NAMES

if TYPE_CHECKING:
    from vpo.evaluation.importers.convert import ImportCounts

NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?"
RANGE = re.compile(rf"(?P<name>.+?)=(?P<low>{NUMBER})\.\.(?P<high>{NUMBER})", re.IGNORECASE)


def add(commands: Commands) -> None:
    """Add `vpo import`."""
    command = commands.add_parser(
        "import",
        help="turn results of other packages into a pool of scored answers",
        description="Turn what other packages wrote into a pool for `vpo measure`, `vpo compare` and `vpo diagnose`: "
        "sample logs of lm-evaluation-harness, details of lighteval, results of EvalPlus, bigcode-evaluation-harness "
        "and verifiers, checkpoints of OpenEvolve, completions of TRL, and any table by a mapping of its columns. "
        "The format is detected by the content.",
        epilog="Scores must lie in 0..1; others are refused unless --range scales them. See docs/importing.md.",
    )
    command.add_argument("source", metavar="PATH", help="file or folder that another package wrote")
    command.add_argument(
        "--from", dest="format", metavar="FORMAT", help=f"{', '.join(NAMES)} (default: detected by the content)"
    )
    command.add_argument(
        "--map",
        type=column_pairs,
        metavar="FIELD=COLUMN,…",
        help="columns of a table for the fields of a pool: problem, scores, answer, completion, generation, position, "
        "solved, tokens; scores= may be repeated, and its column may hold a number, an object or a list with one "
        "number for each test (default: the columns of these names)",
    )
    command.add_argument(
        "--objectives", type=names, metavar="NAME,…", help="the scores to import (default: all of the format)"
    )
    command.add_argument(
        "--range",
        action="append",
        default=[],
        type=score_range,
        metavar="NAME=LOW..HIGH",
        help="scale a score: LOW becomes 0 and HIGH 1, and LOW may be the larger where less is better; may be repeated",
    )
    command.add_argument(
        "--skip-unscored",
        action="store_true",
        help="leave out answers with a score that is null or NaN, and count them, instead of refusing them",
    )
    add_out(command, f"the pool to write, {ROWS}", shown="PATH with .pool.jsonl")
    add_json(command)
    add_examples(
        command,
        "vpo import samples_gsm8k.jsonl",
        "vpo import rollouts.parquet --map problem=prompt,scores=rewards,answer=completion",
    )
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Import a pool and print what it has."""
    from vpo.evaluation.importers.convert import Choices, import_pool
    from vpo.evaluation.importers.table import ColumnMap
    from vpo.util.outputs import check_file

    out = options.out or default_out(Path(options.source))
    check_file(out)
    counts = import_pool(
        options.source,
        out,
        format=options.format,
        mapping=None if options.map is None else ColumnMap.parse(options.map),
        choices=Choices(options.objectives, distinct(options.range, "range"), options.skip_unscored),
    )
    print(as_json({**counts.data(), "pool": out}) if options.json else plain(counts_text(counts, out)))
    return 0


def default_out(source: Path) -> str:
    """The pool beside a file or folder; in the current folder for `.` and `..`."""
    from vpo.util.row_files import without_suffix

    named = source if source.name not in ("", "..") else Path(source.resolve().name)
    return str(named.with_name(without_suffix(named.name).removesuffix(".json") + ".pool.jsonl"))


def counts_text(counts: "ImportCounts", pool: str) -> str:
    """The counts in a sentence, the mean of each objective, notes, and the command that measures the pool."""
    from vpo.util.text import aligned, counted

    data = counts.data()
    skipped = f", {counted(data['skipped'], 'answer')} without a score left out" if data["skipped"] else ""
    solved = "" if data["solved"] is None else f", {data['solved']:.1%} solve the problem"
    size = ", ".join(counted(data[f"{noun}s"], noun) for noun in ("problem", "answer"))
    return "\n".join(
        [
            f"{data['format']}, {counted(data['files'], 'file')}: {size}{solved}{skipped}",
            *aligned([[f"  {name}", f"{mean:.3f}"] for name, mean in data["mean"].items()]),
            *(f"note: {note}" for note in data["notes"]),
            f"wrote {pool}; next: vpo measure {shlex.quote(pool)}",
        ]
    )


def column_pairs(text: str) -> list[tuple[str, str]]:
    """Read FIELD=COLUMN,…."""
    pairs = [tuple(part.strip() for part in each.partition("=")[::2]) for each in text.split(",")]
    if not all(field and column for field, column in pairs):
        raise argparse.ArgumentTypeError(f"must be FIELD=COLUMN,… such as problem=id,scores=rewards, not {text!r}")
    return [(field, column) for field, column in pairs]


def score_range(text: str) -> tuple[str, tuple[float, float]]:
    """Read NAME=LOW..HIGH."""
    match = RANGE.fullmatch(text)
    if match is None or float(match["low"]) == float(match["high"]):
        raise argparse.ArgumentTypeError(f"must be NAME=LOW..HIGH such as rating=1..5, not {text!r}")
    return match["name"], (float(match["low"]), float(match["high"]))
