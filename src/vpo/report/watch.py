"""The state of a run while it is trained, read from its folder, and a page that shows it."""

import base64
import hashlib
import html
import json
import shlex
import time
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from vpo.methods import METHODS
from vpo.models.run_folder import CONFIG, METRICS, RunFolder
from vpo.report.embedding import assets, script_json
from vpo.report.watch_curves import EvaluationTable, StepTable, number
from vpo.report.watch_logs import LogTail
from vpo.training.runs import Run
from vpo.util.errors import InputError
from vpo.util.files import is_locked, storable

# What the page shares with that of comparisons.
STYLES, SCRIPTS = ("palette.css",), ("dom.js", "ticks.js")
ROLLOUTS = 16  # shown
LONGEST = 20_000  # characters of a text that is shown
ROLLOUT_BYTES = 8 * 2**20  # of the log of rollouts that are read at once
QUIET = 60.0  # seconds without a step, or five steps, after which a run that nobody here has locked counts as stopped


class RunWatch:
    """A run folder that is being written. `state` reads what is new.

    Attributes:
        newest: the rollouts of the newest step.
        locked: whether a process of this machine was ever seen to train the run.
    """

    def __init__(self, folder: Path) -> None:
        """Set the folder; raises where it is not the folder of a run."""
        if not folder.exists():
            raise InputError(f"no such run: {folder}")
        if not any((folder / name).is_file() for name in (CONFIG, METRICS)):
            raise InputError(f"{folder} is not the folder of a run: it has neither {CONFIG} nor {METRICS}")
        self.run = Run(folder)
        self.settings: Mapping[str, Any] = RunFolder(folder).settings() if (folder / CONFIG).is_file() else {}
        self.metrics, self.rollouts = LogTail(self.run.metrics), LogTail(self.run.rollouts, ROLLOUT_BYTES)
        self.evaluations = LogTail(self.run.evaluations)
        self.steps, self.evaluated = StepTable(), EvaluationTable()
        self.newest: list[dict[str, Any]] = []
        self.locked = False

    def state(self) -> dict[str, Any]:
        """The state of the run now, as JSON-like data."""
        self._read()
        notes, unread = self._notes()
        status, text = self._status(notes)
        step, steps, seconds = self.steps.last, self._count("steps"), self.steps.seconds()
        rollouts = (self._count("prompts_per_step") or 0) * (self._count("group") or 0)
        return {
            "name": self.run.folder.absolute().name,
            "subtitle": self._subtitle(),
            "status": status,
            "status_text": text,
            "step": step,
            "steps": steps,
            "seconds_per_step": seconds,
            "seconds_left": seconds * (steps - step) if status == "training" and seconds and steps else None,
            "tokens_per_second": self.steps.tokens_per_second(rollouts),
            "written": self.metrics.written,
            "resumed": len(_list(notes.get("resumed"))),
            **{name: _text(notes[name]) if notes.get(name) else None for name in ("began", "ended", "command")},
            "best": self.evaluated.largest(str(self.settings.get("keep_best", ""))),
            "panels": [*self.evaluated.panels(), *self._training_panels()],
            "rollouts": [_shown(row) for row in self.newest],
            "notes": [*unread, *self._damage()],
        }

    def _read(self) -> None:
        anew, rows = self.metrics.read()
        if anew:
            self.steps = StepTable()
        for row in rows:
            # verl's logger of files has the metrics in a table of their own.
            self.steps.add({**row["data"], "step": row["step"]} if isinstance(row.get("data"), dict) else row)
        anew, rows = self.evaluations.read()
        if anew:
            self.evaluated = EvaluationTable()
        for row in rows:
            self.evaluated.add(row)
        anew, rows = self.rollouts.read()
        if anew:
            self.newest = []
        for row in rows:
            if self.newest and self.newest[-1]["step"] != row["step"]:
                self.newest = []
            if len(self.newest) < ROLLOUTS:
                self.newest.append(row)

    def _notes(self) -> tuple[dict[str, Any], list[str]]:
        """What `run.json` says, and a note where it cannot be read."""
        try:
            return self.run.notes(), []
        except InputError as error:  # a view of a damaged run is better than none
            return {}, [str(error)]

    def _damage(self) -> list[str]:
        logs = [log for log in (self.metrics, self.rollouts, self.evaluations) if log.damaged]
        return [f"{log.path.name}: {log.damaged} damaged lines are skipped" for log in logs]

    def _status(self, notes: Mapping[str, Any]) -> tuple[str, str]:
        if not self.run.folder.exists():
            return "gone", "The folder was removed: a run that fails before its first step leaves none."
        if self.run.finished or notes.get("code") == 0:
            return "finished", f"Next: vpo eval {shlex.quote(str(self.run.folder))}"
        if is_locked(self.run.folder):
            self.locked = True
            return ("training", "") if self.steps.last else ("starting", "The first step is not done yet.")
        quiet = max(QUIET, 5 * (self.steps.seconds() or 0))
        written = max(
            filter(None, (self.metrics.written, self.rollouts.written, self.evaluations.written)), default=0.0
        )
        if not self.locked and time.time() - written < quiet:  # it may be trained on another machine
            return ("training", "") if self.steps.last else ("starting", "The first step is not done yet.")
        resume = f"vpo train --resume {shlex.quote(str(self.run.folder))}"
        ended = f"verl ended with code {notes['code']}" if notes.get("code") else "No process trains this run"
        return "stopped", f"{ended}; continue with: {resume}"

    def _training_panels(self) -> list[dict[str, Any]]:
        """The curves of training, without the reward of methods that return advantages: its mean is 0 at every step."""
        method = METHODS.get(str(self.settings.get("method")))
        centred = method is not None and method.whole_group
        return [panel for panel in self.steps.panels() if not (centred and panel["title"] == "reward")]

    def _count(self, name: str) -> int | None:
        """A setting that is a number above 0; None where it is missing or anything else."""
        value = number(self.settings.get(name))
        return int(value) if value and value >= 1 else None

    def _subtitle(self) -> str:
        names = [self.settings.get(name) for name in ("task", "method", "model")]
        return ", ".join(str(name) for name in names if name)


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    """A rollout as it is shown: texts shortened, and of any log that has the names, whatever it has under them."""
    prompt, problem = row.get("prompt"), row.get("problem")
    return {
        "step": row["step"],
        "problem": None if problem is None else _text(problem),
        "prompt": [_turn(each) for each in (prompt if isinstance(prompt, list) else [prompt])],
        "completion": _text(row.get("completion")),
        "answers": [None if each is None else _text(each) for each in _list(row.get("answers"))],
        "objectives": [_text(each) for each in _list(row.get("objectives"))],
        "vectors": [[number(each) for each in _list(vector)] for vector in _list(row.get("vectors"))],
        "reward": number(row.get("reward")),
    }


def _turn(turn: Any) -> dict[str, str]:
    named = turn if isinstance(turn, dict) else {"content": turn}
    return {"role": _text(named.get("role")), "content": _text(named.get("content"))}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
    more = len(text) - LONGEST
    return text if more <= 0 else f"{text[:LONGEST]} … and {more:,} more characters"


def page(state: Mapping[str, Any], *, live: bool) -> str:
    """The page with a state inside; a live one asks its server for the next states."""
    style, script = assets(STYLES) + _part("watch.css"), '"use strict";\n' + assets(SCRIPTS) + _part("watch.js")
    return Template(_part("watch.html")).substitute(
        title=html.escape(storable(str(state["name"]))),
        style=style,
        script=script,
        data=script_json({**state, "live": live}),
        policy=f"default-src 'none'; connect-src 'self'; style-src {_hash(style)}; script-src {_hash(script)}",
    )


def _part(name: str) -> str:
    return (files("vpo.report") / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """The source of a script or style that the page may use: whatever else gets into it does not run."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
