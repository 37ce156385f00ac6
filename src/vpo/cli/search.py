"""`vpo search`: spend a budget on policies, for goals chosen after training."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vpo.cli.arguments import (
    Commands,
    add_evaluator,
    add_examples,
    add_jobs,
    add_json,
    add_out,
    add_task_option,
    add_task_settings,
    assignment,
    distinct,
    task_name,
    task_settings,
)
from vpo.cli.fields import Options, add_fields, given_fields
from vpo.cli.output import as_json, plain
from vpo.core.checks import as_integer
from vpo.search.config import SearchConfig
from vpo.util.errors import InputError
from vpo.util.progress import progress_bar

if TYPE_CHECKING:
    from vpo.search.jobs import SearchJob
    from vpo.search.result import SearchResult

RESULTS, TABLES, PAGE = "results.json", "tables.md", "report.html"


def add(commands: Commands) -> None:
    """Add `vpo search`."""
    command = commands.add_parser(
        "search",
        help="spend a budget of answers on policies, for any goal",
        description="Search for good answers with trained policies, by independent samples, by evolution or in a tree. "
        "The goal may be one that the policy was not trained for: a weighting, a condition, a Python function, or the "
        "goal of the task. Repeat the command to resume an interrupted search.",
    )
    command.add_argument(
        "models",
        nargs="+",
        metavar="MODEL",
        help="a run, an evaluation, a model folder, a name on the Hugging Face hub, `embedded`, or a folder of vpo "
        "reproduce for all of its runs",
    )
    command.add_argument(
        "--names", metavar="NAME,…", help="of a folder of vpo reproduce, these names alone (default: all)"
    )
    add_fields(command, SearchConfig, ("strategy", "iterations", "per_iteration"))
    _add_repeatable(
        command,
        "--budget",
        "UNIT=N",
        "spend at most so many answers, generations or tokens on each problem and goal",
        assignment,
    )
    command.add_argument("--no-baseline", action="store_true", help="do not run best_of_n beside another strategy")
    goals = command.add_argument_group("goals, each searched for in every problem (default: the goal of the task)")
    _add_repeatable(
        goals,
        "--target",
        "NAME=W,…",
        "a weighting; solved at the best possible value where the task knows it, else at 1",
    )
    _add_repeatable(goals, "--goal", "NAME>=X,…", "bounds on objectives; solved where all hold")
    _add_repeatable(goals, "--reward", "FILE.py:NAME", "a Python function of answer, scores and problem")
    where = command.add_argument_group("problems and folder")
    add_task_option(where)
    add_task_settings(where)
    add_evaluator(where)
    add_fields(where, SearchConfig, ("split", "problems"))
    _add_repeatable(
        where, "--unsolved-by", "EVAL", "an evaluation or pool: search its problems that no answer in it solves"
    )
    add_out(where, "folder for logs, tables and page", default="searches")
    add_jobs(where, "searches", "1")
    evolution = command.add_argument_group("evolution")
    evolution.add_argument(
        "--operators",
        metavar="NAME=SHARE,…",
        help="how often evolve uses each operator: fresh, regrow, branch, extend, repair, cross (default: equal shares "
        "of fresh, branch and, for sets, extend; at an endpoint of fresh and repair; where the task says what is "
        "wrong, as code does, fresh=1,repair=2,cross=1); tree uses the first three (default: fresh=1,branch=3)",
    )
    add_fields(evolution, SearchConfig, ("parents", "population", "features"))
    sampling = command.add_argument_group("sampling and scoring")
    add_fields(sampling, SearchConfig, ("answers", "max_tokens", "prefill", "temperature", "top_p"))
    add_fields(sampling, SearchConfig, ("batch", "thinking", "seed"))
    add_fields(sampling, SearchConfig, ("generator", "precision", "endpoint", "processes", "limit"))
    add_json(command)
    add_examples(
        command,
        "vpo search runs/maze-vpo --target gold=1,diamond=3 --iterations 20",
        "vpo search runs/maze-vpo --strategy evolve --goal 'gold>=0.5,avoid_lava>=1' --problems 20",
        "vpo search MODEL --task maze --endpoint http://127.0.0.1:8000/v1 --budget answers=100",
        "vpo search MODEL --evaluator examples/circle_packing --answers 3 --endpoint http://127.0.0.1:8000/v1",
    )
    command.set_defaults(run=run)


def _add_repeatable(options: Options, flag: str, metavar: str, help: str, type: Callable[[str], Any] = str) -> None:
    """Add an option that may be repeated."""
    options.add_argument(flag, action="append", default=[], type=type, metavar=metavar, help=f"{help}; may be repeated")


def run(options: argparse.Namespace) -> int:
    """Search with each model, and print what each solved."""
    from vpo.report.markdown import markdown
    from vpo.report.page import write_page
    from vpo.report.search_page import search_page
    from vpo.search.jobs import PRELOAD
    from vpo.search.result import merge_seeds
    from vpo.util.files import write_json, write_text
    from vpo.util.jobs import run_jobs
    from vpo.util.outputs import check_folder
    from vpo.util.records import command_line

    check_folder(options.out, RESULTS, TABLES, PAGE)
    jobs = _jobs(options)
    parallel = 1 if options.jobs is None else as_integer(options.jobs, "jobs", 1)
    if parallel > 1:
        Path(options.out).mkdir(parents=True, exist_ok=True)
        run_jobs([job for group in jobs.values() for job in group], parallel=parallel, preload=PRELOAD)
    results = [merge_seeds([_searched(name, job) for job in group], name) for name, group in jobs.items()]
    folders = [group[0].folder for group in jobs.values()]
    if any(each.cases != each.distinct * each.seeds or each.distinct != results[0].distinct for each in results):
        raise InputError("the searches are not over the same problems and goals: search with each model separately")
    page = search_page(results, folders, command_line())
    data = {
        "command": command_line(),
        "curves": page["search"]["curves"],
        "names": [each.name for each in results],
        "problems": len(set(results[0].problems)),
        "solved": {each.name: sorted(each.solved) for each in results},
        "tables": page["tables"],
        "failures": {each.name: each.failures for each in results},
    }
    write_json(Path(options.out) / RESULTS, data)
    write_text(Path(options.out) / TABLES, markdown(page["tables"]))
    write_page(Path(options.out) / PAGE, page)
    if options.json:
        print(as_json(data))
    else:
        made = f"the page: {options.out}/report.html; every candidate: {options.out}/*/candidates.jsonl"
        print(plain(f"{_text(page)}\n\n{made}"))
    return 0


def _jobs(options: argparse.Namespace) -> "dict[str, list[SearchJob]]":
    """For each model with each strategy, a search for each of its seeds."""
    from vpo.search.jobs import SearchJob

    settings = _settings(options)
    strategy = settings.pop("strategy", SearchConfig.strategy)
    strategies = [strategy] if strategy == "best_of_n" or options.no_baseline else [strategy, "best_of_n"]
    return {
        f"{name} {each}": [
            SearchJob(
                Path(options.out) / f"{name}{f'-{seed}' if len(paths) > 1 else ''}-{each}",
                SearchConfig(model=path, strategy=each, **settings),
            )
            for seed, path in enumerate(paths, start=1)
        ]
        for name, paths in _models(options.models, options.names).items()
        for each in strategies
    }


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    """The settings of `SearchConfig` but for the model."""
    return {
        **given_fields(options, SearchConfig),
        "task": task_name(options),
        "task_settings": task_settings(options),
        "budget": {
            name: as_integer(most, f"budget of {name}", 1) for name, most in distinct(options.budget, "budget").items()
        },
        "unsolved_by": tuple(options.unsolved_by),
        "targets": tuple(options.target),
        "conditions": tuple(options.goal),
        "rewards": tuple(options.reward),
        "operators": None if options.operators is None else _shares(options.operators),
    }


def _searched(name: str, job: "SearchJob") -> "SearchResult":
    """Run or resume a search under a progress bar."""
    from vpo.search.run import search_into

    with progress_bar(name, None) as bar:

        def show(total: int, solved: int, cases: int) -> None:
            bar.total = total
            bar.set_postfix_str(f"solved {solved} of {cases}")
            bar.update()

        return search_into(job.folder, job.config, show)


def _models(models: list[str], names: str | None) -> dict[str, list[str]]:
    """The models by short names, each with its folders: of a reproduction there is one for each seed.

    Args:
        models: folders and names.
        names: of reproductions, those to search with, with commas; None for all.
    """
    from vpo.training.reproduce import is_reproduction, reported_runs

    by_name: dict[str, list[str]] = {}
    if names is not None and not any(is_reproduction(Path(model)) for model in models):
        raise InputError("names are those of a folder of vpo reproduce, and none is among the models")
    single = [model for model in models if not is_reproduction(Path(model))]
    short = [Path(model).name for model in single]
    if len(set(short)) < len(short):
        short = [model.strip("/").replace("/", "-") for model in single]
    named = dict(zip(single, short, strict=True))
    for model in models:
        several = {named[model]: [model]} if model in named else _chosen(model, reported_runs(Path(model)), names)
        for name, paths in several.items():
            if name in by_name:
                raise InputError(f"models must be given once each, and {name} is given twice")
            by_name[name] = [str(path) for path in paths]
    return by_name


def _chosen(folder: str, runs: dict[str, list[Path]], names: str | None) -> dict[str, list[Path]]:
    """The runs of the chosen names of a reproduction."""
    if names is None:
        return runs
    chosen = [name.strip() for name in names.split(",")]
    if unknown := [name for name in chosen if name not in runs]:
        raise InputError(f"names must be ones that {folder} has, {', '.join(runs)}; not {unknown[0]!r}")
    return {name: runs[name] for name in chosen}


def _shares(text: str) -> dict[str, float]:
    """Read NAME=SHARE,…; a name alone has the share 1."""
    parts = [part.partition("=") for part in text.split(",")]
    try:
        shares = [(name.strip(), float(share) if equals else 1.0) for name, equals, share in parts]
    except ValueError:
        raise InputError(f"operators must be written NAME=SHARE,…, not {text!r}") from None
    return distinct(shares, "operators")


def _text(page: dict[str, Any]) -> str:
    """The tables without intervals: solved by iterations, what each solves that the others do not, and the cost."""
    from vpo.util.text import aligned

    lines = [page["summary"]]
    for table in page["tables"]:
        if any(isinstance(cell, dict) for row in table["rows"] for cell in row):
            continue
        cells = [
            ["–" if cell is None else f"{cell:,}" if isinstance(cell, int | float) else str(cell) for cell in row]
            for row in table["rows"]
        ]
        lines += ["", table["title"], "", *aligned([table["head"], *cells])]
    return "\n".join([*lines, *(f"note: {note}" for note in page["notes"])])
