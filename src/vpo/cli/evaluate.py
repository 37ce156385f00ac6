"""`vpo eval`: sample a pool of answers from a model, score it, measure it."""

import argparse
from pathlib import Path

from vpo.cli.arguments import Commands, add_json, add_settings, add_target, plain, task_settings


def add(commands: Commands) -> None:
    """Add `vpo eval`."""
    command = commands.add_parser(
        "eval",
        help="sample answers from a model, score and measure them",
        description="Sample a pool of answers for the problems of a task from a model, score each one, print best@k, "
        "pass@k and diversity, and write pool.parquet and eval.json.",
        epilog="Several evaluations are compared by vpo compare.",
    )
    command.add_argument(
        "model", metavar="MODEL", help="run, folder of a model, its name on the hub, or `embedded` for the task's own"
    )
    command.add_argument(
        "--task", metavar="NAME", help="a name from `vpo tasks`, or a .py file (what the model was trained on)"
    )
    command.add_argument("--split", default="test", help="which problems (test)")
    command.add_argument("--problems", type=int, metavar="N", help="how many problems (all of the split)")
    add_settings(command)
    command.add_argument("--answers", type=int, metavar="M", help="answers per generation (as trained; else 1)")
    command.add_argument("--pool", type=int, default=30, metavar="N", help="answers per problem, a multiple of M (30)")
    command.add_argument("--temperature", type=float, default=0.7, help="of the sampling (0.7)")
    command.add_argument("--top-p", type=float, default=1.0, help="of the sampling (1.0)")
    command.add_argument("--max-tokens", type=int, metavar="N", help="per answer (as trained; else 256)")
    command.add_argument("--batch", type=int, default=256, metavar="N", help="generations at once (256)")
    command.add_argument("--seed", type=int, default=0, help="of the sampling (0)")
    command.add_argument("--out", metavar="FOLDER", help="where to write (the run itself; else runs/TASK-MODEL)")
    command.add_argument("--overwrite", action="store_true", help="replace the evaluation that is there")
    command.add_argument("--thinking", action="store_true", help="let a reasoning model think before it answers")
    add_target(command, "what the model was trained for, or the task's own")
    add_json(command)
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Evaluate a model and print what was found."""
    from vpo.core.targets import parse_target
    from vpo.evaluation.comparison_text import comparison_text
    from vpo.evaluation.eval_folder import FACTS, POOL
    from vpo.evaluation.evaluate import EvalConfig, evaluate_into
    from vpo.evaluation.scored import counts_text
    from vpo.models.run_folder import is_run

    config = EvalConfig(
        model=options.model,
        task=options.task,
        task_settings=task_settings(options),
        split=options.split,
        problems=options.problems,
        answers=options.answers,
        pool=options.pool,
        target=None if options.target is None else parse_target(options.target),
        max_tokens=options.max_tokens,
        sampling={name: getattr(options, name) for name in ("temperature", "top_p", "batch", "seed", "thinking")},
    )
    folder = Path(
        options.out
        or (options.model if is_run(options.model) else f"runs/{_name(options.task)}-{_name(options.model)}")
    )
    comparison, counts = evaluate_into(folder, config, overwrite=options.overwrite)
    if options.json:
        print((folder / FACTS).read_text(encoding="utf-8").rstrip())
    else:
        summary = counts_text(counts, str(folder / POOL), comparison.target)
        print(plain(f"{summary}\n\n{comparison_text(comparison)}"))
    return 0


def _name(path: str | None) -> str:
    return Path(path).stem if path else "model"
