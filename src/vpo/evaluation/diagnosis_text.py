"""Diagnoses of a reward as text for a terminal."""

from collections.abc import Iterator

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


def diagnosis_text(diagnosis: Diagnosis) -> str:
    """The numbers of a diagnosis, objectives worth a look, and the verdict."""
    needs = f"{diagnosis.relative_headroom:.0%}"
    verdict = ONE_ANSWER if diagnosis.answers == 1 else VERDICTS[diagnosis.verdict].format(needs=needs)
    rows = [*_reward_rows(diagnosis), *_objective_rows(diagnosis)]
    return "\n".join([_pool_line(diagnosis), "", *(f"{name:18} {text}" for name, text in rows), "", verdict])


def _pool_line(diagnosis: Diagnosis) -> str:
    objectives = diagnosis.objectives
    names = f": {', '.join(objectives)}" if objectives else ", different from problem to problem"
    return (
        f"{diagnosis.path}: {diagnosis.problems} problems, {diagnosis.answers:g} answers each, "
        f"{_dimensions(diagnosis)} objectives{names}"
    )


def _dimensions(diagnosis: Diagnosis) -> str:
    return f"{diagnosis.dimensions:g}" if diagnosis.objectives else f"{diagnosis.dimensions:.1f}"


def _reward_rows(diagnosis: Diagnosis) -> Iterator[tuple[str, str]]:
    *shares, rest = diagnosis.shares
    listed = ", ".join(f"{share:.0%}" for share in shares if share >= 0.005)
    yield "effective rank", f"{diagnosis.effective_rank:.2f} of {_dimensions(diagnosis)}"
    yield "simplex shares", listed + (f", the rest {rest:.0%}" if rest >= 0.005 else "")
    won = "of all weightings, won by the best answer of a problem, the second, …"
    yield "", f"({won}; {diagnosis.winners:.1f} win somewhere)"
    yield "an average answer", f"{diagnosis.average:.3f}  (its score, averaged over all weightings)"
    yield "the best answer", f"{diagnosis.single:.3f}  (the one that is best under the target)"
    yield "an ideal set", f"{diagnosis.ideal:.3f}  (E_w[max] of all answers)"
    needs = f"{diagnosis.relative_headroom:.0%} of what choosing well gains needs a set"
    yield "headroom", f"{interval_text(diagnosis.headroom)}: {needs}"
    if diagnosis.distinct < 3:
        yield (
            "note",
            f"the pool has only {diagnosis.distinct:.1f} different score vectors a problem; sample one from the",
        )
        yield "", "untrained policy, at temperature 1, for a fair verdict"


def _objective_rows(diagnosis: Diagnosis) -> Iterator[tuple[str, str]]:
    for name in diagnosis.constant:
        yield "never varies", name
    for title, pairs in (("says the same", diagnosis.same), ("opposed", diagnosis.opposed)):
        for one, other, correlation in pairs:
            yield title, f"{one} and {other} (correlation {number_text(correlation, '+.2f')})"
