"""`vpo eval`: sample a pool of answers from a model, score it, measure it."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from vpo.cli.arguments import (
    Commands,
    add_examples,
    add_json,
    add_model,
    add_out,
    add_target,
    add_task_option,
    add_task_settings,
    target_of,
    task_name,
    task_settings,
)
from vpo.cli.fields import Options, add_fields, given_fields
from vpo.cli.output import plain, print_warning
from vpo.evaluation.eval_plan import EvalConfig
from vpo.models.generate import Sampling

if TYPE_CHECKING:
    from vpo.evaluation.compare import Comparison
    from vpo.evaluation.scored import ScoreCounts


def add(commands: Commands) -> None:
    """Add `vpo eval`."""
    command = commands.add_parser(
        "eval",
        help="sample answers from a model, score and measure them",
        description="Sample a pool of answers to the problems of a task from a model, score each one, print best@k, "
        "pass@k and diversity, and write pool.parquet and eval.json. Repeat the command to continue an evaluation that "
        "was interrupted or killed: it ends as if it had not been; on a CPU, bit for bit. The pool keeps the "
        "completions; where most answers cannot be read, some are shown.",
        epilog="With --endpoint, MODEL is its name at the server, or a folder that `vpo serve` serves. Compare several "
        "evaluations with `vpo compare`.",
    )
    add_model(command)
    add_sampling(command)
    add_target(command, "as the model was trained; else the task's")
    add_json(command)
    add_examples(
        command,
        "vpo eval embedded --task maze                 # before training, into runs/maze-embedded",
        "vpo eval runs/maze-vpo",
        "vpo eval runs/gsm8k-vpo/best --base models/Qwen2.5-0.5B-Instruct   # a LoRA adapter, and its base model",
        "vpo eval Qwen/Qwen3-1.7B --task gsm8k --data hub --problems 100 --pool 30 --answers 3",
    )
    command.set_defaults(run=run)


def add_sampling(options: Options) -> None:
    """Add the options of how a model is sampled, and into which folder."""
    add_fields(options, EvalConfig, ("base",))
    add_task_option(options)
    add_task_settings(options)
    add_fields(options, EvalConfig, ("split", "problems", "pool", "answers", "max_tokens", "prefill"))
    add_fields(options, Sampling, ("temperature", "top_p", "batch", "seed", "thinking"))
    add_fields(options, EvalConfig, ("generator", "precision", "endpoint", "limit", "concurrent"))
    add_out(
        options,
        "folder of the evaluation",
        shown="the run itself; RUN/evaluations/NAME of a model in it; else runs/TASK-MODEL",
    )
    options.add_argument(
        "--overwrite", action="store_true", help="replace the evaluation in that folder, complete or not"
    )


def sample(options: argparse.Namespace, model: str) -> "tuple[Path, Comparison, ScoreCounts]":
    """Evaluate a model by the options of `add_sampling` and `add_target`; the folder is returned with the measures."""
    from vpo.evaluation.eval_folder import FACTS, POOL
    from vpo.evaluation.evaluate import evaluate_into
    from vpo.util.outputs import check_folder

    task = task_name(options)
    config = EvalConfig(
        model=model,
        task=task,
        task_settings=task_settings(options),
        target=target_of(options),
        sampling=given_fields(options, Sampling),
        **given_fields(options, EvalConfig),
    )
    folder = Path(options.out) if options.out else _default_folder(model, task)
    check_folder(folder, POOL, FACTS)
    return folder, *evaluate_into(folder, config, overwrite=options.overwrite)


def run(options: argparse.Namespace) -> int:
    """Evaluate a model and print the counts and the measures."""
    from vpo.evaluation.comparison_text import comparison_text
    from vpo.evaluation.eval_folder import FACTS, POOL
    from vpo.evaluation.scored import counts_text, unread_text

    folder, comparison, counts = sample(options, options.model)
    if options.json:
        print((folder / FACTS).read_text(encoding="utf-8").rstrip())
    else:
        summary = counts_text(counts, str(folder / POOL))
        print(plain(f"{summary}\n\n{comparison_text(comparison)}"))
    if warning := unread_text(counts):
        print_warning(warning)
    return 0


def _default_folder(model: str, task: str | None) -> Path:
    """The run itself; for another model in a run, such as its best one or a checkpoint, a folder of the run."""
    from vpo.models.run_folder import is_run

    if is_run(model):
        return Path(model)
    path = Path(model).absolute()
    run = next((parent for parent in path.parents[:2] if path.is_dir() and is_run(parent)), None)
    return Path(f"runs/{_stem(task)}-{_stem(model)}") if run is None else run / "evaluations" / path.name


def _stem(path: str | None) -> str:
    return Path(path).stem if path else "model"
