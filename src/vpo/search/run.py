"""One search: from a config into a folder, or resumed there."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from vpo.search.config import SearchConfig
from vpo.search.log import Log, has_ended
from vpo.search.loop import Search
from vpo.search.openevolve import strategy as openevolve
from vpo.search.result import SearchResult, archives_of, read_result
from vpo.search.scoring_pool import ScoringPool
from vpo.search.setup import SearchSetup, prepare
from vpo.util.files import disk_full, locked

# Called with the total number of steps (iterations, or for OpenEvolve search problems), and with how many search
# problems are solved, of how many.
Progress: TypeAlias = Callable[[int, int, int], None]


def search_into(folder: Path, config: SearchConfig, progress: Progress | None = None) -> SearchResult:
    """Search, or resume a search, in a folder. A search that has ended is only read.

    Args:
        folder: of the log.
        config: what to search for, and with what.
        progress: called after each step.
    """
    setup = prepare(config)
    progress = progress or _no_progress
    folder.mkdir(parents=True, exist_ok=True)
    resumes = "free some space and repeat the command: the search resumes where it stopped"
    with disk_full(folder, hint=resumes), locked(folder, "searching in this folder"):
        log = Log(folder, setup.note())
        if not has_ended(folder, config.iterations):
            log.reopen()
            if config.strategy == "openevolve":
                openevolve.search(setup, log, progress)
            else:
                _search(setup, log, progress)
            log.end(config.iterations, archives_of(folder))
    return read_result(folder, config.iterations)


def _search(setup: SearchSetup, log: Log, progress: Progress) -> None:
    config = setup.config
    problems = list({each.problem.id: each.problem for each in setup.problems}.values())
    # A reward function of the user's has no limit but that of a process that scores.
    processes = 0 if setup.task.keeps_limits and not config.rewards else config.processes
    pool = ScoringPool(setup.source, processes, config.limit, problems)
    try:
        generator = setup.new_generator()
        search = Search(generator, setup.task, setup.problems, setup.new_strategy, pool, log, setup.loop)
        for solved in search.run():
            progress(config.iterations, solved, len(setup.problems))
    finally:
        pool.close()


def _no_progress(total: int, solved: int, problems: int) -> None:
    """Show nothing."""
