"""`vpo measure`: best@k, pass@k and diversity of pools, compared."""

import argparse

from vpo.cli.arguments import POOLS, Commands, add_examples, add_json, add_k, add_target, target_of
from vpo.cli.output import as_json, plain
from vpo.cli.ratings import RATINGS, add_ratings, ranges_text, read_pools

POOL = "pool file, a run, or a folder that vpo eval wrote; with --group-by a file of ratings"


def add(commands: Commands) -> None:
    """Add `vpo measure`."""
    measure = commands.add_parser(
        "measure",
        help="measure best@k, pass@k and diversity of pools of scored answers, and compare pools",
        description="Measure pools of scored answers: best@k and pass@k by answers, by generations and by tokens, "
        "with 95% intervals over problems, and diversity. Further pools are compared with the first one, "
        "paired over the problems they share.",
        epilog=f"{POOLS} {RATINGS}",
    )
    measure.add_argument("pools", nargs="+", metavar="POOL", help=POOL)
    add_k(measure)
    add_target(measure, "the target that the pools state; else equal weights")
    add_ratings(measure)
    add_json(measure)
    add_examples(
        measure,
        "vpo measure pool.jsonl",
        "vpo measure runs/maze-vpo",
        "vpo measure base.parquet trained.parquet --k 1,3,10 --target gold=1,diamond=3",
    )
    measure.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Measure pools and print the measures."""
    from dataclasses import replace

    from vpo.evaluation.compare import compare
    from vpo.evaluation.comparison_text import comparison_data, comparison_text
    from vpo.evaluation.eval_folder import Evaluation
    from vpo.evaluation.stated_targets import shared_target

    pools, ranges = read_pools(options, options.pools, "--target, which gives those that it does not name weight 0")
    given = target_of(options)
    target, notes = (given, []) if given else shared_target([Evaluation(pool, {}) for pool in pools])
    comparison = compare(pools, target=target, ks=options.k)
    comparison = replace(comparison, notes=(*notes, *comparison.notes))
    if options.json:
        print(as_json({**comparison_data(comparison), **({"ranges": ranges} if ranges else {})}))
    else:
        where = "the file" if len(pools) == 1 else "all files"
        print(plain("\n\n".join([*ranges_text(ranges, where), comparison_text(comparison)])))
    return 0
