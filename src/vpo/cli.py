"""The command line: parses, calls, prints."""

import argparse
import json
import os
import sys
from collections.abc import Sequence

from vpo import __version__
from vpo.errors import InputError

POOLS = "one row an answer: problem, generation, position, scores, and optionally solved, tokens, answer"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `vpo`. Returns the exit code: 0, or 2 for wrong input."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
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
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="vpo",
        description="Vector Policy Optimization: train language models to write sets of different good answers.",
    )
    parser.add_argument("--version", action="version", version=f"vpo {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

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
        "--k",
        type=_whole_numbers,
        metavar="K,K,…",
        help="budgets in answers and generations (1,3,5,10,30,100,300)",
    )
    measure.set_defaults(run=_measure)

    diagnose = commands.add_parser(
        "diagnose",
        help="say whether a reward has trade-offs worth VPO",
        description="Say in plain words whether the reward behind a pool of scored answers has trade-offs: the "
        "effective rank of its objectives, the share of weightings that each answer wins, the headroom of a set "
        "over the best single answer, objectives that say the same, and a verdict.",
        epilog=f"A pool is a .jsonl, .jsonl.gz or .parquet file, {POOLS}.",
    )
    diagnose.add_argument("pool", metavar="POOL", help="pool file")
    diagnose.set_defaults(run=_diagnose)

    for command in (measure, diagnose):
        command.add_argument(
            "--target",
            metavar="NAME=W,…",
            help="the weighting that is deployed, such as gold=1 or gold=1,diamond=3; scaled to sum 1, objectives "
            "not named weigh 0 (all alike)",
        )
        command.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _whole_numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be whole numbers such as 1,3,10, not {text!r}") from None


def _measure(options: argparse.Namespace) -> None:
    from vpo.measure import compare
    from vpo.pools import read_pool
    from vpo.tables import comparison_data, comparison_text
    from vpo.targets import parse_target

    target = parse_target(options.target) if options.target is not None else None
    comparison = compare([read_pool(path) for path in options.pools], target=target, ks=options.k)
    print(_json(comparison_data(comparison)) if options.json else comparison_text(comparison))


def _diagnose(options: argparse.Namespace) -> None:
    from dataclasses import asdict

    from vpo.diagnose import diagnose
    from vpo.pools import read_pool
    from vpo.tables import diagnosis_text
    from vpo.targets import parse_target

    target = parse_target(options.target) if options.target is not None else None
    found = diagnose(read_pool(options.pool), target=target)
    print(_json(asdict(found)) if options.json else diagnosis_text(found))


def _json(data: object) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False)
