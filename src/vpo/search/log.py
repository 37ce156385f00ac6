"""The folder of a search: what was asked and what came of it, written so that a search can be taken up anywhere.

=======================  ===========================================================================================
``search.json``          the settings; another search needs another folder
``generations.jsonl``    a line a generation: iteration, case, operator, parent, completion, tokens
``candidates.jsonl``     a line an answer: its generation, its scores and its value, or why it has none
=======================  ===========================================================================================

The generations of an iteration are written at once, before any is scored, and candidates as they are scored. So what
was scored is never scored again, and a generation that was written is not asked for again.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vpo.errors import InputError
from vpo.files import append_rows, write_json, write_text

SETTINGS, GENERATIONS, CANDIDATES = "search.json", "generations.jsonl", "candidates.jsonl"


class Log:
    """The folder of one search."""

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        """Make the folder, or open it; refuse one of a search with other settings."""
        self.folder = folder
        path = folder / SETTINGS
        text = json.loads(json.dumps(settings))
        if path.is_file():
            known = json.loads(path.read_text(encoding="utf-8"))
            changed = [name for name in {**known, **text} if known.get(name) != text.get(name)]
            if changed:
                raise InputError(
                    f"{folder}: there is another search in it already (it differs in {', '.join(sorted(changed))}): "
                    "choose another folder with --out"
                )
        folder.mkdir(parents=True, exist_ok=True)
        write_json(path, text)

    def read(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return the whole lines of both logs, after cutting off what a process that was killed left half done."""
        generations = self._whole(GENERATIONS)
        while generations and generations[-1]["place"] + 1 < generations[-1]["of"]:
            generations.pop()  # of an iteration that was not all written
        candidates = [row for row in self._whole(CANDIDATES) if row["generation"] < len(generations)]
        for name, rows in ((GENERATIONS, generations), (CANDIDATES, candidates)):
            if (self.folder / name).is_file():
                write_text(self.folder / name, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
        return generations, candidates

    def add_generations(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write the generations of an iteration."""
        append_rows(self.folder / GENERATIONS, rows)

    def add_candidates(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write the candidates of one generation."""
        append_rows(self.folder / CANDIDATES, rows)

    def _whole(self, name: str) -> list[dict[str, Any]]:
        path = self.folder / name
        if not path.is_file():
            return []
        *lines, _ = path.read_text(encoding="utf-8").split("\n")
        return [json.loads(line) for line in lines]
