"""A line on standard error where a command takes seconds to import what it needs."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from threading import Timer
from types import ModuleType

from vpo.util import progress

HEAVY = ("torch", "transformers", "trl", "datasets", "vllm", "openevolve", "matplotlib")


@contextmanager
def announced_imports() -> Iterator[None]:
    """Say within the block that a heavy package is being imported, where that and what follows takes a second."""
    finder = _HeavyImports()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        finder.over = True
        if finder.timer:
            finder.timer.cancel()


class _HeavyImports(MetaPathFinder):
    """Is asked for each module first, finds none, and notes when the import of a heavy package begins."""

    def __init__(self) -> None:
        self.timer: Timer | None = None
        self.over = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if self.timer is None and fullname in HEAVY:
            self._wait(fullname)
        return None

    def _wait(self, name: str) -> None:
        self.timer = progress.later(progress.WAIT_SECONDS, lambda: self._say(name))

    def _say(self, name: str) -> None:
        if self.over:  # the block ended while this was about to be called
            return
        if name in sys.modules:
            progress.say(f"vpo: importing {name} …")
        else:  # it is still searched for, or somebody only looked whether it is installed
            self._wait(name)
