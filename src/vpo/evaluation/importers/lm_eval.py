"""lm-evaluation-harness: `samples_TASK_DATE.jsonl`, which `lm_eval --log_samples` writes.

A problem is a document of a task, TASK/DOC_ID. Every metric is an objective; where a task has several filters, each
metric of each filter, as METRIC/FILTER. lm-eval scores one response for each document, whatever `repeats` is; logs of
the same task with other dates are further generations.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vpo.evaluation.importers.answers import ImportedAnswer, Notes
from vpo.evaluation.importers.source import Source, check_one_model, id_in, list_in
from vpo.util.errors import InputError

# Columns that are no metrics; logs of older versions do not list theirs.
COLUMNS = (
    *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
    *("doc_hash", "prompt_hash", "target_hash"),
)


def files(source: Source) -> list[Path]:
    """The sample logs."""
    return source.tables_with("doc_id", "resps", "filtered_resps")


def read(source: Source, paths: list[Path], notes: Notes) -> Iterator[ImportedAnswer]:
    """Each document with its metrics, under all filters."""
    check_one_model(source, (path.parent for path in paths))
    for path in paths:
        yield from _read(source, path, notes)


def _read(source: Source, path: Path, notes: Notes) -> Iterator[ImportedAnswer]:
    """The rows of a document, one for each filter, are one answer."""
    task = re.sub(r"^samples_|_\d{4}-\d\d-\d\dT[\d.:-]+$", "", path.name.removesuffix(".gz").removesuffix(".jsonl"))
    seen: Counter[tuple[Any, str]] = Counter()
    documents: dict[tuple[Any, int], dict[str, tuple[str, Mapping[str, Any]]]] = {}
    for where, row in source.rows(path):
        document, filtered_by = id_in(row, "doc_id", where), str(row.get("filter") or "none")
        key = document, seen[document, filtered_by]  # rows of several runs may be in one file
        seen[document, filtered_by] += 1
        documents.setdefault(key, {})[filtered_by] = where, row
    several = len({name for rows in documents.values() for name in rows}) > 1
    for (document, _), rows in documents.items():
        where, first = next(iter(rows.values()))
        scores = {
            f"{metric}/{name}" if several else metric: value
            for name, (where, row) in rows.items()
            for metric, value in _metrics(row, where).items()
        }
        texts = _texts(list_in(first, "resps", where))
        if len(texts) > 1:
            notes["further responses are left out: lm-eval scores one for each document"] += len(texts) - 1
        yield ImportedAnswer(
            where,
            f"{task}/{document}",
            scores,
            answer=_first_text(first.get("filtered_resps")) if texts else None,
            completion=texts[0] if texts else None,
        )


def _metrics(row: Mapping[str, Any], where: str) -> dict[str, Any]:
    listed = list_in(row, "metrics", where) if "metrics" in row else [name for name in row if name not in COLUMNS]
    names = [str(name) for name in listed]
    if not names:
        raise InputError(f"{where}: the row has no metric; it has {', '.join(row)}")
    if missing := [name for name in names if name not in row]:
        raise InputError(f"{where}: the row has no {missing[0]!r}; it has {', '.join(row)}")
    return {name: row[name] for name in names}


def _texts(responses: list[Any]) -> list[str]:
    """The responses of a document, [[text, …]]; none for multiple choice, where they are log-likelihoods."""
    first = responses[0] if responses else None
    return [each for each in first if isinstance(each, str)] if isinstance(first, list) else []


def _first_text(filtered: Any) -> str | None:
    """The first response after a filter, which keeps one, [text], or all, [[text, …]]."""
    while isinstance(filtered, list) and filtered:
        filtered = filtered[0]
    return filtered if isinstance(filtered, str) else None
