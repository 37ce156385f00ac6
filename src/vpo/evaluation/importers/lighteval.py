"""lighteval: `details/MODEL/DATE/details_TASK_DATE.parquet`, which `--save-details` writes.

A problem is a document of a task, TASK/ID. Every metric of the document is an objective. lighteval keeps one value of a
metric for each document, however many samples it is made from; details of the same task with other dates are further
generations.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vpo.evaluation.importers.answers import ImportedAnswer, Notes, text_of
from vpo.evaluation.importers.source import Source, check_one_model, needed
from vpo.util.errors import InputError


def files(source: Source) -> list[Path]:
    """The details."""
    return source.tables_with("doc", "model_response", "metric")


def read(source: Source, paths: list[Path], notes: Notes) -> Iterator[ImportedAnswer]:
    """Each document with its metrics."""
    check_one_model(source, (path.parent.parent for path in paths))
    for path in paths:
        task = re.sub(r"^details_|_\d{4}-\d\d-\d\dT[\d.:-]+$", "", path.stem)
        for number, (where, row) in enumerate(source.rows(path)):
            document, metrics = needed(row, "doc", where), needed(row, "metric", where)
            if not isinstance(document, Mapping) or not isinstance(metrics, Mapping):
                raise InputError(f"{where}: doc and metric must be objects")
            texts = _texts(row.get("model_response"))
            if len(texts) > 1:
                notes["further samples are left out: lighteval keeps one score for each document"] += len(texts) - 1
            name = document.get("id") if document.get("id") not in (None, "") else number
            yield ImportedAnswer(
                where,
                f"{document.get('task_name') or task}/{name}",
                metrics,
                answer=texts[0] if texts else None,
                tokens=_tokens(row["model_response"]) if texts else None,
            )


def _texts(response: Any) -> list[str]:
    """The samples of a document; none for multiple choice, which is by log-likelihood."""
    texts = response.get("text") if isinstance(response, Mapping) else None
    return [text_of(text) or "" for text in texts] if isinstance(texts, list) else []


def _tokens(response: Mapping[str, Any]) -> int | None:
    """The tokens of the first sample; None where the details do not have them."""
    samples = response.get("output_tokens")
    first = samples[0] if isinstance(samples, list) and samples else None
    return len(first) or None if isinstance(first, list) else None
