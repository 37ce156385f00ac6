"""`vpo search`: spend a budget on policies, for goals chosen after training."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vpo.cli.arguments import (
    Commands,
    add_json,
    add_task_option,
    add_task_settings,
    assignment,
    task_name,
    task_settings,
)
from vpo.cli.output import as_json, plain
from vpo.core.checks import as_integer
from vpo.util.errors import InputError
from vpo.util.progress import progress_bar

if TYPE_CHECKING:
    from vpo.search.jobs import SearchJob
    from vpo.search.result import SearchResult


def add(commands: Commands) -> None:
    """Add `vpo search`."""
    command = commands.add_parser(
        "search",
        help="spend a budget of answers on policies, for any goal",
        description="Search for good answers with trained policies: independent samples, or evolution. What is looked "
        "for need not have been trained for: a weighting, a condition, a function of your own, or what the task wants. "
        "An interrupted search goes on where it was: give the same command again.",
    )
    command.add_argument(
        "models",
        nargs="+",
        metavar="MODEL",
        help="run, evaluation, folder of a model, its name on the hub, embedded, or all that vpo reproduce trained",
    )
    command.add_argument(
        "--strategy", default="evolve", metavar="NAME", help="evolve, best_of_n or openevolve (evolve)"
    )
    command.add_argument("--iterations", type=int, default=100, metavar="N", help="for each problem and goal (100)")
    command.add_argument("--per-iteration", type=int, default=3, metavar="N", help="answers that one asks for (3)")
    command.add_argument(
        "--budget",
        type=assignment,
        action="append",
        default=[],
        metavar="UNIT=N",
        help="at most so many answers, generations or tokens for each problem and goal; may be given again",
    )
    command.add_argument("--no-baseline", action="store_true", help="leave out best_of_n beside another strategy")
    goals = command.add_argument_group("what to search for, each in every problem (what the task itself wants)")
    goals.add_argument(
        "--target",
        action="append",
        default=[],
        metavar="NAME=W,…",
        help="a weighting, solved at the best that any answer can earn, where the task knows it, else at 1",
    )
    goals.add_argument("--goal", action="append", default=[], metavar="NAME>=X,…", help="bounds that all must hold")
    goals.add_argument(
        "--reward", action="append", default=[], metavar="FILE.py:NAME", help="a function of answer, scores and problem"
    )
    where = command.add_argument_group("where")
    add_task_option(where)
    where.add_argument("--split", default="test", help="which problems (test)")
    where.add_argument("--problems", type=int, metavar="N", help="how many problems (all of the split)")
    add_task_settings(where)
    where.add_argument("--out", default="searches", metavar="FOLDER", help="for logs and page (searches)")
    where.add_argument("--jobs", type=int, default=1, metavar="N", help="searches at once (1)")
    how = command.add_argument_group("how")
    how.add_argument("--operators", metavar="NAME=SHARE,…", help="of evolve: fresh, regrow, branch, extend, refine")
    how.add_argument("--parents", default="target", metavar="NAME", help="target, lexicase or novelty (target)")
    how.add_argument("--size", type=int, default=20, metavar="N", help="of the population (20)")
    how.add_argument("--features", metavar="NAME,…", help="objectives that span the map of openevolve (all)")
    how.add_argument("--answers", type=int, metavar="M", help="per generation (as trained; else 1)")
    how.add_argument("--temperature", type=float, default=0.7, help="of the sampling (0.7)")
    how.add_argument("--top-p", type=float, default=1.0, help="of the sampling (1.0)")
    how.add_argument("--max-tokens", type=int, metavar="N", help="per answer (as trained; else 256)")
    how.add_argument("--batch", type=int, default=512, metavar="N", help="generations at once (512)")
    how.add_argument("--thinking", action="store_true", help="let a reasoning model think before it answers")
    how.add_argument("--seed", type=int, default=0, help="of everything that is drawn (0)")
    how.add_argument(
        "--processes", type=int, default=2, metavar="N", help="that score; 0: this one, without a limit (2)"
    )
    how.add_argument("--limit", type=float, default=60.0, metavar="SECONDS", help="to score, and for an answer (60)")
    how.add_argument(
        "--generator",
        default="",
        metavar="NAME",
        help="transformers, vllm or endpoint (transformers; with --endpoint, endpoint)",
    )
    how.add_argument("--endpoint", metavar="URL", help="of an OpenAI-compatible server that has the models")
    add_json(command)
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Search with each model, and print what each solved."""
    from vpo.report.markdown import markdown
    from vpo.report.page import write_page
    from vpo.report.search_page import search_page
    from vpo.search.config import SearchConfig
    from vpo.search.jobs import PRELOAD, SearchJob
    from vpo.search.result import merge_seeds
    from vpo.util.files import command_line, write_json, write_text
    from vpo.util.jobs import run_jobs

    models = _models(options.models)
    strategies = [options.strategy]
    if options.strategy != "best_of_n" and not options.no_baseline:
        strategies.append("best_of_n")
    jobs = {
        f"{name} {strategy}": [
            SearchJob(
                Path(options.out) / f"{name}{f'-{seed}' if len(paths) > 1 else ''}-{strategy}",
                SearchConfig(model=path, strategy=strategy, **_settings(options)),
            )
            for seed, path in enumerate(paths, start=1)
        ]
        for name, paths in models.items()
        for strategy in strategies
    }
    as_integer(options.jobs, "jobs", 1)
    if options.jobs > 1:
        Path(options.out).mkdir(parents=True, exist_ok=True)
        run_jobs([job for group in jobs.values() for job in group], parallel=options.jobs, preload=PRELOAD)
    outcomes = [merge_seeds([_searched(name, job) for job in group], name) for name, group in jobs.items()]
    folders = [group[0].folder for group in jobs.values()]
    if any(each.cases != each.distinct * each.seeds or each.distinct != outcomes[0].distinct for each in outcomes):
        raise InputError("the searches are not over the same problems and goals: search with each model by itself")
    page = search_page(outcomes, folders, command_line())
    data = {
        "command": command_line(),
        "curves": page["search"]["curves"],
        "names": [each.name for each in outcomes],
        "tables": page["tables"],
        "failures": {each.name: each.failures for each in outcomes},
    }
    write_json(Path(options.out) / "results.json", data)
    write_text(Path(options.out) / "tables.md", markdown(page["tables"]))
    write_page(Path(options.out) / "report.html", page)
    if options.json:
        print(as_json(data))
    else:
        made = f"the page: {options.out}/report.html; every candidate: {options.out}/*/candidates.jsonl"
        print(plain(f"{_text(page)}\n\n{made}"))
    return 0


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    same = ["iterations", "per_iteration", "split", "problems", "parents", "size", "answers", "temperature"]
    same += ["top_p", "batch", "thinking", "seed", "processes", "limit", "endpoint", "generator"]
    return {
        **{name: getattr(options, name) for name in same},
        "max_tokens": options.max_tokens,
        "task": task_name(options),
        "task_settings": task_settings(options),
        "budget": {name: as_integer(most, f"budget of {name}", 1) for name, most in options.budget},
        "targets": tuple(options.target),
        "conditions": tuple(options.goal),
        "rewards": tuple(options.reward),
        "features": tuple(options.features.split(",")) if options.features else (),
        "operators": None if options.operators is None else _operators(options.operators),
    }


def _searched(name: str, job: "SearchJob") -> "SearchResult":
    """Search, as far as that is not done, and return what it came to."""
    from vpo.search.run import search_into

    with progress_bar(name, None) as shown:

        def show(total: int, solved: int, cases: int) -> None:
            shown.total = total
            shown.set_postfix_str(f"solved {solved} of {cases}")
            shown.update()

        return search_into(job.folder, job.config, show)


def _models(given: list[str]) -> dict[str, list[str]]:
    """Return the models to search with, by short names: those of each seed, for all methods of a reproduction."""
    from vpo.training.reproduce import is_reproduction, reported_runs

    found: dict[str, list[str]] = {}
    plain = [model for model in given if not is_reproduction(Path(model))]
    short = [Path(model).name for model in plain]
    if len(set(short)) < len(short):
        short = [model.strip("/").replace("/", "-") for model in plain]
    named = dict(zip(plain, short, strict=True))
    for model in given:
        several = {named[model]: [model]} if model in named else reported_runs(Path(model))
        for name, paths in several.items():
            if name in found:
                raise InputError(f"models must be given once each, and {name} is there twice")
            found[name] = [str(path) for path in paths]
    return found


def _operators(text: str) -> dict[str, float]:
    found = {}
    for part in text.split(","):
        name, equals, share = part.partition("=")
        try:
            found[name.strip()] = float(share) if equals else 1.0
        except ValueError:
            raise InputError(f"operators must be written NAME=SHARE,…, not {part!r}") from None
    return found


def _text(page: dict[str, Any]) -> str:
    """Return the counts by iterations, and who solves what others never do."""
    from vpo.util.text import aligned

    lines = [page["summary"]]
    for table in page["tables"][1:]:
        cells = [
            ["–" if cell is None else f"{cell:,}" if isinstance(cell, int | float) else str(cell) for cell in row]
            for row in table["rows"]
        ]
        lines += ["", table["title"], "", *aligned([table["head"], *cells])]
    return "\n".join([*lines, *(f"note: {note}" for note in page["notes"])])
