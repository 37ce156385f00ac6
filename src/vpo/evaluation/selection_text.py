"""Chosen answers as rows of a pool, as text for a terminal, and as plain data for JSON."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from vpo.core.intervals import Interval
from vpo.evaluation.answer_rows import AnswerPool, key_of
from vpo.evaluation.judged import Judged
from vpo.evaluation.number_text import interval_text
from vpo.evaluation.select import Selection
from vpo.evaluation.select_config import SelectConfig
from vpo.evaluation.selection_values import ALL, BOUND, CHOSEN, RANDOM, SOLVED, TARGET, TOP, WEIGHTINGS, SetValues
from vpo.util.row_files import Row
from vpo.util.text import aligned, counted

HEADINGS = {WEIGHTINGS: "random weightings", TARGET: "under w*", SOLVED: "solved"}
GENERATION = "selected"  # the id of the one generation that a problem has in the pool of chosen answers


def selected_rows(answers: AnswerPool, selection: Selection, judged: Judged | None = None) -> Iterator[Row]:
    """The chosen answers as a pool with one generation for each problem, in the order of choice.

    Where fewer than k were chosen the generation has as many: none is missing, so that none counts as zeros. The scores
    are those of the pool. `source_generation` and `source_position` say which answer of it a row is; `judged` has the
    scores that it was chosen by, where these are others.
    """
    for name, choice in selection.problems.items():
        for position, index in enumerate(choice.chosen, start=1):
            row = answers.problems[name][index]
            by = {} if judged is None else {"judged": dict(judged.scores.get(key_of(row), {}))}
            kept = {field: row[field] for field in ("scores", "solved", "answer", "target") if field in row}
            yield {
                "problem": name,
                "generation": GENERATION,
                "position": position,
                **kept,
                "answers": len(choice.chosen),
                "source_generation": row["generation"],
                "source_position": row["position"],
                **by,
            }


def selection_data(
    answers: AnswerPool,
    selection: Selection,
    values: Sequence[SetValues],
    config: SelectConfig,
    target: Mapping[str, float] | None,
) -> dict[str, Any]:
    """What `vpo select --json` prints."""
    return {
        "pool": answers.evaluation.pool.path,
        "problems": len(answers.problems),
        "answers": _mean_answers(answers),
        "different": _mean_different(selection),
        "target": target,
        "settings": asdict(config),
        "values": [asdict(each) for each in values],
        "chosen": {
            name: [_source(answers.problems[name][index]) for index in choice.chosen]
            for name, choice in selection.problems.items()
        },
        "notes": list(selection.notes),
    }


def _source(row: Row) -> dict[str, Any]:
    return {"generation": row["generation"], "position": row["position"]}


def _mean_answers(answers: AnswerPool) -> float:
    return sum(map(len, answers.problems.values())) / len(answers.problems)


def _mean_different(selection: Selection) -> float:
    return sum(each.different for each in selection.problems.values()) / len(selection.problems)


def selection_text(
    answers: AnswerPool, selection: Selection, values: Sequence[SetValues], way: str, target: str, measured: str
) -> str:
    """The values of the chosen answers as a table.

    Args:
        answers: that were chosen from.
        selection: of answers.
        values: what `selection_values` returned.
        way: how they were chosen, in words.
        target: w*, in words.
        measured: whose scores the values are from, in words.
    """
    measures = list(values[0].values[CHOSEN])
    table: list[list[str]] = [["", *(HEADINGS[name] for name in measures)]]
    for each in values:
        table += [[], [f"k = {each.k}"], *_rows(each, measures)]
    several = len(answers.problems) > 1
    return "\n".join(
        [
            f"{counted(len(answers.problems), 'problem')}, {_mean_answers(answers):.3g} answers each, "
            f"{_mean_different(selection):.3g} different; chosen by {way}; target: {target}; {measured}",
            "",
            *aligned(table),
            "",
            "random weightings: expected best score of the answers, over all weightings of the objectives",
            "under w*: best score of the answers under the target",
            "random: expected value of k answers as they were sampled; top: the best k under w*, by the scores that "
            "the choice was made by",
            "bound: no k answers of the pool have more",
            *([f"[low, high]: 95% interval over the {len(answers.problems)} problems"] if several else []),
            *(["*: paired over these problems, the interval of the difference excludes 0"] if several else []),
            *(f"note: {note}" for note in selection.notes),
        ]
    )


def _rows(values: SetValues, measures: Sequence[str]) -> Iterator[list[str]]:
    names = {
        CHOSEN: "chosen",
        RANDOM: f"random {values.k}",
        TOP: f"top {values.k} by w*",
        BOUND: "bound",
        ALL: "all answers",
    }
    for each, name in names.items():
        yield [f"  {name}", *(interval_text(values.values[each][measure]) for measure in measures)]
    for each, some in values.differences.items():
        yield [f"  chosen − {names[each]}", *(_difference(some[measure]) for measure in measures)]


def _difference(difference: Interval) -> str:
    return interval_text(difference, "+.3f") + (" *" if difference.certain else "")
