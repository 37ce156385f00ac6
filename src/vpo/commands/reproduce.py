"""`vpo reproduce`: every method side by side, several seeds, on one page."""

import argparse
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from vpo.commands.arguments import Commands, add_json, as_json, plain
from vpo.errors import InputError


def add(commands: Commands) -> None:
    """Add `vpo reproduce`."""
    command = commands.add_parser(
        "reproduce",
        help="train every method with several seeds, and show them on one page",
        description="Train every method from the same policy, at the best of some learning rates, chosen on validation "
        "mazes; then with several seeds; and measure them all, and the untrained policy, on test mazes that nobody "
        "saw. What is there already is not done again.",
    )
    command.add_argument("task", metavar="TASK", help="maze")
    command.add_argument("--out", metavar="FOLDER", help="for everything (reproduced/TASK-SIZE)")
    command.add_argument("--small", action="store_true", help="a plan for minutes on a CPU, to see that it works")
    command.add_argument("--jobs", type=int, metavar="N", help="runs at once (8 on a GPU, else 1)")
    plan = command.add_argument_group("the plan", argument_default=argparse.SUPPRESS)
    plan.add_argument("--size", type=int, help="of the mazes (9)")
    plan.add_argument("--model", help="the policy to start from, embedded or a folder (one is built)")
    plan.add_argument("--methods", type=_names, metavar="NAME,…", help="all ten; settings as vpo_anchored:anchor=0.7")
    plan.add_argument("--rates", type=_numbers, metavar="RATE,…", help="learning rates to choose from")
    for name, what in (
        ("policy-mazes", "to build the policy from"),
        ("policy-steps", "to build the policy in"),
        ("policy-width", "of the policy, a multiple of 32"),
        ("seeds", "how many"),
        ("steps", "of training"),
        ("prompts", "mazes a step"),
        ("problems", "mazes to train on"),
        ("group", "rollouts per maze"),
        ("warmup-steps", "over which the rate rises"),
        ("validation", "mazes to choose rates on"),
        ("test", "mazes to report on"),
        ("pool", "answers per maze"),
    ):
        plan.add_argument(f"--{name}", type=int, metavar="N", help=what)
    plan.add_argument("--kl", type=float, metavar="BETA", help="weight of the KL term")
    add_json(command)
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Reproduce, and print the table and where the page is."""
    from vpo.costs import cost_text
    from vpo.files import command_line, write_json, write_text
    from vpo.plan import SMALL, Plan
    from vpo.report.curves import curves_of
    from vpo.report.data import costs_of, page_data, rate_table, seed_table
    from vpo.report.markdown import markdown
    from vpo.report.page import write_page
    from vpo.reproduce import RESULTS, reproduce
    from vpo.tables import comparison_data, comparison_text

    if options.task != "maze":
        raise InputError(f"there is nothing to reproduce of task {options.task!r}: there is maze")
    named = [each.name for each in fields(Plan) if hasattr(options, each.name)]
    given: dict[str, Any] = {name: getattr(options, name) for name in named}
    plan = replace(SMALL if options.small else Plan(), **given)
    folder = Path(options.out or f"reproduced/maze-{plan.size}")
    comparison, evaluations, results = reproduce(plan, folder, _jobs() if options.jobs is None else options.jobs)
    costs = costs_of(evaluations, results["names"])
    data = {
        **results,
        **comparison_data(comparison),
        "costs": {name: each and asdict(each) for name, each in costs.items()},
    }
    write_json(folder / RESULTS, data)
    title = f"maze {plan.size} × {plan.size}: every method, {plan.seeds} seeds"
    page = page_data(comparison, curves_of(comparison), evaluations, results["names"], title, command_line())
    page["tables"] += [seed_table(results["seeds"]), rate_table(results["rates"])]
    write_page(folder / "report.html", page)
    write_text(folder / "tables.md", markdown(page["tables"]))
    if options.json:
        print(as_json(data))
    else:
        text = comparison_text(comparison, brief=True, names=results["names"])
        made = f"the page: {folder}/report.html; its tables: {folder}/tables.md; every number: {folder}/results.json"
        print(plain(f"{text}\n\n{cost_text(costs)}\n\n{made}"))
    return 0


def _jobs() -> int:
    import torch

    return 8 if torch.cuda.is_available() else 1


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be numbers such as 3e-5,1e-4, not {text!r}") from None
