"""Diagnoses of a reward as text for a terminal."""

from vpo.evaluation.diagnose import Diagnosis
from vpo.evaluation.number_text import interval_text, number_text

VERDICTS = {
    "yes": "Verdict: yes. The objectives trade off: {needs} of what choosing well gains over an average answer needs a "
    "set.\nVPO has something to train for.",
    "weak": "Verdict: weak. Of what choosing well gains over an average answer, only {needs} needs a set.\n"
    "VPO may gain a little in search; compare it with max_at_k before you commit to it.",
    "no": "Verdict: no. One answer is best, or nearly so, under every weighting: {needs} of what choosing well gains "
    "needs a set.\nHere VPO is scalar RL with several answers: use grpo or max_at_k, or find objectives that disagree.",
    "flat": "Verdict: no. All answers of a problem score alike, so no method has anything to learn from here.\n"
    "Look at the scorer first, then at the temperature the answers were sampled with.",
}
ONE_ANSWER = "Verdict: none. With one answer a problem there is nothing to compare: sample a pool of 10 or more."


def diagnosis_text(found: Diagnosis) -> str:
    """Return a diagnosis in plain words."""
    dimensions = f"{found.dimensions:g}" if found.objectives else f"{found.dimensions:.1f}"
    names = f": {', '.join(found.objectives)}" if found.objectives else ", different from problem to problem"
    *shares, rest = found.shares
    listed = ", ".join(f"{share:.0%}" for share in shares if share >= 0.005)
    lines = [
        f"{found.path}: {found.problems} problems, {found.answers:g} answers each, {dimensions} objectives{names}",
        "",
        f"effective rank     {found.effective_rank:.2f} of {dimensions}",
        f"simplex shares     {listed}" + (f", the rest {rest:.0%}" if rest >= 0.005 else ""),
        f"                   (of all weightings, won by the best answer of a problem, the second, …; "
        f"{found.winners:.1f} win somewhere)",
        f"an average answer  {found.average:.3f}  (its score, averaged over all weightings)",
        f"the best answer    {found.single:.3f}  (the one that is best under the target)",
        f"an ideal set       {found.ideal:.3f}  (E_w[max] of all answers)",
        f"headroom           {interval_text(found.headroom)}: {found.relative_headroom:.0%} of what choosing well "
        "gains needs a set",
    ]
    if found.distinct < 3:
        lines.append(
            f"note               the pool has only {found.distinct:.1f} different score vectors a problem; sample one "
            "from the\n                   untrained policy, at temperature 1, for a fair verdict"
        )
    for name in found.constant:
        lines.append(f"never varies       {name}")
    for one, other, correlation in found.same:
        lines.append(f"says the same      {one} and {other} (correlation {number_text(correlation, '+.2f')})")
    for one, other, correlation in found.opposed:
        lines.append(f"opposed            {one} and {other} (correlation {number_text(correlation, '+.2f')})")
    verdict = VERDICTS[found.verdict].format(needs=f"{found.relative_headroom:.0%}")
    return "\n".join([*lines, "", ONE_ANSWER if found.answers == 1 else verdict])
