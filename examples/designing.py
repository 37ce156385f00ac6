"""The pictures and figures of docs/designing.md, from pools of your own or the three that it shows.

    vpo eval embedded --task maze --set size=9 --answers 3 --pool 30 --problems 100 --temperature 1 --out maze
    python examples/qa_feedback.py qa_feedback_dev500.jsonl.gz --out qa.jsonl
    python examples/designing.py --maze maze/pool.parquet --ratings topical_chat_usr360.jsonl.gz --qa qa.jsonl \
        --out docs/images

Needs matplotlib (the extra `report`). What the pictures show is printed as JSON too.
"""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from vpo import geometry, read_pool, set_reward
from vpo.core.geometry import simplex_shares
from vpo.core.types import Floats
from vpo.evaluation.decompose import decompose
from vpo.evaluation.decomposition_text import name_of
from vpo.evaluation.diagnose import diagnose
from vpo.evaluation.objective_sets import all_of
from vpo.evaluation.pools import Pool
from vpo.evaluation.ratings import read_ratings

WINS, LOSES = "#c2410c", "#94a3b8"
COLOURS = ("#1d4ed8", "#c2410c", "#15803d", "#7c3aed", "#0f766e", "#a16207")
WHOLE = matplotlib.ticker.PercentFormatter(1.0, decimals=0)
MOST = 6  # answers of a set


def scores_of(pool: Pool) -> list[Floats]:
    return [problem.scores_nD for problem in pool.problems.values()]


def names_of(pool: Pool) -> Sequence[str]:
    return pool.objectives or ()


def in_order(pool: Pool) -> Pool:
    """A pool with its objectives sorted by name, as `vpo diagnose` takes them."""
    if pool.objectives is None:
        raise SystemExit(f"{pool.path}: the objectives differ between problems, and the pictures need the same")
    return all_of(pool.objectives, None).of(pool)


def draw_agreement(pools: Mapping[str, Pool], path: Path) -> dict[str, Any]:
    """Draw how the objectives agree over the answers of a problem."""
    figure, axes = plt.subplots(1, len(pools), figsize=(4.6 * len(pools), 4.4), layout="constrained")
    figures = {}
    for axis, (title, pool) in zip(axes, pools.items(), strict=True):
        names = names_of(pool)
        centred = np.vstack([scores - scores.mean(axis=0) for scores in scores_of(pool)])
        shape, diagnosis = geometry(centred), diagnose(pool)
        image = axis.imshow(shape.correlation, vmin=-1, vmax=1, cmap="RdBu_r")
        for (row, column), value in np.ndenumerate(shape.correlation):
            colour = "white" if abs(value) > 0.6 else "black"
            axis.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=8, color=colour)
        axis.set_xticks(range(len(names)), names, rotation=40, ha="right", fontsize=8)
        axis.set_yticks(range(len(names)), names, fontsize=8)
        rank = f"effective rank {diagnosis.effective_rank:.1f} of {len(names)}"
        axis.set_title(f"{title}\n{rank}, {diagnosis.relative_headroom:.0%} needs a set", fontsize=10)
        figures[title] = {"effective_rank": diagnosis.effective_rank, "needs_a_set": diagnosis.relative_headroom}
    figure.colorbar(image, ax=axes, shrink=0.7, label="correlation over the answers of a problem")
    figure.savefig(path, dpi=100)
    return figures


def draw_answers_of(pools: Mapping[str, tuple[Pool, str, str, str]], path: Path) -> None:
    """Draw the answers of one problem by two of their objectives, those that win somewhere in colour."""
    figure, axes = plt.subplots(1, len(pools), figsize=(4.2 * len(pools), 3.8), layout="constrained")
    for axis, (title, (pool, problem, across, up)) in zip(axes, pools.items(), strict=True):
        names = list(names_of(pool))
        pair_nD = pool.problems[problem].scores_nD[:, [names.index(across), names.index(up)]]
        different_nD, counts = np.unique(pair_nD, axis=0, return_counts=True)
        shares = simplex_shares(different_nD)
        axis.scatter(
            *different_nD.T, s=40 + 12 * counts, c=[WINS if share > 0 else LOSES for share in shares], zorder=3
        )
        for (x, y), share in zip(different_nD, shares, strict=True):
            if share > 0:
                axis.annotate(f"{share:.0%}", (x, y), textcoords="offset points", xytext=(7, -12), fontsize=9)
        axis.set(xlabel=across, ylabel=up, xlim=(-0.08, 1.16), ylim=(-0.12, 1.12))
        axis.set_title(title, fontsize=10)
        axis.grid(alpha=0.3)
    figure.savefig(path, dpi=100)


def draw_sets(pools: Mapping[str, Pool], path: Path) -> dict[str, Any]:
    """Draw what each proposed set of objectives would give."""
    sets = {title: decompose(pool) for title, pool in pools.items()}
    most = max(len(each.proposals) for each in sets.values())
    figure, axes = plt.subplots(1, len(pools), figsize=(6.2 * len(pools), 0.36 * most + 1.2), layout="constrained")
    for axis, (title, each) in zip(axes, sets.items(), strict=True):
        shown = each.proposals[::-1]
        means = np.asarray([one.relative_headroom.mean for one in shown])
        bounds = [(one.relative_headroom.low, one.relative_headroom.high) for one in shown]
        errors = np.abs(np.asarray(bounds).T - means)
        colours = [WINS if one.kind == each.recommended else LOSES for one in shown]
        axis.barh([name_of(one) for one in shown], means, xerr=errors, color=colours, ecolor="#334155", height=0.7)
        axis.axvline(0.1, color="#334155", linestyle=":", linewidth=1)
        axis.xaxis.set_major_formatter(WHOLE)
        axis.xaxis.set_major_locator(matplotlib.ticker.MaxNLocator(6, steps=[1, 2, 5, 10]))
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("of what choosing well gains, what needs a set")
        axis.tick_params(axis="y", labelsize=8)
    figure.savefig(path, dpi=100)
    return {title: {name_of(one): one.relative_headroom.mean for one in each.proposals} for title, each in sets.items()}


def over_the_file(scale: Callable[[Floats], Floats]) -> Callable[[list[Floats]], list[Floats]]:
    """A scale that is fitted to the answers of all problems together."""

    def scaled(scores: list[Floats]) -> list[Floats]:
        return np.split(scale(np.vstack(scores)), np.cumsum([len(each) for each in scores])[:-1])

    return scaled


def by_range(every_nD: Floats) -> Floats:
    return (every_nD - every_nD.min(axis=0)) / np.ptp(every_nD, axis=0)


def by_spread(every_nD: Floats) -> Floats:
    spread_D = every_nD.std(axis=0)
    return (every_nD - every_nD.mean(axis=0)) / np.where(spread_D > 1e-9, spread_D, 1.0)


def by_rank(every_nD: Floats) -> Floats:
    from scipy.stats import rankdata

    return (rankdata(every_nD, axis=0) - 0.5) / len(every_nD)


SCALES: Mapping[str, Callable[[list[Floats]], list[Floats]]] = {
    "as they are": lambda scores: scores,
    "range": over_the_file(by_range),
    "quantile": over_the_file(by_rank),
    "z-score": over_the_file(by_spread),
    "z-score in each problem": lambda scores: [by_spread(each) for each in scores],
}


def rescaled(pool: Pool, scale: Callable[[list[Floats]], list[Floats]]) -> Pool:
    problems = zip(pool.problems.items(), scale(scores_of(pool)), strict=True)
    return Pool(pool.path, {name: replace(problem, scores_nD=scores) for (name, problem), scores in problems})


def draw_scales(title: str, pool: Pool, path: Path) -> dict[str, dict[str, Any]]:
    """Draw what the objectives' scales do: how much each moves w·r, and what needs a set."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.4), layout="constrained", width_ratios=[3, 2])
    figures: dict[str, dict[str, Any]] = {}
    for row, (name, scale) in enumerate(SCALES.items()):
        changed = rescaled(pool, scale)
        centred = np.vstack([scores - scores.mean(axis=0) for scores in scores_of(changed)])
        moved_D = centred.std(axis=0) / centred.std(axis=0).sum()
        starts = np.concatenate([[0], np.cumsum(moved_D)[:-1]])
        for objective, share, start, colour in zip(names_of(pool), moved_D, starts, COLOURS, strict=False):
            left.barh(row, share, left=start, color=colour, label=objective if row == 0 else None)
            left.text(start + share / 2, row, f"{share:.0%}", ha="center", va="center", color="white", fontsize=8)
        diagnosis = diagnose(changed)
        figures[name] = {
            "spread": dict(zip(names_of(pool), moved_D.tolist(), strict=True)),
            "needs": diagnosis.relative_headroom,
        }
        right.barh(row, diagnosis.relative_headroom, color=LOSES)
        right.text(
            diagnosis.relative_headroom + 0.003, row, f"{diagnosis.relative_headroom:.0%}", va="center", fontsize=9
        )
    for axis in (left, right):
        axis.set_yticks(range(len(SCALES)), SCALES)
        axis.invert_yaxis()
        axis.xaxis.set_major_formatter(WHOLE)
    left.set_xlabel("share of the spread over the answers of a problem")
    left.legend(ncols=5, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)
    right.set_xlabel("needs a set")
    right.set_title(title, fontsize=10)
    right.set_xlim(0, 1.2 * max(each["needs"] for each in figures.values()))
    figure.savefig(path, dpi=100)
    return figures


def best_sets(scores_nD: Floats) -> Floats:
    """The set reward E_w[max] of the best set of 1, 2, … answers, each answer added greedily."""
    different_nD = np.unique(scores_nD, axis=0)
    chosen: list[int] = []
    rewards = []
    for _ in range(min(MOST, len(different_nD))):
        values = [float(set_reward(different_nD[[*chosen, each]])) for each in range(len(different_nD))]
        chosen.append(int(np.argmax(values)))
        rewards.append(max(values))
    return np.asarray(rewards + [rewards[-1]] * (MOST - len(rewards)))


def draw_sizes(pools: Mapping[str, Pool], path: Path) -> dict[str, Any]:
    """Draw how much of the headroom the best set of m answers has."""
    figure, axis = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
    figures = {}
    sizes = np.arange(1, MOST + 1)
    for (title, pool), colour in zip(pools.items(), COLOURS, strict=False):
        diagnosis = diagnose(pool)
        reward_M = np.mean([best_sets(scores) for scores in scores_of(pool)], axis=0)
        part_M = (reward_M - diagnosis.average) / (diagnosis.ideal - diagnosis.average)
        axis.plot(
            sizes, part_M, marker="o", color=colour, label=f"{title}: {diagnosis.winners:.1f} answers win somewhere"
        )
        figures[title] = {"winners": diagnosis.winners, "of_choosing_well": part_M.tolist()}
    axis.set(xlabel="m, answers in the set", ylabel="of what choosing well gains", xticks=sizes)
    axis.yaxis.set_major_formatter(WHOLE)
    axis.grid(alpha=0.3)
    axis.legend(fontsize=9)
    figure.savefig(path, dpi=100)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw the pictures of docs/designing.md.")
    parser.add_argument("--maze", type=Path, required=True, help="pool of a maze policy")
    parser.add_argument("--ratings", type=Path, required=True, help="Topical-Chat with its human ratings")
    parser.add_argument("--qa", type=Path, required=True, help="pool that examples/qa_feedback.py wrote")
    parser.add_argument("--out", type=Path, required=True, help="folder of the pictures")
    options = parser.parse_args()
    maze, qa = in_order(read_pool(options.maze)), in_order(read_pool(options.qa))
    (rated,) = read_ratings(options.ratings, group_by="source").pools
    ratings = in_order(rated)
    pools = {"maze, 9 × 9": maze, "Topical-Chat, rated": ratings, "QA-Feedback": qa}
    first = {
        "a maze: its 30 answers": (maze, next(iter(maze.problems)), "gold", "diamond"),
        "a dialogue: its 6 answers": (ratings, next(iter(ratings.problems)), "engagingness", "groundedness"),
    }
    options.out.mkdir(parents=True, exist_ok=True)
    draw_answers_of(first, options.out / "designing_answers.png")
    figures = {
        "agreement": draw_agreement(pools, options.out / "designing_agreement.png"),
        "sets": draw_sets({"maze, 9 × 9": maze, "QA-Feedback": qa}, options.out / "designing_sets.png"),
        "scales": draw_scales("QA-Feedback", qa, options.out / "designing_scales.png"),
        "sizes": draw_sizes(pools, options.out / "designing_sizes.png"),
    }
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
