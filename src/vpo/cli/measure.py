"""`vpo measure`: best@k, pass@k and diversity of pools, compared."""

import argparse

from vpo.cli.arguments import POOLS, Commands, add_examples, add_json, add_k, add_target, target_of
from vpo.cli.output import as_json, plain


def add(commands: Commands) -> None:
    """Add `vpo measure`."""
    measure = commands.add_parser(
        "measure",
        help="measure best@k, pass@k and diversity of pools of scored answers, and compare pools",
        description="Measure pools of scored answers: best@k and pass@k by answers, by generations and by tokens, "
        "with 95% intervals over problems, and diversity. Further pools are compared with the first one, "
        "paired over the problems they share.",
        epilog=POOLS,
    )
    measure.add_argument("pools", nargs="+", metavar="POOL", help="pool file")
    add_k(measure)
    add_target(measure, "the target that the pools state; else equal weights")
    add_json(measure)
    add_examples(
        measure,
        "vpo measure pool.jsonl",
        "vpo measure base.parquet trained.parquet --k 1,3,10 --target gold=1,diamond=3",
    )
    measure.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Measure pools and print the measures."""
    from dataclasses import replace

    from vpo.evaluation.compare import compare
    from vpo.evaluation.comparison_text import comparison_data, comparison_text
    from vpo.evaluation.eval_folder import Evaluation
    from vpo.evaluation.pools import read_pool
    from vpo.evaluation.stated_targets import shared_target

    pools = [read_pool(path) for path in options.pools]
    given = target_of(options)
    target, notes = (given, []) if given else shared_target([Evaluation(pool, {}) for pool in pools])
    comparison = compare(pools, target=target, ks=options.k)
    comparison = replace(comparison, notes=(*notes, *comparison.notes))
    print(as_json(comparison_data(comparison)) if options.json else plain(comparison_text(comparison)))
    return 0
