"""Predicted against realised gains: what `vpo diagnose` says of an untrained policy's pool, and what training did.

python benchmarks/predictor.py [--pairs benchmarks/predictor.toml] [--out docs/images] [--json results/predictor.json]

A file of pairs names pools of untrained policies and the results of training them: a JSON file of `vpo compare` or
`vpo reproduce`, or several, whose rows are averaged. Pairs whose pool is missing are left out, and named. Rank
correlations (Spearman) are over methods, within each task and k; those at one k say whether the order is right.
"""

import argparse
import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vpo.evaluation.pools import read_pool
from vpo.evaluation.predict import MOST_PROBLEMS, predict
from vpo.evaluation.simulate import Recipe
from vpo.training.plan import parse_method
from vpo.util.errors import InputError

ROOT = Path(__file__).parents[1]
GROUP = 8
KS = (1, 3, 5, 10, 30)
COLOURS = {1: "#c5221f", 3: "#e8710a", 5: "#f9ab00", 10: "#188038", 30: "#3f51b5"}
MARKERS = "osD^vPX*"


@dataclass(frozen=True)
class Point:
    """One method at one k: best@k less that of the untrained policy, predicted and realised."""

    task: str
    method: str
    k: int
    predicted: float
    realised: float
    test: bool  # whether the constants of the simulation were chosen without it


def main() -> None:
    """Predict, compare, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, default=ROOT / "benchmarks" / "predictor.toml")
    parser.add_argument("--problems", type=int, default=MOST_PROBLEMS, help="problems of each pool to simulate")
    parser.add_argument("--out", type=Path, help="folder for predictor.svg and predictor.png")
    parser.add_argument("--json", type=Path, help="file for the points and the correlations")
    options = parser.parse_args()
    points: list[Point] = []
    for pair in tomllib.loads(options.pairs.read_text(encoding="utf-8"))["pair"]:
        if not _path(pair["pool"]).exists():
            print(f"left out: {pair['name']}, since {pair['pool']} is missing")
            continue
        points += points_of(pair, options.problems)
    if not points:
        raise InputError(f"{options.pairs}: none of the pools is there")
    correlations = rank_correlations(points)
    print(text_of(points, correlations))
    if options.json:
        data = {"points": [asdict(point) for point in points], "rank_correlations": correlations}
        options.json.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    if options.out:
        draw(points, correlations, options.out)


def points_of(pair: Mapping[str, Any], problems: int) -> list[Point]:
    """The predicted and the realised gains of one pair."""
    planned = {name: parse_method(name) for name in pair["methods"]}
    recipes = [Recipe(name, each.method, each.group or GROUP) for name, each in planned.items()]
    tables = [json.loads(_path(file).read_text(encoding="utf-8")) for file in pair["results"]]
    outlook = predict(read_pool(_path(pair["pool"])), recipes, target=tables[0]["target"], most=problems)
    points = []
    for each in outlook.predictions:
        for k in (k for k in KS if k in each.gains):
            row = pair["methods"][each.name]
            realised = [best(table, row, k) - best(table, pair["base"], k) for table in tables]
            gain = sum(realised) / len(realised)
            point = pair["name"], each.name, k, float(each.gains[k].mean), gain, not pair.get("chosen_on", False)
            points.append(Point(*point))
    return points


def best(results: Mapping[str, Any], name: str, k: int) -> float:
    """best@k by answers of a row of results."""
    names = results.get("names") or [Path(pool["path"]).parent.name for pool in results["pools"]]
    (row,) = [
        each for each in results["measures"] if (each["section"], each["by"], each["at"]) == ("best@k", "answers", k)
    ]
    return float(row["values"][names.index(name)]["mean"])


def rank_correlations(points: Sequence[Point]) -> dict[str, dict[str, float]]:
    """Spearman's ρ of each task: at each k over methods, and over all methods and k."""
    from scipy.stats import spearmanr

    result: dict[str, dict[str, float]] = {}
    for task in dict.fromkeys(point.task for point in points):
        own = [point for point in points if point.task == task]
        groups = {"all": own, **{f"best@{k}": [point for point in own if point.k == k] for k in KS}}
        result[task] = {
            name: float(spearmanr([each.predicted for each in some], [each.realised for each in some]).statistic)
            for name, some in groups.items()
            if len(some) > 2
        }
    some = [point for point in points if point.test] or list(points)
    everything = spearmanr([each.predicted for each in some], [each.realised for each in some]).statistic
    result["all tasks, without those that the constants were chosen on" if some[0].test else "all tasks"] = {
        "all": float(everything)
    }
    return result


def text_of(points: Sequence[Point], correlations: Mapping[str, Mapping[str, float]]) -> str:
    """A table of the gains, predicted / realised, and the rank correlations."""
    ks = sorted({point.k for point in points})
    lines = [f"{'predicted / realised gain':44}" + "".join(f"{f'best@{k}':>17}" for k in ks)]
    for task, method in dict.fromkeys((point.task, point.method) for point in points):
        cells = {point.k: point for point in points if (point.task, point.method) == (task, method)}
        shown = [f"{cells[k].predicted:+.3f} / {cells[k].realised:+.3f}" if k in cells else "" for k in ks]
        lines.append(f"{task + ', ' + method:44}" + "".join(f"{each:>17}" for each in shown))
    for task, each in correlations.items():
        lines.append(f"rank correlation, {task}: " + ", ".join(f"{name} {value:+.2f}" for name, value in each.items()))
    return "\n".join(lines)


def draw(points: Sequence[Point], correlations: Mapping[str, Mapping[str, float]], folder: Path) -> None:
    """One panel for each task: realised over predicted gain, a marker for each method, a colour for each k."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    tasks = list(dict.fromkeys(point.task for point in points))
    columns = min(2, len(tasks))
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "vpo", "font.size": 9}):
        figure = Figure(figsize=(4.6 * columns, 4.2 * math.ceil(len(tasks) / columns)), layout="constrained")
        panels = figure.subplots(math.ceil(len(tasks) / columns), columns, squeeze=False).flat
        for panel, task in zip(panels, tasks, strict=False):
            _draw_panel(panel, [point for point in points if point.task == task])
            chosen = "" if any(point.test for point in points if point.task == task) else " (chosen on it)"
            panel.set_title(f"{task}{chosen}: rank correlation {correlations[task]['all']:.2f}", fontsize=10)
        for panel in list(panels)[len(tasks) :]:
            panel.set_visible(False)
        for form in ("svg", "png"):
            metadata = {"Date": None} if form == "svg" else None
            figure.savefig(folder / f"predictor.{form}", dpi=150, metadata=metadata)


def _draw_panel(panel: Any, points: Sequence[Point]) -> None:
    ends = [value for point in points for value in (point.predicted, point.realised)]
    low, high = min(ends) - 0.01, max(ends) + 0.01
    panel.plot([low, high], [low, high], color="0.6", lw=1, ls=":")
    panel.axhline(0, color="0.85", lw=0.8, zorder=0)
    panel.axvline(0, color="0.85", lw=0.8, zorder=0)
    for marker, method in zip(MARKERS, dict.fromkeys(point.method for point in points), strict=False):
        own = [point for point in points if point.method == method]
        colours = [COLOURS[point.k] for point in own]
        panel.scatter([each.predicted for each in own], [each.realised for each in own], c=colours, marker=marker, s=34)
        panel.scatter([], [], c="0.3", marker=marker, s=34, label=method)
    for k in sorted({point.k for point in points}):
        panel.scatter([], [], c=COLOURS[k], marker="s", s=20, label=f"best@{k}")
    panel.set(xlabel="predicted gain over the untrained policy", ylabel="realised gain")
    panel.spines[["top", "right"]].set_visible(False)
    panel.legend(frameon=False, fontsize=7, loc="upper left")


def _path(name: str) -> Path:
    """A path of a pair; relative ones are of the repository."""
    return ROOT / name


if __name__ == "__main__":
    main()
