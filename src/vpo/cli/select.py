"""`vpo select`: choose k answers of each problem of a pool, by a weighting, a judge or a verifier that may err."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vpo.cli.arguments import (
    POOLS,
    ROWS,
    Commands,
    add_examples,
    add_json,
    add_out,
    add_split,
    add_target,
    add_task_option,
    add_task_settings,
    target_of,
    task_name,
    task_of,
    task_settings,
)
from vpo.cli.fields import add_fields, given_fields, integers
from vpo.cli.output import as_json, plain
from vpo.evaluation.select_config import SelectConfig
from vpo.util.errors import InputError

if TYPE_CHECKING:
    from vpo.evaluation.answer_rows import AnswerPool
    from vpo.evaluation.judged import Judged
    from vpo.tasks import Task

DEFAULT_K = [3]


def add(commands: Commands) -> None:
    """Add `vpo select`."""
    command = commands.add_parser(
        "select",
        help="choose the k answers of a pool that are best together",
        description="Choose k answers of each problem of a pool, in an order in which the first j are the choice of "
        "j: those whose best is good under every weighting, the best under w*, or those most similar to all that were "
        "sampled. The scores to choose by are the pool's, or a judge's (--judged, --rewards), and may be wrong "
        "(--error). Prints what the chosen answers are worth by the scores of the pool, against random answers and "
        "the best under w*, and writes them as a pool.",
        epilog=POOLS,
    )
    command.add_argument("pool", metavar="POOL", help="pool file, a run, or a folder that vpo eval wrote")
    command.add_argument(
        "--k",
        type=integers,
        default=DEFAULT_K,
        metavar="K,…",
        help="how many answers to choose; of several, all are measured and the largest is written (default: 3)",
    )
    add_fields(command, SelectConfig, ("by", "error", "error_of", "concentration", "similarity", "weigh_votes"))
    add_target(command, "the target that the pool states; else equal weights")
    add_out(command, f"the pool of chosen answers to write, {ROWS}", shown="POOL with .selected.jsonl")
    judge = command.add_argument_group("a judge", "scores to choose by; those of POOL then measure what was chosen")
    judge.add_argument(
        "--judged",
        metavar="POOL",
        help="a pool with other scores of the same answers: of the same problem, generation and position",
    )
    judge.add_argument("--rewards", metavar="FILE", help="score the answers with a rewards file, such as an LLM judge")
    files = command.add_argument_group(
        "pool files", "their task, for the questions of --rewards and to compare answers in --by mbr"
    )
    add_task_option(files, "default: that of a folder that vpo eval wrote")
    add_task_settings(files)
    add_split(files)
    add_json(command)
    add_examples(
        command,
        "vpo select runs/maze-vpo --k 1,3,5",
        "vpo select pool.jsonl --by target --target gold=1,diamond=3 --k 1",
        "vpo select truth.jsonl --judged judge.jsonl --error 0.2 --out chosen.jsonl",
        "vpo select runs/gsm8k-model --by mbr --k 1               # majority vote",
    )
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Choose answers, write them, and print what they are worth."""
    from vpo.evaluation.answer_rows import read_answers
    from vpo.evaluation.comparison_text import target_text
    from vpo.evaluation.pools import write_pool
    from vpo.evaluation.select import select
    from vpo.evaluation.selection_text import selected_rows, selection_data, selection_text
    from vpo.evaluation.selection_values import selection_values
    from vpo.evaluation.stated_targets import shared_target
    from vpo.util.outputs import check_file

    config = SelectConfig(**given_fields(options, SelectConfig))
    ks = _ks(options.k)
    out = options.out or _default_out(options.pool)
    check_file(out)
    answers = read_answers(options.pool)
    _check_distinct(out, options, answers)
    option = target_of(options)
    target, target_notes = (option, []) if option else shared_target([answers.evaluation])
    task = _task(options, config, answers)
    judged = _judged(options, answers, task)
    selection = select(answers, ks[-1], config, target=target, judged=judged, task=task)
    values = selection_values(answers, selection, ks, target=target, concentration=config.concentration)
    write_pool(out, selected_rows(answers, selection, judged))
    notes = [*target_notes, *selection.notes, *_notes(config, judged)]
    if options.json:
        data = selection_data(answers, selection, values, config, target)
        print(as_json({**data, "notes": notes, "judged": judged and judged.source, "selected": out}))
        return 0
    selection = replace(selection, notes=tuple(notes))
    measured = f"measured by the scores of {answers.evaluation.pool.path}"
    text = selection_text(answers, selection, values, _way(config, judged), target_text(target), measured)
    print(plain(f"{text}\nwrote {out}; next: vpo measure {out}"))
    return 0


def _ks(numbers: list[int]) -> list[int]:
    """The numbers of answers, in order, each once."""
    if min(numbers) < 1:
        raise InputError(f"k must be 1 or more, not {min(numbers)}")
    return sorted(set(numbers))


def _default_out(pool: str) -> str:
    """Beside the pool, or in the folder of the evaluation."""
    from vpo.util.row_files import without_suffix

    path = Path(pool)
    return str(
        path / "selected.jsonl" if path.is_dir() else path.with_name(without_suffix(path.name) + ".selected.jsonl")
    )


def _check_distinct(out: str, options: argparse.Namespace, answers: "AnswerPool") -> None:
    """Refuse to write over a pool that is read."""
    for path in (answers.evaluation.pool.path, options.judged):
        if path is not None and Path(path).resolve() == Path(out).resolve():
            raise InputError(f"out must not be a pool that is read, {out}")


def _task(options: argparse.Namespace, config: SelectConfig, answers: "AnswerPool") -> "Task[Any] | None":
    """The task that the options name, else that of the evaluation; it is made only where it is used."""
    from vpo.evaluation.eval_folder import task_of as task_of_evaluation

    named = task_name(options) is not None
    if task_settings(options) and not named:
        raise InputError("data, format and set are settings of the task of pool files: name it with --task")
    if options.rewards is None and (config.by, config.similarity) != ("mbr", "exact"):
        return None  # to make a task may load models
    return task_of(options) if named else task_of_evaluation(answers.evaluation)


def _judged(options: argparse.Namespace, answers: "AnswerPool", task: "Task[Any] | None") -> "Judged | None":
    """The scores to choose by, None for those of the pool."""
    if options.judged is not None and options.rewards is not None:
        raise InputError("give --judged or --rewards, not both")
    if options.judged is not None:
        from vpo.evaluation.judged import judged_by_pool

        return judged_by_pool(answers, options.judged)
    if options.rewards is None:
        return None
    if task is None:
        raise InputError("rewards needs the questions of the problems: name their task with --task")
    from vpo.evaluation.judged import judged_by_rewards
    from vpo.rewards.toml import read_rewards

    split = options.split if task_name(options) is not None else answers.evaluation.facts.get("split", options.split)
    return judged_by_rewards(answers, read_rewards(options.rewards), task, split, options.rewards)


def _notes(config: SelectConfig, judged: "Judged | None") -> list[str]:
    """A note where errors of the scores show in their measures."""
    if config.error and judged is None:
        return [
            "the scores that may be wrong also measure what was chosen, so the values of chosen and top are too high"
        ]
    return []


def _way(config: SelectConfig, judged: "Judged | None") -> str:
    """How answers are chosen, in words."""
    ways = {
        "cover": "cover, for every weighting",
        "target": "their score under w*",
        "mbr": f"minimum Bayes risk ({config.similarity}{', votes weighed by w*' if config.weigh_votes else ''})",
    }
    source = "" if judged is None else f" by the scores of {judged.source}"
    error = f", {config.error:.0%} of the {config.error_of} wrong" if config.error else ""
    return ways[config.by] + source + error
