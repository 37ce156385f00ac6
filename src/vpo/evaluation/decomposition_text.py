"""Which objectives to use, as text for a terminal."""

from collections.abc import Mapping

from vpo.evaluation.decompose import ALL, HAND, MERGED, PAIR, SCALAR, SPLIT, VARYING, Decomposition, Proposal
from vpo.evaluation.number_text import interval_text
from vpo.util.text import aligned, listed

# Pairs that a terminal shows: this many that cost least to merge, and the one that costs most; all are in the JSON.
CHEAP_PAIRS = 2

KINDS = {
    ALL: "all",
    VARYING: "without what never varies",
    MERGED: "what says the same merged",
    SPLIT: "sums left out, their parts kept",
    HAND: "by hand",
    SCALAR: "one sum, a scalar reward",
}


def decomposition_text(sets: Decomposition) -> str:
    """A table of the proposed sets of objectives, the sums, and the recommendation."""
    if not sets.applies:
        return recommendation(sets)
    pairs = [each for each in sets.proposals if each.kind == PAIR]
    left_out = pairs[CHEAP_PAIRS:-1]
    rows = [["which objectives?", "D", "effective rank", "headroom", "needs a set", "verdict"]]
    rows += [_row(each) for each in sets.proposals if each not in left_out]
    lines = aligned(rows)
    for each in sets.sums:
        lines.append(f"sum of others      {each.objective} = {_mix(each.parts)} (explains {each.explained:.1%})")
    if left_out:
        lines.append(f"({len(left_out)} more pairs that were tried are in --json)")
    lines.append("(needs a set: of what choosing well gains; more of it is more to train for, not a better reward)")
    return "\n".join([*lines, "", recommendation(sets)])


def recommendation(sets: Decomposition) -> str:
    """What to do, in one sentence."""
    if not sets.applies:
        reason = "none varies over the answers of a problem" if sets.constant else "they differ between problems"
        return f"Objectives: {reason}, so nothing can be said about which to use."
    use = sets.proposal(sets.recommended or ALL)
    needs = f"{use.relative_headroom.mean:.0%} of what choosing well gains needs a set"
    names = ", ".join(use.objectives)
    if len(use.objectives) == 1:
        return f"Objectives: {_changes(sets)}what is left is {names}, a scalar reward: use grpo or max_at_k."
    if use.verdict == "no":
        return f"Objectives: a single sum will do: with {names} kept apart, only {needs}."
    if use.kind == ALL:
        alone = "none is constant, repeats another or adds others up"
        return f"Objectives: keep all {len(use.objectives)}: {alone}, and {needs}."
    return f"Objectives: {_changes(sets)}use {names}: {needs}."


def _changes(sets: Decomposition) -> str:
    """The steps from all objectives to the recommended ones."""
    verb = "varies" if len(sets.constant) == 1 else "vary"
    done = [f"drop {listed(sets.constant)}, which never {verb}"] if sets.constant else []
    done += [f"merge {listed(group)}, which say the same" for group in sets.groups]
    done += [f"drop {each.objective}, which {listed(tuple(each.parts))} add up to" for each in sets.sums]
    return "".join(f"{each}; " for each in done)


def name_of(proposal: Proposal) -> str:
    """A set in a few words."""
    if proposal.kind == PAIR:
        return f"{listed(proposal.merged[0])} merged"
    return KINDS[proposal.kind] + (f": {', '.join(proposal.objectives)}" if proposal.kind == HAND else "")


def _row(proposal: Proposal) -> list[str]:
    return [
        name_of(proposal),
        str(len(proposal.objectives)),
        f"{proposal.effective_rank:.2f}",
        interval_text(proposal.headroom),
        interval_text(proposal.relative_headroom, ".0%"),
        proposal.verdict,
    ]


def _mix(parts: Mapping[str, float]) -> str:
    return " + ".join(f"{weight:.2f} {name}" for name, weight in parts.items())
