"""The folder of a search: everything that was generated and scored, from which a search can be resumed at any point.

=======================  ===========================================================================================
``search.json``          the settings; another search needs another folder
``generations.jsonl``    a line for each generation: iteration, case, operator, parent, completion, tokens
``candidates.jsonl``     a line for each answer: its number, operator, parent, scores and value, or a failure
``archive.json``         at the end: for each case the best candidate, and the non-dominated ones
``ended.json``           at the end: how many iterations were done
=======================  ===========================================================================================

A case is a problem with one goal. The generations of an iteration are written together, before any is scored, and the
candidates of a generation as soon as it is scored. So no completion is requested twice and no answer scored twice.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from vpo.util.errors import InputError
from vpo.util.files import append_rows, complete_lines, read_log, write_json, write_text
from vpo.util.grouping import group_by
from vpo.util.records import first_difference, now

SETTINGS, GENERATIONS, CANDIDATES = "search.json", "generations.jsonl", "candidates.jsonl"
ARCHIVE, ENDED = "archive.json", "ended.json"
FORMER_NAMES = {  # in search.json
    "count": "problems",
    "backend": "generator",
    "size": "population",
    "tokens_per_answer": "max_tokens",
}


class Log:
    """The folder of one search."""

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        """Write the settings; raise where the folder holds a search with other settings."""
        self.folder = folder
        settings = json.loads(json.dumps(settings))
        started = (folder / SETTINGS).is_file() and (folder / GENERATIONS).is_file()
        if started and (changed := _changed(read_settings(folder), settings)):
            raise InputError(
                f"{folder} holds another search (it differs in {', '.join(changed)}): choose another folder with --out"
            )
        write_json(folder / SETTINGS, settings)

    def read(self) -> tuple[list[dict[str, Any]], dict[int, list[dict[str, Any]]]]:
        """The generations of complete iterations, and the candidates of each scored generation by its number.

        What was left incomplete, by a kill for example, is removed from the files.
        """
        generations = read_log(self.folder / GENERATIONS)
        complete = len(generations)
        while complete and generations[complete - 1]["place"] + 1 < generations[complete - 1]["of"]:
            complete -= 1  # of an iteration whose last generations are missing
        candidates = group_by(read_log(self.folder / CANDIDATES), lambda row: row["generation"])
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
        write_json(self.folder / ENDED, {"iterations": iterations, "ended": now()})


def has_ended(folder: Path, iterations: int) -> bool:
    """Whether a search has done so many iterations, or ended before them with nothing left to do."""
    path = folder / ENDED
    return path.is_file() and json.loads(path.read_text(encoding="utf-8"))["iterations"] >= iterations


def read_settings(folder: Path) -> dict[str, Any]:
    """The settings of the search in a folder, by their present names."""
    path = folder / SETTINGS
    if not path.is_file():
        raise InputError(f"{folder} holds no search")
    settings: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return {FORMER_NAMES.get(name, name): value for name, value in settings.items()}


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
        text = "".join(f"{line}\n" for line in complete_lines(path) if keep(json.loads(line)))
        if len(text.encode()) < path.stat().st_size:
            write_text(path, text)
