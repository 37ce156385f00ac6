"""A `trl.GRPOTrainer` that computes little padding, and prompts once for several completions. Run on TRL 1.16.

    trainer = UnpaddedTrainer(model, reward_funcs=reward, args=grpo_config(reward), train_dataset=dataset)

TRL pads the prompts of a step to the longest one on the left, and its completions on the right, and shuffles the rows
into the batches of the backward passes. Here the rows of a batch have similar lengths, and each begins with its first
token, so that a batch is as wide as its longest row. Where prompts are long beside their completions, the rollouts of a
prompt stay together and share it (`vpo.engines.packing`). Loss and gradient stay the same, up to rounding, where
positions are rotary; those that a model has learned, as GPT-2's, count the padding in TRL. The means over batches that
TRL logs, such as kl, entropy and clip ratios, weigh short rows more.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from trl import GRPOTrainer

from vpo.engines.packing import Cost, PackedRows, Rollouts, cost_of
from vpo.engines.prompts_once import PromptsOnce

# Losses in which a row counts the same in every batch; that of "bnpo" is divided by the tokens of its batch.
SORTED_LOSSES = ("grpo", "dapo", "dr_grpo")

KINDS = ("ids", "mask")

Batch = dict[str, Any]  # tensors with a row for each rollout, or of no dimension
Results = tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]  # log-probabilities, entropies, auxiliary loss


class Unpadded:
    """Keeps a trainer from computing padding. Rows with images, or with a prompt of an adapter, are left to TRL."""

    def _get_per_token_logps_and_entropies(
        self, model: Any, input_ids: torch.Tensor, attention_mask: torch.Tensor, logits_to_keep: int, **further: Any
    ) -> Results:
        """As TRL's: log-probabilities and entropies of the last columns, here 0 where these are padding."""
        compute = super()._get_per_token_logps_and_entropies  # type: ignore[misc]
        size = further.pop("batch_size", None) or len(input_ids)
        # Images, or what belongs to them.
        further_rows = any(isinstance(each, torch.Tensor | list) for each in further.values())
        if further_rows or self._reads_further_tokens(model):
            whole: Results = compute(model, input_ids, attention_mask, logits_to_keep, size, **further)
            return whole
        cost = None if further.get("compute_aux_loss") else self._pack_cost(model)
        parts: list[Results] = []
        for ids, mask in zip(input_ids.split(size), attention_mask.split(size), strict=True):
            rollouts = cost and Rollouts.of(ids, mask, logits_to_keep)
            most = rollouts.cheapest(cost)[1] if cost and rollouts else 1
            if rollouts and most > 1:
                packed = PackedRows(ids, logits_to_keep, rollouts, most)
                parts.append(self._compute_packs(model, packed, **further))
                continue
            rows = ShiftedRows(mask, logits_to_keep)
            logps, entropies, loss = compute(model, rows.shift(ids), rows.shift(mask), rows.kept, **further)
            parts.append((rows.restore(logps), None if entropies is None else rows.restore(entropies), loss))
        logps_BT, entropies_BT, losses = zip(*parts, strict=True)
        return (
            torch.cat(logps_BT),
            None if entropies_BT[0] is None else torch.cat(entropies_BT),
            None if losses[0] is None else torch.stack(losses).mean(),
        )

    def _compute_packs(self, model: Any, packed: PackedRows, compute_entropy: bool = False, **_: Any) -> Results:
        """As TRL computes rows."""
        trainer: Any = self
        with trainer.accelerator.autocast():
            outputs = model(
                input_ids=packed.input_ids,
                attention_mask=packed.attention_mask,
                position_ids=packed.position_ids,
                labels=packed.labels,
                fused_lm_head=True,
            )
        entropies = packed.restore(outputs.entropy) if compute_entropy else None
        return packed.restore(outputs.log_probs), entropies, None

    def _pack_cost(self, model: Any) -> Cost | None:
        """The cost of a model whose rows can be packed; None where they cannot, as with weights that are sharded."""
        trainer: Any = self
        if trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled:
            return None
        whole = trainer.accelerator.unwrap_model(model)
        return cost_of(whole.get_base_model() if hasattr(whole, "get_base_model") else whole)

    def _reads_further_tokens(self, model: Any) -> bool:
        """Whether an adapter of peft adds tokens to the input, or looks for some: prompt tuning, activated LoRA."""
        trainer: Any = self
        whole = trainer.accelerator.unwrap_model(model)
        if not hasattr(whole, "peft_config"):
            return False
        active = whole.active_adapters
        adapters = [whole.peft_config[name] for name in (active() if callable(active) else active)]
        return any(each.is_prompt_learning or getattr(each, "alora_invocation_tokens", None) for each in adapters)

    def _prepare_inputs(self, generation_batch: Any) -> Batch:
        """As TRL's, with rows of similar lengths in a batch; each optimizer step has the rows that it would have."""
        trainer: Any = self
        sampled = trainer._buffered_inputs
        inputs: Batch = super()._prepare_inputs(generation_batch)  # type: ignore[misc]
        batches: list[Batch] = trainer._buffered_inputs
        if not trainer.model.training or batches is sampled or not self._rows_can_move():
            return inputs
        step = trainer.args.gradient_accumulation_steps
        cost = self._pack_cost(trainer.model)
        trainer._buffered_inputs = [
            batch for start in range(0, len(batches), step) for batch in by_length(batches[start : start + step], cost)
        ]
        result: Batch = trainer._buffered_inputs[trainer._step % len(batches)]
        return result

    def _rows_can_move(self) -> bool:
        """Whether the loss is the same however rows are divided into batches, and these into optimizer steps."""
        trainer: Any = self
        depends = trainer._entropy_bonus_enabled or trainer.top_entropy_quantile < 1
        batches, step = trainer.args.steps_per_generation, trainer.args.gradient_accumulation_steps
        aligned = batches % step == 0 or step % batches == 0
        return trainer.loss_type in SORTED_LOSSES and not depends and aligned and not trainer._is_vlm


class UnpaddedTrainer(PromptsOnce, Unpadded, GRPOTrainer):  # type: ignore[misc]  # trl is untyped
    """A `trl.GRPOTrainer` that computes little padding, and prompts once for several completions."""


class ShiftedRows:
    """Rows of a prompt padded on the left and a completion padded on the right, shifted to begin with their tokens."""

    def __init__(self, mask: torch.Tensor, completion: int) -> None:
        """Find the columns of the tokens.

        Args:
            mask: 1 for a token, 0 for padding; rows × columns.
            completion: columns of the completions, the last ones.
        """
        self.completion = completion
        before = mask.shape[1] - completion
        needed = mask.clone()
        needed[:, before - 1] = 1  # the logits of a completion's first token, though the prompt is empty
        longest = max(int(needed.sum(1).max()), 2)
        # Tokens first, in their order.
        self.columns = needed.argsort(dim=1, descending=True, stable=True)[:, :longest]
        #: How many of the columns hold completions: all from the end of the shortest prompt on.
        self.kept = max(longest - int(needed[:, :before].sum(1).min()), 1)
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


def by_length(batches: list[Batch], cost: Cost | None = None) -> list[Batch]:
    """The rows of some batches, divided into as many by their number of tokens.

    Where packs of rollouts with the same prompt cost less, by `cost`, these stay together.
    """
    rows = {name: _joined([batch[name] for batch in batches]) for name in batches[0]}
    lengths = rows["prompt_mask"].sum(1) + rows["completion_mask"].sum(1)
    order = lengths.argsort(stable=True)
    if cost is not None:
        grouped = _by_prompt(rows, order)
        order = min(order, grouped, key=lambda each: _least_cost(rows, each.chunk(len(batches)), cost))
    return [{name: _taken(values, part) for name, values in rows.items()} for part in order.chunk(len(batches))]


def _by_prompt(rows: dict[str, Any], order: torch.Tensor) -> torch.Tensor:
    """The rows of one prompt after the other, prompts by their longest row."""
    prompts = rows["prompt_ids"].masked_fill(rows["prompt_mask"] == 0, -1)[order]
    _, names = prompts.unique(dim=0, return_inverse=True)
    # The longest row of a prompt is its last.
    last = torch.zeros_like(names).scatter_reduce(0, names, torch.arange(len(names), device=names.device), "amax")
    return order[last[names].argsort(stable=True)]


def _least_cost(rows: dict[str, Any], parts: Sequence[torch.Tensor], cost: Cost) -> float:
    """The cost of batches of some rows each, in packs or not."""
    total = 0.0
    for part in parts:
        ids, mask = (torch.cat([rows[f"prompt_{kind}"][part], rows[f"completion_{kind}"][part]], 1) for kind in KINDS)
        rollouts = Rollouts.of(ids, mask, rows["completion_ids"].shape[1])
        if rollouts is None:
            return math.inf
        total += rollouts.cheapest(cost)[0]
    return total


def _joined(values: list[Any]) -> Any:
    first = values[0]
    if isinstance(first, torch.Tensor):
        return torch.cat(values) if first.ndim else first
    return None if first is None else [one for each in values for one in each]


def _taken(values: Any, order: torch.Tensor) -> Any:
    if isinstance(values, torch.Tensor):
        return values[order] if values.ndim else values
    return None if values is None else [values[index] for index in order.tolist()]
