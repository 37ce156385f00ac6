"""What can be read of a run folder without training: `vpo.training.runs` has the whole layout."""

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CONFIG = "config.toml"
NOTES = "run.json"


@dataclass(frozen=True)
class RunFolder:
    """The folder of a run."""

    folder: Path

    @property
    def model(self) -> Path:
        """The folder of the trained model."""
        return self.folder / "model"

    @property
    def checkpoints(self) -> Path:
        """The folder of checkpoints."""
        return self.folder / "checkpoints"

    @property
    def finished(self) -> bool:
        """Whether all steps are done: the model is saved last."""
        return self.model.is_dir()

    def engine(self) -> str:
        """What trains the run, "trl" or "verl"."""
        settings = tomllib.loads((self.folder / CONFIG).read_text(encoding="utf-8"))
        return str(settings.get("engine", "trl"))

    def notes(self) -> dict[str, Any]:
        """The contents of `run.json`; empty where there is none."""
        path = self.folder / NOTES
        facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        return facts


def is_run(folder: str | Path) -> bool:
    """Whether a folder is that of a run."""
    return (Path(folder) / CONFIG).is_file()
