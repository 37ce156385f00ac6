"""The cards of cost: what training a run and sampling its answers took."""

from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np

from vpo.evaluation.compare import Comparison
from vpo.evaluation.eval_folder import Evaluation
from vpo.evaluation.pools import Pool
from vpo.models.run_folder import RunFolder, is_run
from vpo.training.costs import Cost


def cost_cards(
    comparison: Comparison,
    evaluations: Sequence[Sequence[Evaluation]],
    names: Sequence[str],
    costs: Mapping[str, Cost | None],
    untrained: Set[int],
) -> list[dict[str, Any]]:
    """A card for each run: its number, a title, a detail, and pairs of a name and a text; none where nothing is known.

    Args:
        comparison: of the runs.
        evaluations: of the same pools.
        names: of the groups.
        costs: of training, by name.
        untrained: the indices of the groups that are the policy before training.
    """
    cards = []
    for run, (name, group) in enumerate(zip(names, evaluations, strict=True)):
        cost, sampled = costs[name], _sampling(comparison.groups[run], comparison.problems)
        unlogged = "no training" if run in untrained else "training not logged"
        title, detail, items = _training(cost, group) if cost else (unlogged, "", [])
        cards.append({"run": run, "title": title, "detail": detail, "items": [*items, *sampled]})
    return cards if any(costs.values()) or any(card["items"] for card in cards) else []


def _training(cost: Cost, group: Sequence[Evaluation]) -> tuple[str, str, list[list[str]]]:
    """The title, the detail and the items of a card."""
    device, processes = _device(group)
    kind = "" if not device else "CPU " if device.startswith("CPU") else "GPU "
    items = [["rollouts", f"{cost.rollouts:,.0f}"], ["tokens", f"{cost.tokens:,.0f}"]]
    if cost.seconds:
        items.append(["tokens/s", f"{cost.tokens / cost.seconds:,.0f}"])
    return f"{cost.seconds * processes:,.0f} {kind}seconds", f"of training on {device}" if device else "", items


def _device(group: Sequence[Evaluation]) -> tuple[str, int]:
    """What the first run of a group was trained on, as it noted, and in how many processes."""
    runs = [RunFolder(each.folder) for each in group if each.folder and is_run(each.folder)]
    notes = runs[0].notes() if runs else {}
    return str(notes.get("device", "")), int(notes.get("processes", 1))


def _sampling(pools: Sequence[Pool], names: Sequence[str]) -> list[list[str]]:
    """Tokens of the answers that are compared, where the pools have them."""
    problems = [pool.problems[name] for pool in pools for name in names]
    tokens = [problem.tokens_N for problem in problems if problem.tokens_N is not None]
    if len(tokens) < len(problems):
        return []
    answers = sum(len(problem.scores_nD) for problem in problems)
    total = float(np.sum([tokens_N.sum() for tokens_N in tokens]))
    return [["sampled tokens", f"{total / len(pools):,.0f}"], ["tokens an answer", f"{total / answers:,.1f}"]]
