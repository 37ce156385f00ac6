"""Comparisons and diagnoses as text for a terminal, and as plain data for JSON."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from vpo.core.at_k import Interval
from vpo.evaluation.diagnose import Diagnosis
from vpo.evaluation.evaluations import POOL
from vpo.evaluation.measure import DIVERSITY, ORACLE, Comparison, Measure
from vpo.evaluation.score import Tally
from vpo.tasks import Flaw, Message, Task, settings_of
from vpo.tasks.task import P
from vpo.util.row_files import without_form
from vpo.util.text import aligned

MEANINGS = {**DIVERSITY, "first": "answer 1 alone", "set": "best answer of one generation"}


def comparison_data(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison as plain data."""
    return {
        "pools": [
            {
                "path": pool.path,
                "problems": len(pool.problems),
                "answers_per_generation": pool.set_size,
                "objectives": pool.objectives,
            }
            for pool in comparison.pools
        ],
        "problems": len(comparison.problems),
        "target": comparison.target,
        "pairs": comparison.pairs,
        "measures": [asdict(measure) for measure in comparison.measures],
        "notes": comparison.notes,
    }


# So many pools have a column each in a short table; more have a row each.
FEW = 3
# What a short table leaves out.
DETAILS = {"pass@k", *DIVERSITY} - {"l1", "coverage"}


def comparison_text(comparison: Comparison, *, brief: bool = False, names: Sequence[str] | None = None) -> str:
    """Return a comparison as tables: a row for each measure, a column for each pool and each difference."""
    if brief:
        kept = [each for each in comparison.measures if not {each.section, each.at} & DETAILS]
        comparison = replace(comparison, measures=tuple(kept))
    names = names or short_names(comparison)
    if brief and len(names) > FEW:
        return _runs_as_rows(comparison, names)
    pairs = [f"{names[a]} − {names[b]}" for a, b in comparison.pairs]
    lines = [_summary(comparison), ""]
    if len(pairs) > 1:  # side by side they would be too wide
        lines += [*_table(comparison, names, _values), "", "Differences, paired over problems", ""]
        lines += [*_table(comparison, pairs, _differences), ""]
    else:
        lines += [*_table(comparison, [*names, *pairs], lambda each: [*_values(each), *_differences(each)]), ""]
    lines += [f"{m.at}: {MEANINGS[m.at]}" for m in comparison.measures if m.at in MEANINGS]
    if len(comparison.problems) > 1:
        lines.append("[low, high]: 95% bootstrap interval over problems")
    if len(names) > 1:
        lines.append("*: paired over problems, the interval of the difference excludes 0")
    return "\n".join([*lines, *(f"note: {note}" for note in comparison.notes)])


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
        f"headroom           {_interval(found.headroom)}: {found.relative_headroom:.0%} of what choosing well gains "
        "needs a set",
    ]
    if found.distinct < 3:
        lines.append(
            f"note               the pool has only {found.distinct:.1f} different score vectors a problem; sample one "
            "from the\n                   untrained policy, at temperature 1, for a fair verdict"
        )
    for name in found.constant:
        lines.append(f"never varies       {name}")
    for one, other, correlation in found.same:
        lines.append(f"says the same      {one} and {other} (correlation {_number(correlation, '+.2f')})")
    for one, other, correlation in found.opposed:
        lines.append(f"opposed            {one} and {other} (correlation {_number(correlation, '+.2f')})")
    verdict = VERDICTS[found.verdict].format(needs=f"{found.relative_headroom:.0%}")
    return "\n".join([*lines, "", ONE_ANSWER if found.answers == 1 else verdict])


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


def task_data(task: type[Task[Any]]) -> dict[str, Any]:
    """Return a task as plain data."""
    return {
        "name": task.name,
        "summary": task.summary,
        "settings": settings_of(task),
        "objectives": [
            {"name": objective.name, "meaning": objective.meaning, "weight": weight}
            for objective, weight in zip(task.objectives, task.weights, strict=True)
        ],
    }


def task_text(task: type[Task[Any]]) -> str:
    """Return a task in some lines: its objectives with their weights, and its settings."""
    rows = [
        [f"  {objective.name}", f"{weight:.3f}", objective.meaning]
        for objective, weight in zip(task.objectives, task.weights, strict=True)
    ]
    if task.ragged:
        first, last = task.objectives[0], task.objectives[-1]
        rows = [[f"  {first.name}", "alike", first.meaning], [f"  … {last.name}", "", "as many as the problem has"]]
    if not task.objectives:
        rows = [["  your own", "", "as the settings say"]]
    settings = ", ".join(f"{name}={default}" for name, default in settings_of(task).items())
    return "\n".join([f"{task.name}: {task.summary}", *aligned(rows), f"  settings: {settings or 'none'}"])


def problem_data(task: Task[P], problem: P, prompt: Sequence[Message]) -> dict[str, Any]:
    """Return a problem, its prompt and its gold answer as plain data."""
    gold = task.gold(problem)
    vector = None if gold is None else task.score(problem, gold)
    scores = None if vector is None else dict(zip(task.names_of(problem), vector, strict=True))
    return {"id": problem.id, "prompt": list(prompt), "gold": gold, "scores": scores}


def problem_text(task: Task[P], problem: P, prompt: Sequence[Message], *, colour: bool) -> str:
    """Return a problem for people: the prompt, the gold answer and its scores, the picture."""
    data = problem_data(task, problem, prompt)
    parts = [f"{task.name} {problem.id}"]
    parts += [f"── {message['role']} ──\n{message['content']}" for message in prompt]
    if data["gold"] is not None:
        scores = ", ".join(f"{name} {score:.3g}" for name, score in (data["scores"] or {}).items())
        parts.append(f"── gold answer ──\n{data['gold']}\n{scores}")
    picture = task.picture(problem, [data["gold"]] if data["gold"] else [], colour=colour)
    return "\n\n".join([*parts, *([picture] if picture else [])])


def flaws_text(task: str, graded: int, flaws: Sequence[Flaw]) -> str:
    """Return how many gold answers score as they should, and those that do not."""
    lines = [f"{task}: {graded - len(flaws)} of {graded} gold answers score as they should"]
    for flaw in flaws:
        lines.append(f"  {flaw.problem}: {flaw.reason}")
        lines += [f"    {line}" for line in (flaw.answer or "").splitlines()]
    return "\n".join(lines)


def tally_text(tally: Tally, pool: str) -> str:
    """Return what became of some completions."""
    data = tally.data()
    rows = [[f"  {name}", f"{mean:.3f}"] for name, mean in data["mean"].items()]
    target = tally.target or {"all": 1.0}
    uniform = max(target.values()) - min(target.values()) < 1e-9
    ratios = ",".join(
        f"{name}={weight / min(filter(None, target.values())):.6g}" for name, weight in target.items() if weight > 0
    )
    left_out = f", {tally.unknown} of them left out as their scores cannot be known" if tally.unknown else ""
    return "\n".join(
        [
            f"{tally.completions} completions{left_out}, {tally.answers} answers: {data['given']:.1%} were given, "
            f"{data['readable']:.1%} could be read, {data['repeated']:.1%} repeat an earlier one of their set, "
            f"{data['solved']:.1%} solve",
            *aligned(rows),
            f"written to {pool}; next: vpo measure {pool}" + ("" if uniform else f" --target {ratios}"),
        ]
    )


def short_names(comparison: Comparison) -> list[str]:
    """Return the names of the files, or of the folders of runs, where they tell the pools apart, else the paths."""
    paths = [Path(pool.path) for pool in comparison.pools]
    names = [path.parent.name if path.name == POOL else without_form(path.name) for path in paths]
    if len(set(names)) < len(names):
        names = [str(path) for path in paths]
    return names if len(set(names)) == len(names) else [f"{place}: {name}" for place, name in enumerate(names, 1)]


def title_of(measure: Measure) -> str:
    """Return what a measure measures, and by which budget."""
    return f"{measure.section}, by {measure.by}" if measure.by else measure.section


def _runs_as_rows(comparison: Comparison, names: Sequence[str]) -> str:
    """Return a table with a row for each of many pools: the means, and what they are above or below the first one."""
    shown = [each for each in comparison.measures if each.by in ("answers", "") and each.section != "pass@k"]
    shown = [each for each in shown if each.section != ORACLE or each.at == shown[-1].at]
    head = [f"best@{each.at}" if each.section == "best@k" else _column(each) for each in shown]
    values = [
        [_number(value.mean, ".3f") if (value := each.values[run]) else "–" for each in shown]
        for run in range(len(names))
    ]
    changes = [[_change(each.differences[run]) for each in shown] for run in range(len(names) - 1)]
    rows = [["", *head], *([name, *row] for name, row in zip(names, values, strict=True)), []]
    rows += [[f"less {names[0]}", *head], *([name, *row] for name, row in zip(names[1:], changes, strict=True))]
    meanings = [f"{each.at}: {MEANINGS[each.at]}" for each in shown if each.at in MEANINGS]
    lines = [_summary(comparison), "", *aligned(rows), "", *meanings]
    lines.append("*: paired over problems, the 95% bootstrap interval of the difference excludes 0")
    return "\n".join([*lines, *(f"note: {note}" for note in comparison.notes)])


def _column(measure: Measure) -> str:
    return f"oracle@{measure.at}" if measure.section == ORACLE else str(measure.at)


def _change(change: Interval | None) -> str:
    if change is None:
        return "–"
    return _number(change.mean, "+.3f") + (" *" if change.certain else "")


def _table(comparison: Comparison, names: Sequence[str], cells: Callable[[Measure], list[str]]) -> list[str]:
    rows: list[list[str]] = [["", *names]]
    for title, measures in groupby(comparison.measures, key=title_of):
        rows += [[], [title], *([f"  {measure.at}", *cells(measure)] for measure in measures)]
    return aligned(rows)


def _values(measure: Measure) -> list[str]:
    return ["–" if value is None else _interval(value) for value in measure.values]


def _differences(measure: Measure) -> list[str]:
    cells = []
    for change in measure.differences:
        cells.append("–" if change is None else _interval(change, sign="+") + (" *" if change.certain else ""))
    return cells


def _interval(interval: Interval, sign: str = "") -> str:
    numbers = [interval.mean, interval.low, interval.high]
    mean, low, high = ("" if number is None else _number(number, f"{sign}.3f") for number in numbers)
    return f"{mean} [{low}, {high}]" if low else mean


def _number(value: float, form: str) -> str:
    return format(value, form).replace("-", "−")


def target_text(target: Mapping[str, float] | None) -> str:
    """Return a weighting of the objectives in words."""
    return ", ".join(f"{name} {weight:.3g}" for name, weight in target.items()) if target else "all objectives alike"


def _summary(comparison: Comparison) -> str:
    sizes = sorted({pool.set_size or 0 for pool in comparison.pools})
    sets = " and ".join("mixed" if size == 0 else str(size) for size in sizes)
    return (
        f"{len(comparison.problems)} problems; answers per generation: {sets}; target: {target_text(comparison.target)}"
    )
