"""`vpo diagnose`: does a reward have trade-offs worth VPO, and what could each method gain?"""

import argparse
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vpo.cli.arguments import POOLS, Commands, add_examples, add_json, add_target, target_of
from vpo.cli.evaluate import add_sampling, sample
from vpo.cli.fields import READERS, Options, integers, names
from vpo.cli.output import as_json, plain
from vpo.cli.ratings import RATINGS, add_ratings, ranges_text, read_pools
from vpo.evaluation.agreement import SAME
from vpo.evaluation.eval_plan import EvalConfig
from vpo.models.generate import Sampling
from vpo.util.errors import InputError
from vpo.util.row_files import SUFFIXES

if TYPE_CHECKING:
    from vpo.cli.ratings import Ranges
    from vpo.evaluation.eval_folder import Evaluation
    from vpo.evaluation.pools import Pool
    from vpo.evaluation.predict import Outlook
    from vpo.evaluation.simulate import Recipe
    from vpo.evaluation.training_signal import Signal

GROUP = 8
METHODS = ("grpo", "max_at_k", "vpo", "vpo_marginal", "vpo_marginal:answers=1:group={}")
NONE = ("none",)


def add(commands: Commands) -> None:
    """Add `vpo diagnose`."""
    diagnose = commands.add_parser(
        "diagnose",
        help="say whether a reward has trade-offs worth VPO, and what each method could gain",
        description="Say in plain words whether the reward behind a pool of scored answers has trade-offs: the "
        "effective rank of its objectives, the share of weightings that each answer wins, the headroom of a set "
        "over the best single answer, redundant objectives, and a verdict. Then which objectives to use: sets "
        "of them, merged, dropped or summed, with the headroom that each would give. Then what there is to learn "
        "from, and a prediction of what each method would gain: training is simulated on the pool, in seconds and "
        "without a model. With a MODEL, its pool is sampled first, as `vpo eval` does.",
        epilog=f"{POOLS} {RATINGS}",
    )
    diagnose.add_argument(
        "source",
        metavar="POOL|MODEL",
        help="pool file, or with --group-by a file of ratings; the folder of an evaluation; or a model to sample: a "
        "run, a model folder, a name on the Hugging Face hub, or `embedded`, the small policy of the task",
    )
    add_target(diagnose, "the target that the pool states, or of the task; else equal weights")
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
    _add_prediction(diagnose)
    add_ratings(diagnose)
    add_sampling(diagnose.add_argument_group("options for a MODEL"))
    add_json(diagnose)
    add_examples(
        diagnose,
        "vpo diagnose pool.jsonl",
        "vpo diagnose embedded --task maze --set size=7 --problems 100   # samples a pool first",
        "vpo diagnose pool.jsonl --methods grpo,max_at_k:group=24,vpo:answers=5 --k 1,8,32",
        "vpo diagnose ratings.jsonl --group-by prompt --objectives helpful,brief,honest",
        "vpo diagnose pool.jsonl --drop lava --merge gold,diamond",
    )
    diagnose.set_defaults(run=run)


def _add_prediction(options: Options) -> None:
    options.add_argument(
        "--methods",
        type=READERS[tuple[str, ...]],
        metavar="NAME,…",
        help="methods whose gain is predicted, with settings as in `vpo reproduce`, such as max_at_k:group=24; `none` "
        f"predicts nothing (default: {', '.join(METHODS).format('3G')})",
    )
    options.add_argument(
        "--group",
        type=int,
        default=GROUP,
        metavar="G",
        help=f"rollouts per problem in training, where a method has no group of its own (default: {GROUP})",
    )
    options.add_argument(
        "--k",
        type=integers,
        metavar="K,…",
        help="the k of predicted best@k, at most the answers of a problem (default: 1,3,5,10,30)",
    )


def run(options: argparse.Namespace) -> int:
    """Diagnose a pool and print the diagnosis."""
    from vpo.evaluation.comparison_text import target_text
    from vpo.evaluation.decompose import decompose
    from vpo.evaluation.decomposition_text import decomposition_text, recommendation
    from vpo.evaluation.diagnose import diagnose
    from vpo.evaluation.diagnosis_text import diagnosis_text
    from vpo.evaluation.prediction_text import outlook_text, signal_text
    from vpo.evaluation.prediction_text import recommendation as predicted
    from vpo.evaluation.stated_targets import shared_target

    recipes = _recipes(options)
    evaluation, ranges = _read(options)
    given = target_of(options)
    target, notes = (given, []) if given else shared_target([evaluation])
    pool = evaluation.pool
    sets = decompose(pool, target=target, same=options.same, merge=options.merge, drop=options.drop)
    diagnosis = diagnose(pool, target=target, same=options.same)
    signal, outlook = _predict(pool, recipes, target, options)
    if options.json:
        more = {
            "target": target,
            "notes": notes,
            "ranges": ranges,
            "decomposition": {**asdict(sets), "recommendation": recommendation(sets)},
            "signal": signal and asdict(signal),
            "prediction": outlook and {**asdict(outlook), "recommendation": predicted(outlook)},
        }
        print(as_json({**asdict(diagnosis), **more}))
        return 0
    noted = ["\n".join([f"target: {target_text(target)}", *(f"note: {note}" for note in notes)])]
    scaled = ranges_text(ranges, "the file")
    training = [*([signal_text(signal)] if signal else []), *([outlook_text(outlook)] if outlook else [])]
    print(plain("\n\n".join([*scaled, diagnosis_text(diagnosis), decomposition_text(sets), *training, *noted])))
    return 0


def _read(options: argparse.Namespace) -> "tuple[Evaluation, Ranges | None]":
    """The pool, sampled where the source is a model, and the ranges that ratings were scaled by."""
    from vpo.evaluation.eval_folder import FACTS, Evaluation, read_evaluation

    source = str(options.source)
    sampling = _given_for_a_model(options)
    is_file = options.group_by is not None or source.endswith(SUFFIXES) or Path(source).is_file()
    if is_file or ((Path(source) / FACTS).is_file() and not sampling):
        if sampling:
            raise InputError(f"{', '.join(sampling)} is for a model to sample, and {source} is a pool already")
        if not is_file:
            return read_evaluation(source), None
        (pool,), ranges = read_pools(options, [source], "--drop")
        return Evaluation(pool, {}), ranges
    if options.objectives is not None:
        raise InputError("objectives needs --group-by; to leave out objectives of a pool, use --drop")
    folder, *_ = sample(options, source)
    return read_evaluation(folder), None


def _given_for_a_model(options: argparse.Namespace) -> list[str]:
    """The options for a MODEL that were given, by name."""
    settings = [each.name for kind in (EvalConfig, Sampling) for each in fields(kind)]
    known = dict.fromkeys(["task", "task_file", "data", "format", "set", *settings])
    known.pop("target")
    given = [name for name in known if name in options]
    return given + [name for name in ("out", "overwrite") if getattr(options, name)]


def _recipes(options: argparse.Namespace) -> "list[Recipe]":
    """The methods to predict, with their groups; none with `--methods none`."""
    from vpo.evaluation.simulate import Recipe
    from vpo.training.plan import parse_method

    if options.methods == NONE:
        return []
    recipes = []
    for name in options.methods or [each.format(3 * options.group) for each in METHODS]:
        planned = parse_method(name)
        if planned.rate is not None:
            raise InputError(f"rate of {name} has no part in a prediction: leave it out")
        recipes.append(Recipe(name, planned.method, planned.group or options.group))
    return recipes


def _predict(
    pool: "Pool", recipes: "list[Recipe]", target: Any, options: argparse.Namespace
) -> "tuple[Signal | None, Outlook | None]":
    """What there is to learn from, and what each method would gain; neither of one answer a problem."""
    from vpo.evaluation.predict import predict, predicted_ks
    from vpo.evaluation.training_signal import signal_of

    ks = predicted_ks(pool, options.k)
    if max(len(problem.scores_nD) for problem in pool.problems.values()) == 1:
        return None, None
    signal = signal_of(pool, target=target, group=options.group, ks=ks)
    return signal, predict(pool, recipes, target=target, ks=ks) if recipes else None
