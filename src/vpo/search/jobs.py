"""Many searches in parallel, each in its process."""

from dataclasses import dataclass
from pathlib import Path

from vpo.search.config import SearchConfig
from vpo.search.log import has_ended
from vpo.search.run import search_into

PRELOAD = ("torch", "transformers", "vpo.search.run")  # imported once for all processes


@dataclass(frozen=True)
class SearchJob:
    """A search, as a job for `vpo.util.jobs`."""

    folder: Path
    config: SearchConfig

    @property
    def done(self) -> bool:
        """Whether all iterations are done."""
        return has_ended(self.folder, self.config.iterations)

    @property
    def length(self) -> float:
        """All searches are assumed to take equally long."""
        return 0.0

    def do(self) -> None:
        """Search."""
        search_into(self.folder, self.config)
