"""`vpo reproduce`: every method side by side, several seeds, on one page."""

import argparse
import warnings
from dataclasses import asdict, fields
from pathlib import Path

from vpo.cli.arguments import (
    Commands,
    add_examples,
    add_jobs,
    add_json,
    add_out,
    add_task,
    add_task_settings,
    needed_task,
    task_name,
    task_settings,
)
from vpo.cli.fields import add_fields, default_text, shown_default
from vpo.cli.output import as_json, plain
from vpo.training.plan import LANGUAGE, Plan
from vpo.training.starts import LanguageStart, MazeStart
from vpo.util.errors import InputError

TRAINING = ("methods", "rates", "kl", "seeds", "steps", "prompts_per_step", "problems", "group", "warmup_steps")
MEASURING = ("validation_problems", "test_problems", "pool", "evaluations", "reference")

TABLES, PAGE = "tables.md", "report.html"


def add(commands: Commands) -> None:
    """Add `vpo reproduce`."""
    command = commands.add_parser(
        "reproduce",
        help="train every method with several seeds, and show them on one page",
        description="Train every method from the same policy, and measure them and that policy on test problems. On "
        "mazes: from a policy that is built first, with several seeds, at the learning rate that is best on validation "
        "mazes. On language tasks: from a language model that is warmed up first, unless --single-steps and "
        "--set-steps are 0, at the rate that is best on problems held out of training. Repeat the command to resume; "
        "finished runs are kept.",
    )
    add_task(command, "maze, or a language task such as toolrl or musique")
    add_out(command, "folder for everything", shown="reproduced/maze-SIZE or reproduced/TASK")
    command.add_argument(
        "--small",
        action="store_true",
        help="a small plan of a few minutes, to try the command; too small to rank methods",
    )
    command.add_argument(
        "--plan",
        type=Path,
        metavar="FILE.toml",
        help="a TOML file of the task and these options, by their names; what the command line gives overrides it",
    )
    add_jobs(command, "runs", "8 on a GPU, else 1")
    both = {
        each.name: f"{shown_default(each)}; language tasks {default_text(LANGUAGE[each.name])}"
        for each in fields(Plan)
        if each.name in LANGUAGE
    }
    plan = command.add_argument_group("the plan")
    add_fields(plan, MazeStart, ("model",))
    add_fields(plan, Plan, (*TRAINING, *MEASURING), both)
    mazes = command.add_argument_group("mazes")
    add_fields(mazes, MazeStart, ("size", "policy_mazes", "policy_steps", "policy_width"))
    language = command.add_argument_group("language tasks")
    add_task_settings(language)
    warmup = ("single_steps", "set_steps", "set_problems", "warmup_learning_rate")
    language.add_argument(
        "--test-data", metavar="PATH", help="data of the test problems (default: that of the training problems)"
    )
    add_fields(language, LanguageStart, ("split", "lora", "max_tokens", "micro_batch", *warmup))
    add_json(command)
    add_examples(
        command,
        "vpo reproduce maze --small                    # a few minutes on a CPU, to try it",
        "vpo reproduce maze --jobs 4",
        "vpo reproduce toolrl --model MODEL --data rlla_4k/ --methods grpo,vpo --seeds 3",
    )
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Reproduce, and print the table and where the page is."""
    from vpo.evaluation.comparison_text import comparison_data, comparison_text
    from vpo.evaluation.verdict import verdict
    from vpo.report.markdown import markdown
    from vpo.report.page import write_page
    from vpo.report.page_data import page_data
    from vpo.report.page_tables import costs_of, rate_table, seed_table
    from vpo.training.costs import cost_text
    from vpo.training.reproduce import BASES, RESULTS, reproduce
    from vpo.util.files import write_json, write_text
    from vpo.util.outputs import check_folder
    from vpo.util.records import command_line

    plan = _plan(options)
    task = plan.start.task
    on_gpu = _on_gpu()
    if not (options.small or on_gpu):
        shorter = "; --small takes minutes" if task == "maze" else ""
        warnings.warn(f"there is no GPU, and the default plan takes days without one{shorter}", stacklevel=1)
    folder = Path(options.out or f"reproduced/{plan.start.name}")
    check_folder(folder, RESULTS, TABLES, PAGE)
    jobs = (8 if on_gpu else 1) if options.jobs is None else options.jobs
    comparison, evaluations, results = reproduce(plan, folder, jobs)
    costs = costs_of(evaluations, results["names"])
    names = results["names"]
    said = verdict(comparison, names, {index for index, name in enumerate(names) if name in BASES})
    data = {
        "verdict": said,
        **results,
        **comparison_data(comparison),
        "costs": {name: each and asdict(each) for name, each in costs.items()},
    }
    write_json(folder / RESULTS, data)
    title = f"{plan.start.title}: every method, {plan.seeds} seeds"
    title += f", {plan.evaluations} pools of each" if plan.evaluations > 1 else ""
    page = page_data(comparison, evaluations, names, command_line(), verdict=said, title=title)
    page["tables"].append(seed_table(results["seeds"], plan.evaluations))
    if plan.chooses_rates:
        page["tables"].append(rate_table(results["rates"]))
    write_page(folder / PAGE, page)
    write_text(folder / TABLES, markdown(page["tables"]))
    if options.json:
        print(as_json(data))
    else:
        text = comparison_text(comparison, brief=True, names=names)
        made = f"the page: {folder}/report.html; its tables: {folder}/tables.md; every number: {folder}/results.json"
        print(plain(f"{said}\n\n{text}\n\n{cost_text(costs)}\n\n{made}"))
    return 0


def _plan(options: argparse.Namespace) -> Plan:
    """The plan of the file, with the options over its settings; without a file, over the defaults of the task."""
    from vpo.training.plan import SETTINGS, plan_for, read_plan

    planned = {} if options.plan is None else read_plan(options.plan)
    task = planned.pop("task", None)
    if task is None:
        task = needed_task(options)
    elif task_name(options) not in (None, task):
        raise InputError(f"{options.plan} is a plan for task {task}, not {task_name(options)}")
    settings = {name: value for name, value in vars(options).items() if name in SETTINGS}
    if task != "maze":
        settings["task_settings"] = {**planned.get("task_settings", {}), **task_settings(options)}
        if options.test_data is not None:
            settings["test_settings"] = {**planned.get("test_settings", {}), "data": options.test_data}
    elif task_settings(options) or options.test_data is not None:
        raise InputError("data, test-data and set are for language tasks; mazes take --size")
    return plan_for(task, settings, planned=planned, small=options.small)


def _on_gpu() -> bool:
    import torch

    return bool(torch.cuda.is_available())
