"""Writing models of a run: the trained one, and the best one so far."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from vpo.models.adapters import BaseModel
from vpo.models.model_files import check_adapter_files
from vpo.training.card import write_card
from vpo.training.prepare import PreparedRun
from vpo.training.runs import Run
from vpo.util.files import new_folder
from vpo.util.processes import is_main, together
from vpo.util.records import now

if TYPE_CHECKING:
    from trl import GRPOTrainer


def base_model(prepared: PreparedRun) -> BaseModel | None:
    """What an adapter of the run records of its base model; None where all weights are trained."""
    if not prepared.config.lora:
        return None
    return BaseModel.of(prepared.policy.path, prepared.weights_precision, prepared.weights)


def save_trained(run: Run, prepared: PreparedRun, trainer: "GRPOTrainer") -> None:
    """Write the trained model, which makes the run finished. All processes must call it."""
    from vpo.training.trl_trainer import full_weights

    weights = full_weights(trainer)
    with together():
        if not is_main():
            return
        model = trainer.accelerator.unwrap_model(trainer.model)
        if prepared.config.lora:
            with new_folder(run.adapter) as folder:
                save_current(folder, run.adapter, prepared, model, prepared.config.steps)
            model = model.merge_and_unload()
        _save_whole(run, prepared, model, weights)


def save_merged(run: Run, prepared: PreparedRun) -> None:
    """Write the trained model of a run that has its adapter and not the model: it was killed, or copied without."""
    from peft import PeftModel

    check_adapter_files(run.adapter)
    with together():
        if is_main():
            model = PeftModel.from_pretrained(prepared.policy.model, str(run.adapter)).merge_and_unload()
            _save_whole(run, prepared, model, None)


def _save_whole(run: Run, prepared: PreparedRun, model: Any, weights: dict[str, Any] | None) -> None:
    with new_folder(run.model) as folder:
        model.save_pretrained(folder, state_dict=weights)
        _save_rest(folder, prepared, prepared.config.steps)
    run.note({"ended": now()})


def save_current(folder: Path, final: Path, prepared: PreparedRun, model: Any, steps: int) -> None:
    """Write the model as it stands after some steps; of a LoRA run the adapter alone, since merging changes weights.

    Args:
        folder: to write to.
        final: the name that the folder will have.
        prepared: the run.
        model: of the trainer, unwrapped.
        steps: that are done.
    """
    base = base_model(prepared)
    if base is None:
        model.save_pretrained(folder)
    else:
        model.save_pretrained(folder, save_embedding_layers=False)  # else peft asks the hub about the vocabulary
        base.save(folder, final=final)
    _save_rest(folder, prepared, steps)


def _save_rest(folder: Path, prepared: PreparedRun, steps: int) -> None:
    prepared.policy.tokenizer.save_pretrained(folder)
    prepared.format.save(folder)
    write_card(folder, prepared.config, prepared.format, steps)
