"""Which evaluations of a comparison are of the policy before training."""

from collections.abc import Sequence
from pathlib import Path

from vpo.evaluation.eval_folder import Evaluation
from vpo.models.run_folder import RunFolder, is_run

# Names of files and folders for it; `vpo reproduce` and `make demo` use them.
NAMES = ("base", "base_single", "untrained")


def untrained_groups(evaluations: Sequence[Sequence[Evaluation]], names: Sequence[str]) -> frozenset[int]:
    """The indices of the groups that are the model that another group's runs started from, or that are named so."""
    starts = {start for group in evaluations for each in group if (start := _start(each))}

    def is_untrained(group: Sequence[Evaluation], name: str) -> bool:
        if any(_start(each) for each in group):
            return False
        models = {_identity(str(each.facts["model"])) for each in group if "model" in each.facts}
        return name.lower() in NAMES or (bool(models) and models <= starts)

    pairs = enumerate(zip(evaluations, names, strict=True))
    return frozenset(index for index, (group, name) in pairs if is_untrained(group, name))


def _start(evaluation: Evaluation) -> str | None:
    """The model that the run of an evaluation started from; None where it is not one of a run."""
    folders = [evaluation.folder, Path(str(evaluation.facts.get("model", "")) or ".")]
    run = next((folder for folder in folders if folder and folder != Path() and is_run(folder)), None)
    return None if run is None else _identity(str(RunFolder(run).settings().get("model", "")))


def _identity(model: str) -> str:
    """The same for two paths of one folder; a name on the hub as it is."""
    path = Path(model)
    return str(path.resolve()) if path.exists() else model
