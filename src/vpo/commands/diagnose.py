"""`vpo diagnose`: does a reward have trade-offs worth VPO?"""

import argparse

from vpo.commands.arguments import POOLS, Commands, add_json, add_target, as_json, plain


def add(commands: Commands) -> None:
    """Add `vpo diagnose`."""
    diagnose = commands.add_parser(
        "diagnose",
        help="say whether a reward has trade-offs worth VPO",
        description="Say in plain words whether the reward behind a pool of scored answers has trade-offs: the "
        "effective rank of its objectives, the share of weightings that each answer wins, the headroom of a set "
        "over the best single answer, objectives that say the same, and a verdict.",
        epilog=POOLS,
    )
    diagnose.add_argument("pool", metavar="POOL", help="pool file")
    add_target(diagnose)
    add_json(diagnose)
    diagnose.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Diagnose a pool and print what was found."""
    from dataclasses import asdict

    from vpo.diagnose import diagnose
    from vpo.pools import read_pool
    from vpo.tables import diagnosis_text
    from vpo.targets import parse_target

    target = parse_target(options.target) if options.target is not None else None
    found = diagnose(read_pool(options.pool), target=target)
    print(as_json(asdict(found)) if options.json else plain(diagnosis_text(found)))
    return 0
