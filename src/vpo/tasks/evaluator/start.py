"""The evaluation of the start program: it says which metrics there are, and stands in prompts.

It is kept in the user's cache: evaluators may be slow or random, and a search that is resumed asks as it asked before.
"""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from vpo.tasks.evaluator.evaluation import Evaluation, Evaluator
from vpo.util.caches import cache_folder, read_cached, write_cached

if TYPE_CHECKING:
    from vpo.tasks.evaluator.project import Project

_EVALUATED: dict[str, Evaluation] = {}  # by fingerprint and limits, in this process


def evaluate_start(project: "Project", evaluator: Evaluator) -> Evaluation:
    """The evaluation of the start program, from the cache where it is there. Failures are not kept."""
    key = f"{project.fingerprint}-{evaluator.seconds:g}-{evaluator.limits.memory_mb}"
    folder = cache_folder("evaluated_starts")
    path = None if folder is None else folder / f"{key}.json"
    if key not in _EVALUATED:
        kept = None if path is None else read_cached(path)
        evaluation = _read(kept) if kept else None
        if evaluation is None:
            evaluation = evaluator.evaluate(project.program)
            if evaluation.failure:
                return evaluation
            if path is not None:
                write_cached(path, json.dumps(asdict(evaluation)).encode())
        _EVALUATED[key] = evaluation
    return _EVALUATED[key]


def _read(data: bytes) -> Evaluation | None:
    """A kept evaluation; None where the file is damaged."""
    try:
        values = json.loads(data)
        metrics = {name: float(value) for name, value in values["metrics"].items()}
        return Evaluation(metrics, {name: str(text) for name, text in values["artifacts"].items()})
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
