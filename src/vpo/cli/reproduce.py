"""`vpo reproduce`: every method side by side, several seeds, on one page."""

import argparse
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vpo.cli.arguments import Commands, add_json, add_task_settings, task_settings
from vpo.cli.fields import names, numbers
from vpo.cli.output import as_json, plain
from vpo.util.errors import InputError

if TYPE_CHECKING:
    from vpo.training.plan import Plan


def add(commands: Commands) -> None:
    """Add `vpo reproduce`."""
    command = commands.add_parser(
        "reproduce",
        help="train every method with several seeds, and show them on one page",
        description="Train every method from the same policy, and measure them all, and that policy, on test problems "
        "that nobody saw. On mazes: at the best of some learning rates, chosen on validation mazes, with several "
        "seeds, from a policy that is built first. On tasks of text: from a language model that is warmed up first. "
        "What is there already is not done again.",
    )
    command.add_argument("task", metavar="TASK", help="maze; or toolrl, musique or another task of text")
    command.add_argument("--out", metavar="FOLDER", help="for everything (reproduced/maze-SIZE or reproduced/TASK)")
    command.add_argument(
        "--small", action="store_true", help="a little of everything, to see that it works: who is ahead then is chance"
    )
    command.add_argument("--jobs", type=int, metavar="N", help="runs at once (8 on a GPU, else 1)")
    plan = command.add_argument_group("the plan", argument_default=argparse.SUPPRESS)
    plan.add_argument("--model", help="to start from: a folder, a name on the hub, embedded")
    plan.add_argument(
        "--methods",
        type=lambda text: tuple(names(text)),
        metavar="NAME,…",
        help="settings are written vpo_anchored:anchor=0.7",
    )
    plan.add_argument("--rates", type=numbers, metavar="RATE,…", help="learning rates to choose from")
    plan.add_argument("--kl", type=float, metavar="BETA", help="weight of the KL term")
    _add_numbers(
        plan,
        seeds="how many",
        steps="of training",
        prompts_per_step="problems a step",
        problems="to train on; 0: all",
        group="rollouts per problem",
        warmup_steps="over which the rate rises",
        validation_problems="problems to choose rates on",
        test_problems="problems to report on; 0: all",
        pool="answers per problem",
        evaluations="pools of each run",
    )
    maze = command.add_argument_group("mazes", argument_default=argparse.SUPPRESS)
    _add_numbers(
        maze,
        size="of the mazes (9)",
        policy_mazes="to build the policy from",
        policy_steps="to build the policy in",
        policy_width="of the policy, a multiple of 32",
    )
    text = command.add_argument_group("tasks of text", argument_default=argparse.SUPPRESS)
    add_task_settings(text)
    text.add_argument("--warmup-learning-rate", type=float, metavar="RATE", help="learning rate of the warm-up")
    _add_numbers(
        text,
        max_tokens="room for an answer",
        micro_batch="rollouts in one backward pass",
        single_steps="steps of the warm-up on single gold answers",
        set_steps="steps of the warm-up on sets of the model's own answers",
        set_problems="problems for those sets",
    )
    add_json(command)
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Reproduce, and print the table and where the page is."""
    from vpo.evaluation.comparison_text import comparison_data, comparison_text
    from vpo.report.curves import curves_of
    from vpo.report.markdown import markdown
    from vpo.report.page import write_page
    from vpo.report.page_data import page_data
    from vpo.report.page_tables import costs_of, rate_table, seed_table
    from vpo.training.costs import cost_text
    from vpo.training.reproduce import RESULTS, reproduce
    from vpo.util.files import command_line, write_json, write_text

    plan = _plan(options)
    on_gpu = _on_gpu()
    if not (options.small or on_gpu):
        shorter = "; --small takes minutes" if options.task == "maze" else ""
        warnings.warn(f"no GPU is seen, and by default a plan takes days without one{shorter}", stacklevel=1)
    folder = Path(options.out or f"reproduced/{plan.start.name}")
    jobs = (8 if on_gpu else 1) if options.jobs is None else options.jobs
    comparison, evaluations, results = reproduce(plan, folder, jobs)
    costs = costs_of(evaluations, results["names"])
    data = {
        **results,
        **comparison_data(comparison),
        "costs": {name: each and asdict(each) for name, each in costs.items()},
    }
    write_json(folder / RESULTS, data)
    title = f"{plan.start.title}: every method, {plan.seeds} seeds, {plan.evaluations} pools of each"
    page = page_data(comparison, curves_of(comparison), evaluations, results["names"], title, command_line())
    page["tables"].append(seed_table(results["seeds"], plan.evaluations))
    if len(plan.rates) > 1:
        page["tables"].append(rate_table(results["rates"]))
    write_page(folder / "report.html", page)
    write_text(folder / "tables.md", markdown(page["tables"]))
    if options.json:
        print(as_json(data))
    else:
        text = comparison_text(comparison, brief=True, names=results["names"])
        made = f"the page: {folder}/report.html; its tables: {folder}/tables.md; every number: {folder}/results.json"
        print(plain(f"{text}\n\n{cost_text(costs)}\n\n{made}"))
    return 0


def _plan(options: argparse.Namespace) -> "Plan":
    """The plan of the task, with the options in place of its defaults."""
    from vpo.training.plan import SETTINGS, plan_for

    settings = {name: value for name, value in vars(options).items() if name in SETTINGS}
    if options.task != "maze":
        settings["task_settings"] = task_settings(options)
    elif task_settings(options):
        raise InputError("reproduce maze has no settings of the task but --size")
    return plan_for(options.task, settings, small=options.small)


def _add_numbers(options: Any, /, **meanings: str) -> None:
    for name, meaning in meanings.items():
        options.add_argument(f"--{name.replace('_', '-')}", type=int, metavar="N", help=meaning)


def _on_gpu() -> bool:
    import torch

    found: bool = torch.cuda.is_available()
    return found
