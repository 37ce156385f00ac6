"""OpenEvolve: a checkpoint, `checkpoints/checkpoint_N` with a file for each program in `programs/`.

A run is one problem, and each program a generation of it, in the order of the iterations. The problem of one run is
called `program`, so that the pools of two runs compare; of a folder with several runs, each is named by its path. Every
metric is an objective but `combined_score`, which is made from the others: it is imported where it is alone, or where
`--objectives` names it. Of several checkpoints the last one is read, which has the programs that the run kept.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vpo.evaluation.importers.answers import ImportedAnswer, Notes
from vpo.evaluation.importers.source import Source, read_document
from vpo.util.errors import InputError
from vpo.util.grouping import group_by

COMBINED = "combined_score"
ONE_RUN = "program"  # as a problem: the same in every run, so that two runs compare


def files(source: Source) -> list[Path]:
    """The programs of the last checkpoint of each run."""
    if source.path.is_file():
        return []  # one program is no pool
    programs = group_by(
        (path for path in source.documents if path.parent.name == "programs"), lambda path: path.parent.absolute()
    )
    runs = group_by(programs, _run_of)
    last = [path for folders in runs.values() for path in programs[max(folders, key=_iteration)]]
    return last if last and _is_program(source.document(last[0])) else []


def read(source: Source, paths: list[Path], notes: Notes) -> Iterator[ImportedAnswer]:
    """Each program with its metrics."""
    runs = group_by(paths, lambda path: _run_of(path.parent.absolute()))
    earlier = {path.parent for path in source.documents if path.parent.name == "programs"} - {p.parent for p in paths}
    if earlier:
        notes["earlier checkpoints are left out: the last one of a run is read"] += len(earlier)
    for run, programs in runs.items():
        name = os.path.relpath(run, source.path.absolute()) if len(runs) > 1 else ONE_RUN
        for path, program in sorted(((path, _program(path)) for path in programs), key=lambda each: _order(each[1])):
            metrics = program["metrics"]
            scores = {metric: value for metric, value in metrics.items() if metric != COMBINED} or metrics
            further = {metric: value for metric, value in metrics.items() if metric not in scores}
            yield ImportedAnswer(str(path), name, scores, program["code"], generation=program["id"], further=further)


def _program(path: Path) -> Mapping[str, Any]:
    program = read_document(path)
    if not _is_program(program):
        raise InputError(f"{path}: a program must have an id, code, and metrics, name → number")
    return dict(program)


def _order(program: Mapping[str, Any]) -> tuple[int, str]:
    iteration = program.get("iteration_found")
    return iteration if isinstance(iteration, int) else 0, program["id"]


def _run_of(programs: Path) -> Path:
    """The folder of the run that a folder of programs belongs to: RUN/checkpoints/checkpoint_N/programs."""
    checkpoints = programs.parent.parent
    return checkpoints.parent if checkpoints.name == "checkpoints" else programs.parent


def _is_program(document: Any) -> bool:
    fields = document if isinstance(document, Mapping) else {}
    texts = isinstance(fields.get("id"), str) and isinstance(fields.get("code"), str)
    return texts and isinstance(fields.get("metrics"), Mapping)


def _iteration(programs: Path) -> tuple[int, str]:
    """The number of the checkpoint that a folder of programs is in."""
    number = re.fullmatch(r"checkpoint_(\d+)", programs.absolute().parent.name)
    return int(number[1]) if number else -1, str(programs)
