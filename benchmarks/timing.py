"""Shared by the benchmarks: timing, and a table of figures with their bounds."""

import argparse
import json
import time
from collections.abc import Callable, Iterable


def seconds(function: Callable[[], object], repeats: int = 7) -> float:
    """The shortest time of some repeats, after a warm-up."""
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def show(description: str | None, rows: Callable[[], Iterable[tuple[str, float, str]]]) -> None:
    """Parse `--json`, and print rows of a name, a figure, and the bound that it must meet."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    report(rows(), as_json=options.json)


def report(rows: Iterable[tuple[str, float, str]], *, as_json: bool) -> None:
    """Print rows of a name, a figure, and the bound that it must meet."""
    figures = list(rows)
    if as_json:
        print(
            json.dumps([{"what": what, "figure": figure, "bound": bound} for what, figure, bound in figures], indent=2)
        )
        return
    for what, figure, bound in figures:
        print(f"{what:75} {figure:12,.3f}  {bound}".rstrip())
