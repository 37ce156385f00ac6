"""What can be read of a run folder without training: `vpo.training.runs` has the whole layout."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vpo.util.errors import InputError
from vpo.util.stored import read_object, read_toml

CONFIG = "config.toml"
NOTES = "run.json"
METRICS = "metrics.jsonl"
# Of a complete config.toml. A shorter one would be valid TOML too, with other settings.
FIRST_LINE, LAST_LINE = "# The settings of a run, up to the line `# end`.\n", "# end\n"


@dataclass(frozen=True)
class RunFolder:
    """The folder of a run."""

    folder: Path

    @property
    def model(self) -> Path:
        """The folder of the trained model."""
        return self.folder / "model"

    @property
    def adapter(self) -> Path:
        """The folder of the trained LoRA adapter alone, which `model` has merged into its base model."""
        return self.folder / "adapter"

    @property
    def best(self) -> Path:
        """The folder of the best model so far by the evaluations of the run, a whole model or an adapter."""
        return self.folder / "best"

    @property
    def checkpoints(self) -> Path:
        """The folder of checkpoints."""
        return self.folder / "checkpoints"

    @property
    def finished(self) -> bool:
        """Whether all steps are done: the model is saved last."""
        return self.model.is_dir()

    @property
    def trained(self) -> bool:
        """Whether all steps are done: with an adapter, the whole model may have been left behind."""
        return self.finished or self.adapter.is_dir()

    def settings(self) -> dict[str, Any]:
        """The contents of `config.toml`; raises where its end is missing."""
        path = self.folder / CONFIG
        settings, text = read_toml(path)
        # Earlier versions wrote no marks; their last table was `trainer`.
        complete = text.endswith(LAST_LINE) if text.startswith(FIRST_LINE) else "trainer" in settings
        if not complete:
            raise InputError(f"{path}: the file is damaged: its end is missing")
        return settings

    def engine(self) -> str:
        """What trains the run, "trl" or "verl"."""
        return str(self.settings().get("engine", "trl"))

    def notes(self) -> dict[str, Any]:
        """The contents of `run.json`, which the first step comes after; empty where no step is done."""
        path = self.folder / NOTES
        if not path.exists() and not ((self.folder / CONFIG).exists() and (self.folder / METRICS).exists()):
            return {}
        notes = read_object(path)
        if not notes:
            raise InputError(f"{path}: the file is damaged: it holds nothing")
        return notes


def is_run(folder: str | Path) -> bool:
    """Whether a folder is that of a run; raises for one that has lost its settings."""
    path = Path(folder) / CONFIG
    if not path.is_file() and (Path(folder) / NOTES).is_file():
        raise InputError(f"{path}: the file is missing from this run")
    return path.is_file()
