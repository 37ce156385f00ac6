"""`vpo doctor`: what this machine offers, and how to install the rest."""

import argparse
from dataclasses import asdict

from vpo.cli.arguments import Commands, add_json
from vpo.cli.output import as_json


def add(commands: Commands) -> None:
    """Add `vpo doctor`."""
    command = commands.add_parser(
        "doctor",
        help="what this machine offers, and how to install the rest",
        description="Look at what keeps untrusted programs in (a program is run behind each wall), at the device, and "
        "at the packages. The exit code is 1 where untrusted programs cannot be run.",
    )
    add_json(command)
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Show what was found."""
    from vpo.cli.examine import can_judge, examine

    findings = examine()
    if options.json:
        print(as_json([asdict(each) for each in findings]))
        return 0 if can_judge(findings) else 1
    width = max(len(each.name) for each in findings)
    for each in findings:
        print(f"{each.area:8} {each.name:{width}}  {'yes' if each.there else 'no ':3}  {each.detail}")
        if not each.there and each.remedy:
            print(f"{'':8} {'':{width}}       → {each.remedy}")
    if not can_judge(findings):
        print("\nThe task code is refused here: nothing keeps its programs in.")
    return 0 if can_judge(findings) else 1
