"""`vpo eval`: sample a pool of answers from a model, score it, measure it."""

import argparse
from dataclasses import asdict
from pathlib import Path

from vpo.commands.arguments import Commands, add_json, add_target, as_json, plain, setting, task_settings


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
    command.add_argument("--count", type=int, metavar="N", help="how many problems (all of the split)")
    command.add_argument("--data", metavar="PATH", help="file or folder of the task's data, or hub, or hub:OWNER/NAME")
    command.add_argument("--set", action="append", default=[], type=setting, metavar="KEY=VALUE", help="task setting")
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
    from vpo.evaluate import evaluate
    from vpo.evaluations import POOL, Evaluation, check_free, oracle_of, write_answers, write_facts
    from vpo.files import command_line
    from vpo.generate import Sampling
    from vpo.measure import compare
    from vpo.policies import load, locate
    from vpo.policies.format import PromptFormat
    from vpo.score import Tally
    from vpo.tables import comparison_data, comparison_text, tally_text
    from vpo.targets import parse_target, weights_for
    from vpo.tasks import get

    found = locate(options.model, options.task, task_settings(options))
    asked = found.format or PromptFormat(task=found.task)
    answers = asked.answers if options.answers is None else options.answers
    asked.check_answers(answers)
    task = get(found.task, **found.settings)
    is_run = (Path(options.model) / "config.toml").is_file()
    folder = Path(options.out or (options.model if is_run else f"runs/{task.name}-{Path(options.model).name}"))
    check_free(folder, overwrite=options.overwrite)
    problems = task.problems(options.split, count=options.count)
    sampling = Sampling(
        temperature=options.temperature,
        top_p=options.top_p,
        max_new_tokens=(options.max_tokens or asked.tokens_per_answer or 256) * answers,
        batch=options.batch,
        seed=options.seed,
        thinking=options.thinking,
    )
    tally = Tally()
    target = parse_target(options.target) if options.target else asked.target
    weights = weights_for(target, task.names).tolist() if target else task.weights
    stated = weights if asked.target_in_prompt else None
    rows = evaluate(load(found.path), task, problems, answers, options.pool, sampling, tally, stated)
    tally.target = dict(zip(task.names, weights, strict=True))
    pool = write_answers(folder, rows)
    facts = {
        "command": command_line(),
        "model": options.model,
        "task": found.task,
        "task_settings": found.settings,
        "split": options.split,
        "problems": len(problems),
        "answers_per_generation": answers,
        "sampling": asdict(sampling),
        **tally.data(),
    }
    oracle = oracle_of([Evaluation(pool, facts)], tally.target)
    comparison = compare([pool], target=tally.target, oracle=oracle)
    write_facts(folder, {**facts, **comparison_data(comparison)})
    if options.json:
        print(as_json({**facts, **comparison_data(comparison)}))
    else:
        print(plain(f"{tally_text(tally, str(folder / POOL))}\n\n{comparison_text(comparison)}"))
    return 0
