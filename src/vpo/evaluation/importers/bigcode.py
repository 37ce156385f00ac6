"""bigcode-evaluation-harness: `logs.json`, and beside it the generations (`--save_generations`).

A problem is TASK/INDEX, with the task from the name of the file of generations, `generations_TASK.json`; a generation
is one of its programs. The objective is `passed`, 1 where the tests pass, and the answer is solved then. The harness
keeps the result of each program in `logs.json` (its HumanEvalPack tasks write it, and the `code_eval` metric returns
it); `evaluation_results.json` has only pass@k, from which no pool can be made.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vpo.evaluation.importers.answers import ImportedAnswer, Notes
from vpo.evaluation.importers.source import Source, needed
from vpo.util.errors import InputError

LOGS = "logs.json"


def files(source: Source) -> list[Path]:
    """The files of results, of generations and of pass@k."""
    kinds = (_is_log, _is_generations, _is_pass_at_k)
    return [path for path in source.documents if any(is_kind(source.document(path)) for is_kind in kinds)]


def read(source: Source, paths: list[Path], notes: Notes) -> Iterator[ImportedAnswer]:
    """Each program with its result."""
    logs = [path for path in paths if _is_log(source.document(path))]
    if len(logs) != 1:
        raise InputError(
            f"{source.path}: {len(logs)} files have a result for each program, and 1 is needed ({LOGS}, which "
            "HumanEvalPack tasks write): the files of metrics have pass@k alone, and generations have no scores"
        )
    beside = _generations(source, logs[0])
    task = beside.stem.removeprefix("generations").strip("_") if beside else "problem"
    for problem, results in source.document(logs[0]).items():
        for number, result in results:
            where = f"{logs[0]}: program {number} of problem {problem}"
            passed = needed(result, "passed", where)
            answer = _program(source, beside, problem, number, where) if beside else None
            yield ImportedAnswer(where, f"{task}/{problem}", {"passed": passed}, answer, solved=passed)


def _generations(source: Source, log: Path) -> Path | None:
    """The file of generations beside the log; None where there is none."""
    named = (path for path in sorted(log.parent.glob("generations*.json")) if path.is_file())
    beside = [path for path in named if _is_generations(source.document(path))]
    if len(beside) > 1:
        names = ", ".join(path.name for path in beside)
        raise InputError(f"{log}: several files of generations are beside it ({names}): leave the one of its task")
    return beside[0] if beside else None


def _program(source: Source, generations: Path, problem: str, number: int, where: str) -> str:
    try:
        return str(source.document(generations)[int(problem)][number])
    except (IndexError, TypeError, ValueError):
        raise InputError(f"{where}: {generations} has no such program") from None


def _is_log(document: Any) -> bool:
    """Whether a document maps problems to lists of [number, result]."""
    if not isinstance(document, Mapping) or not any(document.values()):
        return False
    return all(
        isinstance(results, list)
        and all(isinstance(each, list) and len(each) == 2 and isinstance(each[1], Mapping) for each in results)
        for results in document.values()
    )


def _is_generations(document: Any) -> bool:
    """Whether a document is a list with a list of programs for each problem."""
    return (
        isinstance(document, list)
        and any(document)
        and all(isinstance(each, list) and all(isinstance(text, str) for text in each) for each in document)
    )


def _is_pass_at_k(document: Any) -> bool:
    """Whether a document has the metrics of each task, beside the harness's configuration."""
    config = document.get("config") if isinstance(document, Mapping) else None
    return isinstance(config, Mapping) and "tasks" in config
