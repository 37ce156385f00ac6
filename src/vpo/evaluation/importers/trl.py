"""TRL: `completions/completions_STEP.parquet`, which trainers write with `log_completions=True`.

A problem is a prompt, a generation one completion. Every reward function is an objective: the columns of numbers
between the completion and the advantage. Of a folder, all steps are read, in their order, though the policy changed
from step to step; give a file to import one step. Files that repeat the completions of the one before are left out.
"""

from collections.abc import Iterator, Mapping
from numbers import Real
from pathlib import Path
from typing import Any

from vpo.evaluation.importers.answers import ImportedAnswer, Notes, problem_name, text_of
from vpo.evaluation.importers.source import Source, check_one_model, needed
from vpo.util.errors import InputError

COLUMNS = ("step", "prompt", "completion", "advantage")


def files(source: Source) -> list[Path]:
    """The files of completions."""
    return source.tables_with(*COLUMNS)


def read(source: Source, paths: list[Path], notes: Notes) -> Iterator[ImportedAnswer]:
    """Each completion with its rewards."""
    check_one_model(source, (path.parent for path in paths))
    names = [name for name in source.first_row(paths[0]) if name not in COLUMNS]
    rewards = [name for name in names if _is_reward(source, paths, name)]
    if not rewards:
        raise InputError(f"{paths[0]}: no column of numbers is a reward; there are {', '.join(names) or 'none'}")
    for name in names:
        if name not in rewards:
            notes[f"column without numbers is no reward: {name}"] += 1
    before: list[dict[str, Any]] = []
    for path in paths:
        rows = list(source.rows(path))
        current = [{name: value for name, value in row.items() if name != "step"} for _, row in rows]
        if current == before:  # the trainer logged again before it sampled again
            notes["files repeat the completions of the file before them and are left out"] += 1
            continue
        before = current
        for where, row in rows:
            if missing := [name for name in rewards if name not in row]:
                raise InputError(f"{where}: the row has no reward {missing[0]!r}; it has {', '.join(row)}")
            prompt = needed(row, "prompt", where)
            scores = {name: row[name] for name in rewards}
            yield ImportedAnswer(where, problem_name(prompt), scores, answer=text_of(row.get("completion")))


def _is_reward(source: Source, paths: list[Path], name: str) -> bool:
    """Whether the first value of a column that is there is a number; a reward function may return None."""
    rows: Iterator[Mapping[str, Any]] = (row for path in paths for _, row in source.rows(path))
    first = next((row[name] for row in rows if row.get(name) is not None), None)
    return isinstance(first, Real)
