"""Predictions of what training would gain, as text for a terminal."""

from collections.abc import Iterator

from vpo.evaluation.number_text import number_text
from vpo.evaluation.predict import Outlook, Prediction
from vpo.evaluation.training_signal import Signal
from vpo.util.grouping import group_by
from vpo.util.text import aligned, counted, listed

NOT_DIFFERENT = 0.005  # gains below it are not worth a recommendation


def signal_text(signal: Signal) -> str:
    """What there is to learn from, a line each."""
    return "\n".join(f"{name:18} {text}" for name, text in _signal_rows(signal))


def _signal_rows(signal: Signal) -> Iterator[tuple[str, str]]:
    group = signal.group
    yield "signal", f"{signal.differ:.0%} of problems have answers that differ, {signal.scalar:.0%} under the target"
    yield "", f"(so do {signal.groups:.0%} of groups of {group} answers: the others teach a scalar method nothing)"
    yield "spread", f"{signal.spread:.3f}  (standard deviation over the answers of a problem, under the target)"
    each = ", ".join(f"{number_text(interval.mean)} at {k}" for k, interval in signal.headroom.items())
    yield "headroom of k", each
    yield "", "(k answers of which each weighting takes its best, over the best under the mean weighting)"


def outlook_text(outlook: Outlook) -> str:
    """A table of predicted gains, and what they say in a sentence."""
    ks = list(outlook.base)
    head = ["predicted gain of training", *(f"best@{k}" for k in ks), "one completion", "mean L1"]
    start = ["untrained", *(f"{value:.3f}" for value in outlook.base.values()), "", f"{outlook.base_l1:.2f}"]
    rows = [head, start, *(_row(each) for each in outlook.predictions)]
    missing = outlook.without_texts
    alike = f", of {missing} by scores alone, since they have no texts" if missing else ""
    intervals = "; 95% intervals over problems are in --json" if outlook.problems > 1 else ""
    note = f"(simulated on {counted(outlook.problems, 'problem')}{alike}{intervals})"
    return "\n".join([*aligned(rows), note, "", recommendation(outlook)])


def recommendation(outlook: Outlook) -> str:
    """Which method is predicted to gain most, by k."""
    ahead = {k: outlook.best(k) for k in outlook.base}
    if all(each.gains[k].mean < NOT_DIFFERENT for k, each in ahead.items()):
        return "Prediction: no method gains here. Look for problems whose answers differ, or at the scorer."
    parts = []
    for name, ks in group_by(list(ahead), lambda k: ahead[k].name).items():
        gains = [f"{number_text(ahead[k].gains[k].mean, '+.3f')}" for k in ks]
        parts.append(f"{name} at k = {listed([str(k) for k in ks])} ({', '.join(gains)})")
    losers = [
        each.name
        for each in outlook.predictions
        if (last := each.gains[max(ahead)]).high is not None and last.high < 0 and last.mean < -NOT_DIFFERENT
    ]
    lost = f" Below the untrained policy at k = {max(ahead)}: {listed(losers)}." if losers else ""
    return f"Prediction: most is gained by {'; '.join(parts)}.{lost}"


def _row(prediction: Prediction) -> list[str]:
    return [
        prediction.name,
        *(number_text(gain.mean, "+.3f") for gain in prediction.gains.values()),
        f"{prediction.completion:.3f}",
        f"{prediction.l1:.2f}",
    ]
