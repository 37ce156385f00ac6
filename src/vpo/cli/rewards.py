"""`vpo rewards`: how a rewards file scores some answers, and how much its calibrations clip."""

import argparse
import warnings
from typing import Any

from vpo.cli.arguments import ROWS, Commands, add_examples, add_json
from vpo.cli.output import as_json, plain, print_warning


def add(commands: Commands) -> None:
    """Add `vpo rewards`."""
    command = commands.add_parser(
        "rewards",
        help="check a rewards file on some answers",
        description="Score answers with a rewards file, and print for each objective the distribution of its scores, "
        "the share that its calibration clipped, and on how many answers it abstained. Exits with 1 if one abstained.",
        epilog="A row of ANSWERS is an object with prompt, answer, and the columns that the rewards need. Where a "
        "reward needs a column named answer, put the text to score into completion.",
    )
    command.add_argument("rewards", metavar="REWARDS", help="TOML file of rewards, see docs/rewards.md")
    command.add_argument("answers", metavar="ANSWERS", help=f"file of answers, {ROWS}")
    add_json(command)
    add_examples(
        command,
        "vpo rewards rewards.toml answers.jsonl",
        "vpo rewards rewards.toml answers.parquet --json",
    )
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Score the answers and print the statistics; 1 if a reward abstained."""
    from vpo.rewards.checking import check, check_text

    with warnings.catch_warnings():
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = _print_warning  # type: ignore[assignment]  # only the message is used
        statistics = check(options.rewards, options.answers)
    print(as_json(statistics) if options.json else plain(check_text(statistics)))
    return 1 if any(each["abstained"] for each in statistics["objectives"]) else 0


def _print_warning(message: Warning | str, *_: Any) -> None:
    """Print why a reward abstains, without the line of code that raised the warning."""
    print_warning(str(message))
