"""`vpo eval`: sample a pool of answers from a model, score it, measure it."""

import argparse

from vpo.commands.arguments import Commands, add_json, as_json, plain, setting, task_settings
from vpo.errors import InputError


def add(commands: Commands) -> None:
    """Add `vpo eval`."""
    command = commands.add_parser(
        "eval",
        help="sample answers from a model, score and measure them",
        description="Sample a pool of answers for the problems of a task from a model, score each one, write the pool, "
        "and print best@k, pass@k and diversity under the task's own weighting.",
        epilog="Two models are compared by their pools: vpo measure ONE TWO.",
    )
    command.add_argument(
        "model", metavar="MODEL", help="folder of a model, its name on the hub, or `embedded` for the task's own"
    )
    command.add_argument("--task", required=True, metavar="NAME", help="a name from `vpo tasks`, or a .py file")
    command.add_argument("--split", default="test", help="which problems (test)")
    command.add_argument("--count", type=int, metavar="N", help="how many problems (all of the split)")
    command.add_argument("--data", metavar="PATH", help="file or folder of the task's data, or hub, or hub:OWNER/NAME")
    command.add_argument("--set", action="append", default=[], type=setting, metavar="KEY=VALUE", help="task setting")
    command.add_argument("--answers", type=int, default=1, metavar="M", help="answers asked for per generation (1)")
    command.add_argument("--pool", type=int, default=30, metavar="N", help="answers per problem, a multiple of M (30)")
    command.add_argument("--temperature", type=float, default=0.7, help="of the sampling (0.7)")
    command.add_argument("--top-p", type=float, default=1.0, help="of the sampling (1.0)")
    command.add_argument("--max-tokens", type=int, default=256, metavar="N", help="per answer (256)")
    command.add_argument("--batch", type=int, default=256, metavar="N", help="generations at once (256)")
    command.add_argument("--seed", type=int, default=0, help="of the sampling (0)")
    command.add_argument("--out", default="pool.jsonl", metavar="POOL", help="the pool to write (pool.jsonl)")
    command.add_argument("--thinking", action="store_true", help="let a reasoning model think before it answers")
    add_json(command)
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Evaluate a model and print what was found."""
    from vpo.evaluate import evaluate
    from vpo.generate import Sampling
    from vpo.measure import compare
    from vpo.policies import embedded, load
    from vpo.policies.maze import MOST_ANSWERS
    from vpo.pools import read_pool, write_pool
    from vpo.score import Tally
    from vpo.tables import comparison_data, comparison_text, tally_text
    from vpo.tasks import get

    settings = task_settings(options)
    path = options.model
    if path == "embedded":
        settings["compact"] = True  # the prompt that the small policies know
        path = embedded(options.task, size=settings.get("size", 9))
        if options.answers > MOST_ANSWERS:
            raise InputError(f"answers must be at most {MOST_ANSWERS} for an embedded policy, not {options.answers}")
    task = get(options.task, **settings)
    problems = task.problems(options.split, count=options.count)
    sampling = Sampling(
        temperature=options.temperature,
        top_p=options.top_p,
        max_new_tokens=options.max_tokens * options.answers,
        batch=options.batch,
        seed=options.seed,
        thinking=options.thinking,
    )
    tally = Tally()
    rows = evaluate(load(path), task, problems, options.answers, options.pool, sampling, tally)
    write_pool(options.out, rows)
    found = compare([read_pool(options.out)], target=tally.target)
    if options.json:
        print(as_json({**tally.data(), **comparison_data(found)}))
    else:
        print(plain(f"{tally_text(tally, options.out)}\n\n{comparison_text(found)}"))
    return 0
