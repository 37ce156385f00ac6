"""Draws the pictures of docs/concepts.md from the library's own functions: python docs/figures/concepts.py

Every number in them is computed by `vpo.set_reward`, `vpo.core.credit.marginal_credit` and `vpo.best_at_k`.
"""

import argparse
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

import vpo
from vpo.core.credit import marginal_credit
from vpo.core.geometry import simplex_shares

BLUE, ORANGE, GREEN, GREY, RED = "#3f51b5", "#e8710a", "#188038", "#9aa0a6", "#c5221f"
# Three answers to one problem, by two objectives: gold and diamonds of a maze, say.
ANSWERS = {"A": (0.9, 0.1), "B": (0.62, 0.58), "C": (0.15, 0.85)}
COLOURS = {"A": BLUE, "B": GREEN, "C": ORANGE}
# Four samples of a group, one of them a copy: what each adds to the others.
GROUP = {"A": (0.9, 0.1), "copy of A": (0.9, 0.1), "C": (0.15, 0.85), "D": (0.6, 0.2)}


def set_reward_figure() -> Figure:
    """The value of each answer under each weighting, and of the set: the upper envelope."""
    figure = Figure(figsize=(7.6, 3.2), layout="constrained")
    points, lines = figure.subplots(1, 2)
    for name, (gold, diamond) in ANSWERS.items():
        points.scatter(gold, diamond, color=COLOURS[name], s=70, zorder=3)
        points.annotate(name, (gold, diamond), xytext=(8, 4), textcoords="offset points", color=COLOURS[name])
    points.set(xlim=(0, 1.05), ylim=(0, 1.05), xlabel="objective 1", ylabel="objective 2", title="three answers")
    weights = np.linspace(0, 1, 201)
    values = {name: weights * gold + (1 - weights) * diamond for name, (gold, diamond) in ANSWERS.items()}
    for name, line in values.items():
        lines.plot(
            weights, line, color=COLOURS[name], lw=1.6, label=f"{name}: mean {vpo.set_reward([ANSWERS[name]]):.2f}"
        )
    best = np.max(list(values.values()), axis=0)
    whole = float(vpo.set_reward(list(ANSWERS.values())))
    lines.fill_between(weights, best, color=GREY, alpha=0.2, lw=0)
    lines.plot(weights, best, color="black", lw=2.6, alpha=0.75, label=f"the set: R = {whole:.2f}")
    lines.set(
        xlim=(0, 1), ylim=(0, 1.05), xlabel="weight of objective 1", ylabel="value", title="under every weighting"
    )
    lines.legend(loc="lower center", fontsize=8)
    return figure


def simplex_figure() -> Figure:
    """Which answer wins where, over the weightings of three objectives."""
    answers = np.asarray([[0.9, 0.2, 0.1], [0.2, 0.9, 0.3], [0.3, 0.2, 0.8], [0.55, 0.55, 0.4]])
    colours = np.asarray([BLUE, ORANGE, GREEN, GREY])
    directions = vpo.directions(3)
    corners = np.asarray([[0, 0], [1, 0], [0.5, np.sqrt(3) / 2]])
    winners = np.argmax(directions @ answers.T, axis=1)
    shares = simplex_shares(answers)
    figure = Figure(figsize=(7.6, 3.3), layout="constrained")
    triangle, bars = figure.subplots(1, 2, width_ratios=(1.1, 1))
    points = directions @ corners
    triangle.scatter(*points.T, c=colours[winners], s=9, linewidths=0, rasterized=True)
    triangle.plot(*corners[[0, 1, 2, 0]].T, color="black", lw=1)
    for corner, text, side in zip(
        corners, ("only 1 counts", "only 2 counts", "only 3 counts"), (-14, -14, 3), strict=True
    ):
        triangle.annotate(text, corner, xytext=(0, side), textcoords="offset points", ha="center", fontsize=9)
    triangle.set_aspect("equal")
    triangle.axis("off")
    triangle.set_title("1,024 weightings of three objectives", pad=14)
    names = [f"({', '.join(f'{score:g}' for score in each)})" for each in answers]
    bars.barh(names, shares, color=colours)
    for index, share in enumerate(shares):
        bars.annotate(f"{share:.0%}", (float(share), index), xytext=(4, -3), textcoords="offset points", fontsize=9)
    bars.invert_yaxis()
    bars.set(xlim=(0, float(shares.max()) * 1.2), xlabel="share of weightings won")
    bars.spines[["top", "right"]].set_visible(False)
    bars.set_title("four answers, by their scores")
    return figure


def credit_figure() -> Figure:
    """The scalar advantage of each sample, and its credit: what it adds to the others."""
    rewards_GMD = np.asarray(list(GROUP.values()))[:, None, :]
    means = rewards_GMD[:, 0].mean(axis=1)
    credits = marginal_credit(rewards_GMD, sets=2)[:, 0]
    figure = Figure(figsize=(7.6, 2.9), layout="constrained")
    left, right = figure.subplots(1, 2)
    names = [f"{name}\n({gold:g}, {diamond:g})" for name, (gold, diamond) in GROUP.items()]
    colours = [BLUE, BLUE, ORANGE, GREY]
    for axes, values, title in (
        (left, means, "mean of the objectives (GRPO)"),
        (right, credits, "marginal credit, K = 2"),
    ):
        bars = axes.bar(names, values, color=colours)
        axes.bar_label(bars, fmt="%.2f", fontsize=9, padding=2)
        axes.set_ylim(0, float(values.max()) * 1.22)
        axes.set_title(title)
        axes.tick_params(axis="x", labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def best_at_k_figure() -> Figure:
    """best@k of two policies: one certain, one varied."""
    rng = np.random.default_rng(0)
    problems, answers = 200, 30
    certain = np.repeat(rng.beta(4, 4, (problems, 1)), answers, axis=1) + 0.03 * rng.standard_normal(
        (problems, answers)
    )
    varied = rng.beta(1.3, 2.1, (problems, answers))
    ks = list(range(1, answers + 1))
    figure = Figure(figsize=(7.6, 3.0), layout="constrained")
    axes = figure.subplots()
    for scores, colour, name in ((certain, RED, "repeats one answer"), (varied, BLUE, "writes different answers")):
        curve = vpo.best_at_k(np.clip(scores, 0, 1), ks).mean(axis=0)
        axes.plot(ks, curve, color=colour, lw=2.2, marker="o", ms=3)
        axes.annotate(
            name, (ks[-1], float(curve[-1])), xytext=(-4, -16), textcoords="offset points", color=colour, ha="right"
        )
    axes.set(xlabel="k, samples that a search may take", ylabel="best@k", xlim=(0.5, 30.5), ylim=(0.3, 1))
    axes.spines[["top", "right"]].set_visible(False)
    return figure


FIGURES = {
    "concepts_set_reward": set_reward_figure,
    "concepts_simplex": simplex_figure,
    "concepts_credit": credit_figure,
    "concepts_best_at_k": best_at_k_figure,
}


def main() -> None:
    """Draw all pictures into a folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    images = Path(__file__).resolve().parents[1] / "images"
    parser.add_argument("--out", type=Path, default=images, help="folder of the pictures (default: docs/images)")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    matplotlib.rcParams.update({"font.size": 10, "axes.titlesize": 11, "svg.hashsalt": "vpo"})
    for name, draw in FIGURES.items():
        draw().savefig(out / f"{name}.svg", facecolor="white", dpi=150, metadata={"Date": None})


if __name__ == "__main__":
    main()
