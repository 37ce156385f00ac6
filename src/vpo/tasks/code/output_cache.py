"""A cache of what solutions return, in the user's cache folder.

There is a file for each problem, named by a hash of all that its outputs follow from: the solution and its inputs, the
sandbox with its limits, and Python.
"""

import gzip
import hashlib
import json
import sys
import zlib
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vpo.sandbox.inside.values import UnpackError, pack, unpack
from vpo.sandbox.verdicts import Output, Status, Verdict
from vpo.tasks.code.problem import Draft
from vpo.util.caches import cache_folder, read_cached, write_cached

if TYPE_CHECKING:
    from vpo.sandbox import Sandbox

# Reasons of failures that follow from the program and its limits alone. A "timeout" depends on the machine; so does
# "memory", but for the error that Python raises at the limit of the address space.
REPEATABLE = ("exception", "forbidden", "wrong answer")


class OutputCache:
    """Keeps the outputs of solutions, one list a draft: an `Output` for each check."""

    def __init__(self, sandbox: "Sandbox") -> None:
        """Nothing is read or made yet. The sandbox is the one that runs the solutions."""
        self.folder = cache_folder("expected_outputs")
        self.settings = [_judge(), sys.version, sandbox.isolation.name, asdict(sandbox.limits)]

    def read(self, draft: Draft) -> list[Output] | None:
        """The outputs of a draft; None where they are not kept, or damaged."""
        path = self._path(draft)
        data = None if path is None else read_cached(path)
        if data is None:
            return None
        try:
            outputs = [_read(each) for each in json.loads(gzip.decompress(data))]
        except (OSError, EOFError, zlib.error, ValueError, TypeError, RecursionError, UnpackError):
            return None
        return outputs if len(outputs) == len(draft.checks) else None

    def write(self, draft: Draft, outputs: Sequence[Output]) -> None:
        """Keep the outputs of a draft, unless some may differ on another machine."""
        path = self._path(draft)
        if path is not None and all(each.failure is None or _is_repeatable(each.failure) for each in outputs):
            write_cached(path, gzip.compress(json.dumps(list(map(_written, outputs))).encode(), 5, mtime=0))

    def _path(self, draft: Draft) -> Path | None:
        try:
            calls = [[check.wrapper, _ordered(pack(check.case.input))] for check in draft.checks]
        except RecursionError:  # nested deeper than is packed
            return None
        content = json.dumps([self.settings, draft.solution, draft.entry, calls])
        return self.folder and self.folder / f"{hashlib.sha256(content.encode()).hexdigest()}.json.gz"


@cache
def _judge() -> str:
    """A hash of the sources of the sandbox."""
    folder = Path(sys.modules[Verdict.__module__].__file__ or "").parent
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(f"{path.relative_to(folder)} {path.stat().st_size}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def _is_repeatable(failure: Verdict) -> bool:
    at_limit = failure.reason == "memory" and failure.detail.startswith("MemoryError")
    return failure.status is Status.FAILED and (failure.reason in REPEATABLE or at_limit)


def _written(output: Output) -> dict[str, Any]:
    if output.failure is None:
        return {"value": pack(output.value)}
    return {"reason": output.failure.reason, "detail": output.failure.detail}


def _read(output: dict[str, Any]) -> Output:
    """What `_written` was given; raises for anything else."""
    match output:
        case {"value": value}:
            return Output(unpack(value))
        case {"reason": str(reason), "detail": str(detail)}:
            return Output(failure=Verdict(Status.FAILED, reason, detail))
    raise ValueError("this is no output")


def _ordered(packed: Any) -> Any:
    """A packed value with its sets sorted; they have another order in every process."""
    if isinstance(packed, list):
        return [_ordered(each) for each in packed]
    if isinstance(packed, dict):
        ((tag, content),) = packed.items()
        return {tag: sorted(_ordered(content), key=json.dumps) if tag in "sf" else _ordered(content)}
    return packed
