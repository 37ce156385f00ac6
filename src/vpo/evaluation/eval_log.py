"""The log of an evaluation under way, in the folder ``eval.partial``: what was sampled and scored so far.

=====================  ===============================================================================================
``settings.json``      what the completions and their scores follow from, and the command
``completions.jsonl``  a line for each sampled batch: index, text and tokens of each completion
``scored.jsonl``       a line for each scored batch: the rows and counts of each completion
=====================  ===============================================================================================

A line is written when its batch is done, and is on the disk before the next batch begins. Reading stops at the first
line that is cut off or damaged; what follows it is sampled or scored again, with the same result.
"""

import json
import os
import shutil
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from vpo.evaluation.scored import ScoredCompletion
from vpo.models.generate import Completion
from vpo.util.errors import InputError
from vpo.util.files import append_rows, write_json
from vpo.util.records import command_line, first_difference

PARTIAL = "eval.partial"

T = TypeVar("T")


class EvalLog:
    """The log in the folder of an evaluation."""

    def __init__(self, folder: Path) -> None:
        """The log need not exist."""
        self.evaluation, self.folder = folder, folder / PARTIAL
        self._settings = self.folder / "settings.json"
        self._completions = self.folder / "completions.jsonl"
        self._scored = self.folder / "scored.jsonl"

    @property
    def started(self) -> bool:
        """Whether there is something to continue."""
        return self._settings.is_file() and self._completions.is_file()

    def command(self) -> str | None:
        """The command of the evaluation under way; None where there is none to continue."""
        return str(self._read_settings()["command"]) if self.started else None

    def check(self, sampling: Mapping[str, Any]) -> None:
        """Refuse to continue what was sampled with other settings; `sampling` may be a part of them."""
        if not self.started:
            return
        before = self._read_settings()
        if changed := [name for name, value in _as_json(sampling).items() if before["sampling"].get(name) != value]:
            raise InputError(
                f"{self.evaluation} holds an unfinished evaluation with other settings (it differs in "
                f"{', '.join(changed)}): finish it with `{before['command']}`, choose another folder with --out, or "
                "discard it with --overwrite"
            )

    def start(self, sampling: Mapping[str, Any], scoring: Mapping[str, Any], *, overwrite: bool) -> None:
        """Begin the log, or continue it.

        Args:
            sampling: what the completions follow from; refused where it has changed.
            scoring: what else their scores follow from; where it has changed, all is scored again.
            overwrite: discard what was sampled with other settings, instead of refusing it.
        """
        try:
            self.check(sampling)
        except InputError:
            if not overwrite:
                raise
            self.discard()
        if self.started:
            if changed := first_difference(self._read_settings()["scoring"], _as_json(scoring)):
                warnings.warn(
                    f"{self.evaluation}: all completions are scored again, since the scoring has changed: {changed}",
                    stacklevel=2,
                )
                self.forget_scores()
        else:
            self.discard()
            self.folder.mkdir()
        settings = {"command": command_line(), "sampling": _as_json(sampling), "scoring": _as_json(scoring)}
        write_json(self._settings, settings)

    def discard(self) -> None:
        """Remove the log."""
        if self.folder.is_dir():
            self._settings.unlink(missing_ok=True)  # first, so that a half-removed log does not count
            shutil.rmtree(self.folder)

    def forget_scores(self) -> None:
        """Remove the scores and keep the completions."""
        self._scored.unlink(missing_ok=True)

    def completions(self) -> list[dict[int, Completion]]:
        """The completions of each sampled batch, by their index."""

        def parse(rows: Any) -> dict[int, Completion]:
            return {
                int(index): Completion(str(text), None if tokens is None else int(tokens))
                for index, text, tokens in rows
            }

        return _read(self._completions, parse)

    def add_completions(self, batch: Mapping[int, Completion]) -> None:
        """Append a sampled batch."""
        append_rows(self._completions, [[[index, each.text, each.tokens] for index, each in batch.items()]], sync=True)

    def scored(self) -> list[list[ScoredCompletion]]:
        """The completions of each scored batch."""

        def parse(rows: Any) -> list[ScoredCompletion]:
            return [ScoredCompletion(**{**row, "rows": tuple(row["rows"])}) for row in rows]

        return _read(self._scored, parse)

    def add_scored(self, batch: Sequence[ScoredCompletion]) -> None:
        """Append a scored batch."""
        append_rows(self._scored, [[asdict(each) for each in batch]], sync=True)

    def _read_settings(self) -> dict[str, Any]:
        try:
            settings = json.loads(self._settings.read_bytes())
            if {"command", "sampling", "scoring"} <= settings.keys():
                return dict(settings)
        except (ValueError, AttributeError):
            pass
        raise InputError(f"{self._settings}: the file is damaged: discard the evaluation with --overwrite")


def _read(path: Path, parse: Callable[[Any], T]) -> list[T]:
    """The batches of a log up to the first line that is cut off or damaged; the rest is removed from the file."""
    lines = path.read_bytes().split(b"\n")[:-1] if path.is_file() else []
    batches: list[T] = []
    size = 0
    for line in lines:
        try:
            batches.append(parse(json.loads(line)))
        except (ValueError, TypeError, KeyError):
            break
        size += len(line) + 1
    if path.is_file() and size < path.stat().st_size:
        os.truncate(path, size)
    return batches


def _as_json(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as they are after they were written and read."""
    return dict(json.loads(json.dumps(settings)))
