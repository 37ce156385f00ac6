"""The folder of a search: everything that was generated and scored, from which a search can be resumed at any point.

=======================  ===========================================================================================
``search.json``          the settings; another search needs another folder
``generations.jsonl``    a line for each generation: iteration, case, operator, parent, completion, tokens
``candidates.jsonl``     a line for each answer: its number, operator, parent, scores and value, or a failure
``archive.json``         at the end: for each case the best candidate, and the non-dominated ones
``ended.json``           at the end: how many iterations were done, and the lines of both logs
=======================  ===========================================================================================

A case is a problem with one goal. The generations of an iteration are written together, before any is scored, and the
candidates of a generation as soon as it is scored, or the batch that it is scored in. So no completion is requested
twice, and no answer scored twice but those of such a batch.
"""

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from vpo.util.errors import InputError
from vpo.util.files import append_rows, write_json, write_text
from vpo.util.grouping import group_by
from vpo.util.records import first_difference, now
from vpo.util.stored import Fields, log_lines, read_log, read_object

SETTINGS, GENERATIONS, CANDIDATES = "search.json", "generations.jsonl", "candidates.jsonl"
ARCHIVE, ENDED = "archive.json", "ended.json"
FORMER_NAMES = {  # in search.json
    "count": "problems",
    "backend": "generator",
    "size": "population",
    "tokens_per_answer": "max_tokens",
}
# What reading needs of each file, with types.
SETTING_FIELDS: Fields = {
    "cases": list[list[str]],
    "strategy": str,
    "task": str,
    "task_settings": dict[str, Any],
    "split": str,
}
_BOTH: Fields = {"iteration": int, "case": str, "operator": str, "parent": int | None, "failure": str | None, "of": int}
FIELDS: Mapping[str, Fields] = {
    GENERATIONS: {
        **_BOTH,
        **{"number": int, "known": int, "first": int, "text": str, "tokens": int | None, "place": int},
    },
    CANDIDATES: {
        **_BOTH,
        **{"generation": int, "number": int, "position": int, "answer": str | None, "form": str | None},
        **{"scores": list[float] | None, "value": float, "solved": bool},
    },
}


class Log:
    """The folder of one search."""

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        """Write the settings; raise where the folder holds a search with other settings."""
        self.folder = folder
        settings = json.loads(json.dumps(settings))
        started = any((folder / name).is_file() for name in (GENERATIONS, CANDIDATES, ENDED))
        if started and (changed := _changed(read_settings(folder), settings)):
            raise InputError(
                f"{folder} holds another search (it differs in {', '.join(changed)}): choose another folder with --out"
            )
        write_json(folder / SETTINGS, settings)

    def read(self) -> tuple[list[dict[str, Any]], dict[int, list[dict[str, Any]]]]:
        """The generations of complete iterations, and the candidates of each scored generation by its number.

        What was left incomplete, by a kill for example, is removed from the files.
        """
        generations = read_generations(self.folder)
        complete = len(generations)
        candidates = group_by(read_candidates(self.folder), lambda row: row["generation"])
        if lost := [number for number in candidates if number >= complete]:
            warnings.warn(
                f"{self.folder / GENERATIONS}: {len(lost)} generations are missing, though {CANDIDATES} has their "
                "candidates: they are made again",
                stacklevel=2,
            )
        while complete and generations[complete - 1]["place"] + 1 < generations[complete - 1]["of"]:
            complete -= 1  # of an iteration whose last generations are missing
        scored = {
            number: rows for number, rows in candidates.items() if number < complete and len(rows) == rows[0]["of"]
        }
        _filter(self.folder / GENERATIONS, lambda row: row["number"] < complete)
        _filter(self.folder / CANDIDATES, lambda row: row["generation"] in scored)
        return generations[:complete], scored

    def add_generations(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append the generations of one iteration."""
        append_rows(self.folder / GENERATIONS, rows)

    def add_candidates(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append the candidates of one generation."""
        append_rows(self.folder / CANDIDATES, rows)

    def replace(self, generations: Sequence[Mapping[str, Any]], candidates: Sequence[Mapping[str, Any]]) -> None:
        """Write both files from scratch."""
        for name, rows in ((CANDIDATES, candidates), (GENERATIONS, generations)):
            write_text(self.folder / name, "".join(f"{json.dumps(row)}\n" for row in rows))

    def end(self, iterations: int, archives: Mapping[str, Any]) -> None:
        """Mark the search as done."""
        write_json(self.folder / ARCHIVE, archives)
        lines = {GENERATIONS: len(read_generations(self.folder)), CANDIDATES: len(read_candidates(self.folder))}
        write_json(self.folder / ENDED, {"iterations": iterations, "ended": now(), "lines": lines})

    def reopen(self) -> None:
        """Remove the mark of a search that is to be lengthened, once its log is known to be complete."""
        if (self.folder / ENDED).is_file():
            read_generations(self.folder)
            read_candidates(self.folder)
            (self.folder / ENDED).unlink()


def has_ended(folder: Path, iterations: int) -> bool:
    """Whether a search has done so many iterations, or ended before them with nothing left to do."""
    ended: int = _read_end(folder).get("iterations", 0)
    return ended >= iterations


def _read_end(folder: Path) -> dict[str, Any]:
    """The contents of ended.json; empty for a search that has not ended."""
    path = folder / ENDED
    if not path.is_file():
        return {}
    # Earlier versions did not count the lines.
    return {"lines": {}, **read_object(path, {"iterations": int})}


def read_settings(folder: Path) -> dict[str, Any]:
    """The settings of the search in a folder, by their present names."""
    path = folder / SETTINGS
    if not path.is_file():
        raise InputError(f"{path}: the file is missing, so the search in this folder cannot be read")
    settings = read_object(path, SETTING_FIELDS)
    if not all(len(case) == 2 for case in settings["cases"]):
        raise InputError(f"{path}: the file is damaged: cases must be pairs of a problem and a goal")
    return {FORMER_NAMES.get(name, name): value for name, value in settings.items()}


def read_generations(folder: Path) -> list[dict[str, Any]]:
    """The generations of the search in a folder; raises where one is missing."""
    rows = _read(folder, GENERATIONS)
    for index, row in enumerate(rows):
        if row["number"] != index:
            where = f"{folder / GENERATIONS}:{index + 1}"
            raise InputError(f"{where}: the log is damaged: generation {index} is missing, {row['number']} is there")
    return rows


def read_candidates(folder: Path) -> list[dict[str, Any]]:
    """The candidates of the search in a folder, in the order in which they were scored."""
    return _read(folder, CANDIDATES)


def _read(folder: Path, name: str) -> list[dict[str, Any]]:
    """A log of the search in a folder; raises where it is shorter than when the search ended, or of other cases."""
    path = folder / name
    rows = read_log(path, FIELDS[name])
    end = _read_end(folder)
    expected = end["lines"].get(name, 0) if end else 0
    if len(rows) < expected:
        raise InputError(f"{path}: the log has {len(rows)} lines, and had {expected} when the search ended")
    cases = {f"{problem} {goal}" for problem, goal in read_settings(folder)["cases"]} if rows else set()
    for number, row in enumerate(rows, start=1):
        if row["case"] not in cases:
            raise InputError(f"{path}:{number}: {row['case']!r} is none of the cases of {folder / SETTINGS}")
    return rows


def _changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Names of the settings that differ, sorted."""
    names = {**before, **now}.keys() - {"scoring"}
    changed = [name for name in names if before.get(name) != now.get(name)]
    if scoring := first_difference(before.get("scoring", {}), now.get("scoring", {}), "scoring"):
        changed.append(scoring)
    return sorted(changed)


def _filter(path: Path, keep: Callable[[dict[str, Any]], bool]) -> None:
    """Rewrite a log without the rows that are not kept, and without an incomplete last line."""
    if path.is_file():
        lines = log_lines(path, FIELDS[path.name])
        text = "".join(f"{line}\n" for line, row in lines if keep(row))
        if len(text.encode()) < path.stat().st_size:
            write_text(path, text)
