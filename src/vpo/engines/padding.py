"""A `trl.GRPOTrainer` that computes little padding. Run on TRL 1.16.

    trainer = UnpaddedTrainer(model, reward_funcs=reward, args=grpo_config(reward), train_dataset=dataset)

TRL pads the prompts of a step to the longest one on the left, and its completions on the right, and shuffles the rows
into the batches of the backward passes. Here the rows of a batch have similar lengths, and each begins with its first
token, so that a batch is as wide as its longest row. Loss and gradient stay the same, up to rounding. The means over
batches that TRL logs, such as kl, weigh short rows more.
"""

from typing import Any

import torch
from trl import GRPOTrainer

# Losses in which a row counts the same in every batch; that of "bnpo" is divided by the tokens of its batch.
SORTED_LOSSES = ("grpo", "dapo", "dr_grpo")

Batch = dict[str, Any]  # tensors with a row for each rollout, or of no dimension
Results = tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]  # log-probabilities, entropies, auxiliary loss


class Unpadded:
    """Keeps a trainer from computing padding. Rows with images are left to TRL."""

    def _get_per_token_logps_and_entropies(
        self, model: Any, input_ids: torch.Tensor, attention_mask: torch.Tensor, logits_to_keep: int, **further: Any
    ) -> Results:
        """As TRL's: log-probabilities and entropies of the last columns, here 0 where these are padding."""
        compute = super()._get_per_token_logps_and_entropies  # type: ignore[misc]
        size = further.pop("batch_size", None) or len(input_ids)
        if any(isinstance(each, torch.Tensor | list) for each in further.values()):  # images, or what belongs to them
            whole: Results = compute(model, input_ids, attention_mask, logits_to_keep, size, **further)
            return whole
        parts: list[Results] = []
        for ids, mask in zip(input_ids.split(size), attention_mask.split(size), strict=True):
            rows = ShiftedRows(mask, logits_to_keep)
            logps, entropies, loss = compute(model, rows.shift(ids), rows.shift(mask), rows.kept, **further)
            parts.append((rows.restore(logps), None if entropies is None else rows.restore(entropies), loss))
        logps_BT, entropies_BT, losses = zip(*parts, strict=True)
        return (
            torch.cat(logps_BT),
            None if entropies_BT[0] is None else torch.cat(entropies_BT),
            None if losses[0] is None else torch.stack(losses).mean(),
        )

    def _prepare_inputs(self, generation_batch: Any) -> Batch:
        """As TRL's, with rows of similar lengths in a batch; each optimizer step has the rows that it would have."""
        trainer: Any = self
        sampled = trainer._buffered_inputs
        inputs: Batch = super()._prepare_inputs(generation_batch)  # type: ignore[misc]
        batches: list[Batch] = trainer._buffered_inputs
        if not trainer.model.training or batches is sampled or not self._rows_can_move():
            return inputs
        step = trainer.args.gradient_accumulation_steps
        trainer._buffered_inputs = [
            batch for start in range(0, len(batches), step) for batch in by_length(batches[start : start + step])
        ]
        result: Batch = trainer._buffered_inputs[trainer._step % len(batches)]
        return result

    def _rows_can_move(self) -> bool:
        """Whether the loss is the same however rows are divided into batches."""
        trainer: Any = self
        depends = trainer._entropy_bonus_enabled or trainer.top_entropy_quantile < 1
        return trainer.loss_type in SORTED_LOSSES and not depends


class UnpaddedTrainer(Unpadded, GRPOTrainer):  # type: ignore[misc]  # trl is untyped
    """A `trl.GRPOTrainer` that computes little padding."""


class ShiftedRows:
    """Rows of a prompt padded on the left and a completion padded on the right, shifted to begin with their tokens."""

    def __init__(self, mask: torch.Tensor, completion: int) -> None:
        """Find the columns of the tokens.

        Args:
            mask: 1 for a token, 0 for padding; rows × columns.
            completion: columns of the completions, the last ones.
        """
        self.completion = completion
        longest = max(int(mask.sum(1).max()), 1)
        # Tokens first, in their order.
        self.columns = mask.argsort(dim=1, descending=True, stable=True)[:, :longest]
        before = mask.shape[1] - completion
        #: How many of the columns hold completions: all from the end of the shortest prompt on.
        self.kept = max(longest - int(mask[:, :before].sum(1).min()), 1)
        sources = self.columns[:, -self.kept :] - before
        self._is_completion = (sources >= 0) & (self.shift(mask)[:, -self.kept :] > 0)
        self._sources = sources.clamp(min=0)

    def shift(self, values: torch.Tensor) -> torch.Tensor:
        """The values of the columns, tokens first."""
        return values.gather(1, self.columns)

    def restore(self, values: torch.Tensor) -> torch.Tensor:
        """Values of the columns that are kept, in the columns of the completions; 0 where these are padding."""
        known = values.masked_fill(~self._is_completion, 0)
        # Each column gets one value, and zeros.
        return known.new_zeros(len(known), self.completion).scatter_add(1, self._sources, known)


def by_length(batches: list[Batch]) -> list[Batch]:
    """The rows of some batches, divided into as many by their number of tokens."""
    rows = {name: _joined([batch[name] for batch in batches]) for name in batches[0]}
    lengths = rows["prompt_mask"].sum(1) + rows["completion_mask"].sum(1)
    orders = lengths.argsort(stable=True).chunk(len(batches))
    return [{name: _taken(values, order) for name, values in rows.items()} for order in orders]


def _joined(values: list[Any]) -> Any:
    first = values[0]
    if isinstance(first, torch.Tensor):
        return torch.cat(values) if first.ndim else first
    return None if first is None else [one for each in values for one in each]


def _taken(values: Any, order: torch.Tensor) -> Any:
    if isinstance(values, torch.Tensor):
        return values[order] if values.ndim else values
    return None if values is None else [values[index] for index in order.tolist()]
