"""Draws the picture of README from results/maze13_singles.json: python docs/figures/headline.py"""

import argparse
import json
from pathlib import Path

from matplotlib.figure import Figure

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results" / "maze13_singles.json"
# Name in the results → label and colour, from the best at k = 30 to the worst.
SHOWN = {
    "vpo_marginal:answers=1:group=24:rate=1e-4": ("vpo_marginal (this library)", "#188038"),
    "max_at_k:group=24:rate=2.5e-5": ("Max-at-k, as many answers a step", "#e8710a"),
    "base_single": ("before training", "#5f6368"),
    "vpo:rate=5e-5": ("VPO, as published", "#3f51b5"),
    "grpo:rate=2.5e-5": ("GRPO", "#c5221f"),
}


def headline() -> Figure:
    """best@k by answers of five methods, with 95% intervals."""
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    rows = [row for row in results["measures"] if (row["section"], row["by"]) == ("best@k", "answers")]
    ks = [row["at"] for row in rows]
    figure = Figure(figsize=(7.6, 3.6), layout="constrained")
    axes = figure.subplots()
    for name, (label, colour) in SHOWN.items():
        values = [row["values"][results["names"].index(name)] for row in rows]
        means = [value["mean"] for value in values]
        axes.fill_between(
            ks, [each["low"] for each in values], [each["high"] for each in values], color=colour, alpha=0.12, lw=0
        )
        axes.plot(
            ks, means, color=colour, lw=2.4 if name.startswith("vpo_marginal") else 1.6, marker="o", ms=3.5, label=label
        )
    axes.set_xscale("log")
    axes.set_xticks(ks, [str(k) for k in ks])
    axes.minorticks_off()
    axes.set(xlabel="k, answers sampled for each maze", ylabel="best@k: mean reward of the best of k")
    axes.set_title("13 × 13 mazes, 500 test problems, three seeds, 95% intervals", fontsize=10)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9, loc="lower right")
    return figure


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images")
    folder = parser.parse_args().out
    headline().savefig(folder / "headline.png", dpi=160)
