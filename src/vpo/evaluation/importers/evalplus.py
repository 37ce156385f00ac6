"""EvalPlus: `*eval_results.json`, which `evalplus.evaluate` writes.

A problem is a task such as HumanEval/0, a generation one solution. Objectives: `base` and `plus`, 1 where all tests of
the data set, or all further ones of EvalPlus, pass. Without plus tests (`--base-only`) there is `base` alone. An answer
that passes all is solved.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from vpo.evaluation.importers.answers import ImportedAnswer, Notes
from vpo.evaluation.importers.source import Source, check_one_model, needed, objects_in

PASS = "pass"


def files(source: Source) -> list[Path]:
    """The result files: an object with the field `eval`, and statuses in it."""
    return [path for path in source.documents if _is_result(source.document(path))]


def _is_result(document: object) -> bool:
    evaluated = document.get("eval") if isinstance(document, Mapping) else None
    solutions = next(iter(evaluated.values()), None) if isinstance(evaluated, Mapping) else None
    first = solutions[0] if isinstance(solutions, list) and solutions else None
    return isinstance(first, Mapping) and "base_status" in first


def _models(source: Source, paths: list[Path]) -> Sequence[object]:
    """The names of the models: EvalPlus writes DATASET/MODEL_eval_results.json, or MODEL/eval_results.json.

    Files that share a task are no two data sets of one model, whatever their names.
    """
    tasks = [task for path in paths for task in source.document(path)["eval"]]
    if len(set(tasks)) < len(tasks):
        return paths
    return [path.stem.removesuffix("eval_results").rstrip("_.") or path.absolute().parent.name for path in paths]


def read(source: Source, paths: list[Path], notes: Notes) -> Iterator[ImportedAnswer]:
    """Each solution with its statuses."""
    check_one_model(source, _models(source, paths))
    for path in paths:
        evaluated = source.document(path)["eval"]
        for task in evaluated:
            for number, solution in enumerate(objects_in(evaluated, task, str(path))):
                where = f"{path}: solution {number} of {task}"
                base, plus = needed(solution, "base_status", where), solution.get("plus_status")
                scores = {"base": base == PASS} | ({} if plus is None else {"plus": plus == PASS})
                yield ImportedAnswer(where, task, scores, answer=solution.get("solution"), solved=all(scores.values()))
