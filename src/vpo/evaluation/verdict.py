"""The verdict of a comparison: which run is ahead of which, from how many samples on, in a few sentences.

It reads best@k by answers. A run is ahead where the paired 95% interval of the difference excludes 0, and level with
the other where it does not. The run that is described is the one with the highest best@k, averaged over the k.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np

from vpo.core.intervals import Interval
from vpo.core.types import Floats
from vpo.evaluation.compare import Comparison
from vpo.evaluation.intervals import intervals
from vpo.evaluation.metrics import Budget
from vpo.util.grouping import group_by
from vpo.util.text import counted, listed, plural

AHEAD, LEVEL, BEHIND = "ahead", "level", "behind"
DESCRIBED = 2  # rivals that have a sentence each; further ones share one
SMALL = 0.01  # differences below it are written with three decimals
SAME = 1e-12  # differences below it are rounding


@dataclass(frozen=True)
class Stretch:
    """Neighbouring k, all on the same side.

    Attributes:
        side: of the first run: AHEAD, LEVEL or BEHIND.
        ks: in order.
        when: the k in words, such as "from 3 samples on".
        least: the smallest difference in it, without its sign.
        most: the largest.
    """

    side: str
    ks: tuple[int, ...]
    when: str
    least: float
    most: float


def verdict(comparison: Comparison, names: Sequence[str], untrained: Set[int] = frozenset()) -> str:
    """What a comparison shows.

    Args:
        comparison: of runs.
        names: of its groups.
        untrained: the indices of the groups that are the policy before training.
    """
    best = best_by_k(comparison)
    groups = range(len(names))
    trained = [run for run in groups if run not in untrained] or list(groups)
    bases = [run for run in groups if run not in trained]
    ranked = sorted(trained, key=lambda run: -_mean(best[run]))
    leader, rivals = ranked[0], ranked[1:]
    last = _basis(comparison, sorted(best[leader]))
    if len(comparison.problems) < 2 or not best[leader]:
        return f"{_one_problem(best, ranked + bases, names)} {last}"
    sides = {run: stretches(best[leader], best[run]) for run in (*rivals, *bases)}
    shown = {run: f"{names[run]} (untrained)" if run in bases else names[run] for run in sides}
    sentences = _sentences(names[leader], shown, sides, rivals)
    if tokens := _by_tokens(comparison, leader, shown, sides):
        sentences.append(tokens)
    return " ".join([*(sentences or [_alone(names[leader], best[leader])]), last])


def _sentences(
    leader: str, shown: Mapping[int, str], sides: Mapping[int, Sequence[Stretch]], rivals: Sequence[int]
) -> list[str]:
    """What there is to say of the leader: on its rivals, the next best one first, and on the untrained policies.

    Args:
        leader: its name.
        shown: the names of the other runs.
        sides: where the leader stands against each of them.
        rivals: those that were trained, best first.
    """
    level = [run for run in sides if _level_throughout(sides[run])]
    apart = [run for run in rivals if run not in level]
    sentences = [_sentence(leader, shown[run], sides[run]) for run in apart[:DESCRIBED]]
    if further := {shown[run]: sides[run] for run in apart[DESCRIBED:]}:
        sentences.append(_further(leader, further))
    if level:
        together = _sentence(leader, listed([shown[run] for run in level]), sides[level[0]])
        sentences.insert(0 if rivals[:1] == level[:1] else len(sentences), together)
    bases = [run for run in sides if run not in (*rivals, *level)]
    return sentences + [_sentence(leader, shown[run], sides[run]) for run in bases]


def best_by_k(comparison: Comparison, budget: Budget = Budget.ANSWERS) -> list[dict[int, Floats]]:
    """For each group and each k, best@k of every problem."""
    return [
        {metric.k: column_P for metric, column_P in table.items() if metric.k is not None and metric.budget == budget}
        for table in comparison.best
    ]


def stretches(one: Mapping[int, Floats], other: Mapping[int, Floats], unit: str = "sample") -> list[Stretch]:
    """Where one run is ahead of another, level with it or behind it, by k, of a unit; over the k that both have."""
    ks = sorted(one.keys() & other.keys())
    differences = intervals({k: one[k] - other[k] for k in ks}, dict.fromkeys(ks, (-1.0, 1.0)))
    result: list[Stretch] = []
    start = 0
    for end in range(1, len(ks) + 1):
        if end < len(ks) and _side(differences[ks[end]]) == _side(differences[ks[start]]):
            continue
        part = ks[start:end]
        sizes = [abs(differences[k].mean) for k in part]
        side, when = _side(differences[part[0]]), _when(part, ks, unit)
        result.append(Stretch(side, tuple(part), when, min(sizes), max(sizes)))
        start = end
    return result


def _level_throughout(parts: Sequence[Stretch]) -> bool:
    """Whether two runs are level at every k, and not the same."""
    return len(parts) == 1 and parts[0].side == LEVEL and parts[0].most >= SAME


def _side(difference: Interval) -> str:
    if not difference.certain:
        return LEVEL
    return AHEAD if difference.mean > 0 else BEHIND


def _when(part: Sequence[int], ks: Sequence[int], unit: str) -> str:
    """Some neighbouring k among all k, in words."""
    first, last = counted(part[0], unit), counted(part[-1], unit)
    if len(part) == 1:
        return f"at {first}"
    if len(part) == len(ks):
        return f"at every k from {part[0]:,} to {last}"
    if part[-1] == ks[-1]:
        return f"from {first} on"
    return f"up to {last}" if part[0] == ks[0] else f"from {part[0]:,} to {last}"


def _sentence(one: str, other: str, parts: Sequence[Stretch]) -> str:
    """A sentence on two runs: where the first is ahead, where the other leads, and where they are level."""
    if not parts:
        return f"{one} and {other} have no k in common."
    if all(part.most < SAME for part in parts):
        return f"{one} and {other} score the same {listed([part.when for part in parts])}."
    by_side = group_by(parts, lambda part: part.side)
    clauses: list[str] = []
    for side in (AHEAD, BEHIND, LEVEL):
        if some := by_side.get(side):
            when = listed([part.when for part in some])
            comma = "" if clauses else ","
            clauses.append(f"{when}{comma} {_relation(side, one, other, some, first=not clauses)}")
    text = "; ".join(clauses)
    return f"{text[0].upper()}{text[1:]}."


def _relation(side: str, one: str, other: str, parts: Sequence[Stretch], *, first: bool) -> str:
    """How two runs stand; the first clause of a sentence names both."""
    if side == LEVEL:
        return f"{one} is level with {other}" if first else "the two are level"
    size = _range(min(part.least for part in parts), max(part.most for part in parts))
    if side == AHEAD:
        return f"{one} is ahead of {other} by {size}"
    return f"{one} is behind {other} by {size}" if first else f"{other} leads by {size}"


def _range(least: float, most: float) -> str:
    form = ".3f" if least < SMALL else ".2f"
    low, high = format(least, form), format(most, form)
    return low if low == high else f"{low} to {high}"


def _further(leader: str, sides: Mapping[str, Sequence[Stretch]]) -> str:
    """One sentence on all other rivals, each with its k and without sizes."""
    phrases = []
    for name, parts in sides.items():
        decided = [part for part in parts if part.side != LEVEL]
        if not decided:
            phrases.append(f"level with {name}")
        elif {part.side for part in decided} == {AHEAD, BEHIND}:
            ahead = listed([part.when for part in decided if part.side == AHEAD])
            behind = listed([part.when for part in decided if part.side == BEHIND])
            phrases.append(f"ahead of {name} {ahead} and behind it {behind}")
        else:
            word = "ahead of" if decided[0].side == AHEAD else "behind"
            phrases.append(f"{word} {name} {listed([part.when for part in decided])}")
    return f"{leader} is also {'; '.join(phrases)}."


def _by_tokens(
    comparison: Comparison, leader: int, shown: Mapping[int, str], sides: Mapping[int, Sequence[Stretch]]
) -> str:
    """A sentence where tokens say the opposite: on every run that leads by tokens, and nowhere by answers."""
    tokens = best_by_k(comparison, Budget.TOKENS)
    clauses = []
    for run, name in shown.items():
        if any(part.side == BEHIND for part in sides[run]):
            continue
        behind = [part for part in stretches(tokens[leader], tokens[run], "token") if part.side == BEHIND]
        if behind:
            size = _range(min(part.least for part in behind), max(part.most for part in behind))
            clauses.append(f"{name} leads {listed([part.when for part in behind])} by {size}")
    return f"Counted by tokens, {'; '.join(clauses)}." if clauses else ""


def _alone(name: str, best: Mapping[int, Floats]) -> str:
    """One run, which is compared with nothing."""
    ks = sorted(best)
    scores = [f"best@{k} {best[k].mean():.2f}" for k in dict.fromkeys((ks[0], ks[-1]))]
    return f"{name}: {' and '.join(scores)}; there is no other run to compare it with."


def _one_problem(best: Sequence[Mapping[int, Floats]], runs: Sequence[int], names: Sequence[str]) -> str:
    """Scores alone: one problem has no interval."""
    ks = sorted(best[runs[0]])
    if not ks:
        return "There is no k that every run has."
    scores = ", ".join(f"{names[run]} {best[run][ks[-1]].mean():.2f}" for run in runs if ks[-1] in best[run])
    return f"best@{ks[-1]}: {scores}. One problem has no interval and ranks nothing."


def _basis(comparison: Comparison, ks: Sequence[int]) -> str:
    """What the verdict rests on."""
    count = len(comparison.problems)
    seeds = max(len(group) for group in comparison.groups)
    parts = [counted(count, "problem")]
    parts += [f"each run averaged over up to {seeds} pools"] if seeds > 1 else []
    parts += [f"k = {', '.join(map(str, ks))} sampled {plural(ks[-1], 'answer')}"] if ks else []
    parts += ["95% intervals"] if count > 1 else []
    return f"{', '.join(parts)}."


def _mean(best: Mapping[int, Floats]) -> float:
    return float(np.mean([column_P.mean() for column_P in best.values()])) if best else 0.0
