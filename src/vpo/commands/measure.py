"""`vpo measure`: best@k, pass@k and diversity of pools, compared."""

import argparse

from vpo.commands.arguments import POOLS, Commands, add_json, add_target, as_json, plain


def add(commands: Commands) -> None:
    """Add `vpo measure`."""
    measure = commands.add_parser(
        "measure",
        help="best@k, pass@k and diversity of pools of scored answers; two or more are compared",
        description="Measure pools of scored answers: best@k and pass@k by answers, by generations and by tokens, "
        "with bootstrap intervals over problems, and diversity. Further pools are compared with the first one, "
        "paired over the problems they share.",
        epilog=POOLS,
    )
    measure.add_argument("pools", nargs="+", metavar="POOL", help="pool file")
    measure.add_argument(
        "--k", type=_whole_numbers, metavar="K,K,…", help="budgets in answers and generations (1,3,5,10,30,100,300)"
    )
    add_target(measure)
    add_json(measure)
    measure.set_defaults(run=run)


def _whole_numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be whole numbers such as 1,3,10, not {text!r}") from None


def run(options: argparse.Namespace) -> int:
    """Measure pools and print what was found."""
    from vpo.measure import compare
    from vpo.pools import read_pool
    from vpo.tables import comparison_data, comparison_text
    from vpo.targets import parse_target

    target = parse_target(options.target) if options.target is not None else None
    comparison = compare([read_pool(path) for path in options.pools], target=target, ks=options.k)
    print(as_json(comparison_data(comparison)) if options.json else plain(comparison_text(comparison)))
    return 0
