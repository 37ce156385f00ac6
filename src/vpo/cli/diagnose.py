"""`vpo diagnose`: does a reward have trade-offs worth VPO?"""

import argparse

from vpo.cli.arguments import POOLS, Commands, add_examples, add_json, add_target, target_of
from vpo.cli.fields import names
from vpo.cli.output import as_json, plain
from vpo.cli.ratings import RATINGS, add_ratings, ranges_text, read_pools
from vpo.evaluation.agreement import SAME


def add(commands: Commands) -> None:
    """Add `vpo diagnose`."""
    diagnose = commands.add_parser(
        "diagnose",
        help="say whether a reward has trade-offs worth VPO",
        description="Say in plain words whether the reward behind a pool of scored answers has trade-offs: the "
        "effective rank of its objectives, the share of weightings that each answer wins, the headroom of a set "
        "over the best single answer, redundant objectives, and a verdict. Then which objectives to use: sets "
        "of them, merged, dropped or summed, with the headroom that each would give.",
        epilog=f"{POOLS} {RATINGS}",
    )
    diagnose.add_argument("pool", metavar="POOL", help="pool file, or with --group-by a file of ratings")
    add_target(diagnose, "the target that the pool states; else equal weights")
    diagnose.add_argument(
        "--same",
        type=float,
        default=SAME,
        metavar="R",
        help=f"correlation from which objectives count as redundant, and are merged; lower it for noisy ratings "
        f"(default: {SAME})",
    )
    diagnose.add_argument(
        "--merge",
        action="append",
        default=[],
        type=names,
        metavar="NAME,…",
        help="also propose a set with these merged; may be repeated",
    )
    diagnose.add_argument("--drop", type=names, default=[], metavar="NAME,…", help="also propose a set without these")
    add_ratings(diagnose)
    add_json(diagnose)
    add_examples(
        diagnose,
        "vpo diagnose pool.jsonl",
        "vpo diagnose ratings.jsonl --group-by prompt --objectives helpful,brief,honest",
        "vpo diagnose pool.jsonl --drop lava --merge gold,diamond",
    )
    diagnose.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Diagnose a pool and print the diagnosis."""
    from dataclasses import asdict

    from vpo.evaluation.comparison_text import target_text
    from vpo.evaluation.decompose import decompose
    from vpo.evaluation.decomposition_text import decomposition_text, recommendation
    from vpo.evaluation.diagnose import diagnose
    from vpo.evaluation.diagnosis_text import diagnosis_text
    from vpo.evaluation.eval_folder import Evaluation
    from vpo.evaluation.stated_targets import shared_target

    (pool,), ranges = read_pools(options, [options.pool], "--drop")
    given = target_of(options)
    target, notes = (given, []) if given else shared_target([Evaluation(pool, {})])
    sets = decompose(pool, target=target, same=options.same, merge=options.merge, drop=options.drop)
    diagnosis = diagnose(pool, target=target, same=options.same)
    if options.json:
        more = {
            "target": target,
            "notes": notes,
            "ranges": ranges,
            "decomposition": {**asdict(sets), "recommendation": recommendation(sets)},
        }
        print(as_json({**asdict(diagnosis), **more}))
        return 0
    noted = ["\n".join([f"target: {target_text(target)}", *(f"note: {note}" for note in notes)])]
    scaled = ranges_text(ranges, "the file")
    print(plain("\n\n".join([*scaled, diagnosis_text(diagnosis), decomposition_text(sets), *noted])))
    return 0
