"""The folder of a search: what was asked and what came of it, written so that a search can be taken up anywhere.

=======================  ===========================================================================================
``search.json``          the settings; another search needs another folder
``generations.jsonl``    a line a generation: iteration, case, operator, parent, completion, tokens
``candidates.jsonl``     a line an answer: its number in the case, operator, parent, scores and value, or a failure
``archive.json``         once it went through its iterations: of each case the best candidate, and those not dominated
``ended.json``           likewise: how many iterations those were
=======================  ===========================================================================================

The generations of an iteration are written at once, before any is scored, and the candidates of a generation as soon
as it is scored. So what was scored is never scored again, and a generation that was written is not asked for again.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vpo.util.errors import InputError
from vpo.util.files import append_rows, complete_lines, first_difference, write_json, write_text

SETTINGS, GENERATIONS, CANDIDATES = "search.json", "generations.jsonl", "candidates.jsonl"


class Log:
    """The folder of one search."""

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        """Take a folder; refuse that of a search with other settings that has begun."""
        self.folder = folder
        path = folder / SETTINGS
        wanted = json.loads(json.dumps(settings))
        if path.is_file() and (folder / GENERATIONS).is_file():
            known = json.loads(path.read_text(encoding="utf-8"))
            names = {**known, **wanted}.keys() - {"scoring"}
            changed = [name for name in names if known.get(name) != wanted.get(name)]
            if scored := first_difference(known.get("scoring", {}), wanted.get("scoring", {}), "scoring"):
                changed.append(scored)
            if changed:
                raise InputError(
                    f"{folder}: there is another search in it already (it differs in {', '.join(sorted(changed))}): "
                    "choose another folder with --out"
                )
        write_json(path, wanted)

    def read(self) -> tuple[list[dict[str, Any]], dict[int, list[dict[str, Any]]]]:
        """Return the generations, and the candidates of each, after cutting off what was left half written."""
        generations = read_rows(self.folder / GENERATIONS)
        whole = len(generations)
        while whole and generations[whole - 1]["place"] + 1 < generations[whole - 1]["of"]:
            whole -= 1  # of an iteration that was not all written
        candidates = rows_by(self.folder / CANDIDATES, "generation")
        kept = {number: rows for number, rows in candidates.items() if number < whole and len(rows) == rows[0]["of"]}
        _keep(self.folder / GENERATIONS, lambda row: row["number"] < whole)
        _keep(self.folder / CANDIDATES, lambda row: row["generation"] in kept)
        return generations[:whole], kept

    def add_generations(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write the generations of an iteration."""
        append_rows(self.folder / GENERATIONS, rows)

    def add_candidates(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write the candidates of one generation, or of several."""
        append_rows(self.folder / CANDIDATES, rows)

    def replace(self, generations: Sequence[Mapping[str, Any]], candidates: Sequence[Mapping[str, Any]]) -> None:
        """Write both logs anew."""
        for name, rows in ((CANDIDATES, candidates), (GENERATIONS, generations)):
            write_text(self.folder / name, "".join(f"{json.dumps(row)}\n" for row in rows))


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the whole lines of a log."""
    return [json.loads(line) for line in complete_lines(path)]


def rows_by(path: Path, name: str) -> dict[Any, list[dict[str, Any]]]:
    """Return the whole lines of a log, gathered by one of their fields."""
    found: dict[Any, list[dict[str, Any]]] = {}
    for row in read_rows(path):
        found.setdefault(row[name], []).append(row)
    return found


def _keep(path: Path, wanted: Any) -> None:
    """Write a log anew without the lines that are not wanted, and without what was left of a last one."""
    if path.is_file():
        text = "".join(f"{line}\n" for line in complete_lines(path) if wanted(json.loads(line)))
        if len(text.encode()) < path.stat().st_size:
            write_text(path, text)
