"""Prompts that are computed once for several of their completions, in forward passes with or without gradients.

A trainer computes the prompt of a group once for each of its rollouts. Here several rollouts of one prompt are one row,
a pack: the prompt without its last token, then for each rollout that last token and the completion.

    p_1 … p_{L−1}   p_L c_1 … c_n   p_L c'_1 … c'_n'   …

Tokens attend to the prompt and to their own rollout alone, at the positions that they would have in a row of their
own, so log-probabilities and gradients are the same, up to rounding. Attention within a pack computes pairs of tokens
that are then masked, so how many rollouts a pack has follows from the lengths and from the shape of the model.

Shapes: B rollouts, C columns of completions, N packs of W tokens.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch

from vpo.core.types import Array
from vpo.models import transformers_private
from vpo.models.decoding import shares_prompts
from vpo.models.trials import evaluating, same_up_to_rounding

IGNORED = -100  # the label of a token that is not scored
# What a pair of tokens costs beside a weight: attention runs at about half of the speed of large matrix products.
PAIR_OVERHEAD = 2


@dataclass(frozen=True)
class Cost:
    """Operations of a forward pass.

    Attributes:
        token: of the layers' weights, for each token.
        pair: of attention, for each pair of tokens of a row.
    """

    token: float
    pair: float

    def of(self, lengths: list[int]) -> float:
        """That of a batch with rows of these lengths, padded to the longest."""
        longest = max(lengths)
        return len(lengths) * (longest * self.token + longest**2 * self.pair)


_costs: WeakKeyDictionary[Any, Cost | None] = WeakKeyDictionary()


def cost_of(model: Any) -> Cost | None:
    """The cost of a model that can compute packs; None for one that cannot.

    Its layers must attend to all tokens in the usual way, by PyTorch's `scaled_dot_product_attention`; a pack is tried.
    """
    if model not in _costs:
        can_pack = transformers_private.attends_by_sdpa(model) and shares_prompts(model) and _packs_are_rows(model)
        _costs[model] = _cost(model) if can_pack else None
    return _costs[model]


def _packs_are_rows(model: Any) -> bool:
    """Whether two completions of a prompt have the same logits in a pack as in rows, up to rounding."""
    ids = torch.tensor([[1, 2, 3, 4, 5], [1, 2, 3, 6, 7]], device=model.device)
    pack = PackedRows(ids, 2, Rollouts([3, 3], [2, 2], 3, [2]), 2)
    try:
        with evaluating(model):
            rows = model(ids).logits
            packed = model(
                pack.input_ids, attention_mask=pack.attention_mask, position_ids=pack.position_ids, use_cache=False
            ).logits
    except Exception:  # whatever an architecture raises that takes no positions or no mask of this shape
        return False
    scored = pack.labels[0] != IGNORED
    return same_up_to_rounding(packed[0, scored], rows[:, -2:].flatten(0, 1))


def _cost(model: Any) -> Cost:
    config = model.config.get_text_config()
    heads = config.num_attention_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // heads
    embeddings = {
        id(each): each.weight.numel() for each in (model.get_input_embeddings(), model.get_output_embeddings())
    }
    weights = sum(each.numel() for each in model.parameters()) - sum(embeddings.values())
    return Cost(token=2 * max(weights, 1), pair=4 * PAIR_OVERHEAD * config.num_hidden_layers * heads * width)


@dataclass(frozen=True)
class Rollouts:
    """The rollouts of a batch: prompts padded on the left, completions on the right.

    Attributes:
        prompts: tokens of each one's prompt.
        completions: tokens of each one's completion.
        first: the columns of prompts, so the index of the column where completions start.
        runs: how many neighbours have the same prompt, run by run.
    """

    prompts: list[int]
    completions: list[int]
    first: int
    runs: list[int]

    @classmethod
    def of(cls, ids: torch.Tensor, mask: torch.Tensor, columns: int) -> "Rollouts | None":
        """Read a batch, B × tokens, whose last columns are completions; None where a prompt or a mask is unusual."""
        ids_BT, mask_BT = ids.cpu().numpy(), mask.cpu().numpy() > 0
        first = ids_BT.shape[1] - columns
        prompts_B, completions_B = mask_BT[:, :first].sum(1), mask_BT[:, first:].sum(1)
        column_T = np.arange(ids_BT.shape[1])
        whole = (column_T >= first - prompts_B[:, None]) & (column_T < first + completions_B[:, None])
        if not len(ids_BT) or not prompts_B.all() or (whole != mask_BT).any():
            return None
        prompt_BT = np.where(mask_BT, ids_BT, -1)[:, :first]
        new_B = np.concatenate([[True], (prompt_BT[1:] != prompt_BT[:-1]).any(1)])
        runs = np.diff([*np.flatnonzero(new_B), len(new_B)])
        return cls(prompts_B.tolist(), completions_B.tolist(), first, runs.tolist())

    def packs(self, most: int) -> list[range]:
        """The rollouts of each pack, of at most so many; those of a run are divided evenly."""
        packs: list[range] = []
        start = 0
        for count in self.runs:
            parts = -(-count // most)
            bounds = [start + count * part // parts for part in range(parts + 1)]
            packs += [range(*each) for each in pairwise(bounds)]
            start += count
        return packs

    def length(self, pack: range) -> int:
        """Tokens of a pack."""
        return self.prompts[pack.start] - 1 + sum(1 + self.completions[index] for index in pack)

    def cheapest(self, cost: Cost) -> tuple[float, int]:
        """What the batch costs at least, and with how many rollouts in a pack; 1 is no pack."""
        longest = max(self.runs)
        sizes = sorted({-(-longest // parts) for parts in range(1, longest + 1)})
        return min((cost.of([self.length(pack) for pack in self.packs(size)]), size) for size in sizes)


class PackedRows:
    """The arguments of a forward pass over packs, and the way back to a row for each rollout."""

    def __init__(self, ids: torch.Tensor, columns: int, rollouts: Rollouts, most: int) -> None:
        """Lay out the packs.

        Args:
            ids: tokens, B × tokens.
            columns: C, those of completions, the last ones.
            rollouts: of the batch.
            most: rollouts in a pack.
        """
        packs = rollouts.packs(most)
        width = max(map(rollouts.length, packs))
        source_NW, position_NW = (np.zeros((len(packs), width), dtype=np.int64) for _ in range(2))
        owner_NW = np.full((len(packs), width), -1)  # 0 for the prompt, 1, 2, … for rollouts, −1 for padding
        scored_NW = np.zeros((len(packs), width), dtype=bool)
        self._back_BC = np.full((ids.shape[0], columns), -1)
        for number, pack in enumerate(packs):
            prompt = rollouts.prompts[pack.start]
            used = prompt - 1
            source_NW[number, :used] = self._columns(ids, pack.start, rollouts.first - prompt, used)
            position_NW[number, :used] = np.arange(used)
            owner_NW[number, :used] = 0
            for owner, row in enumerate(pack, 1):
                count = rollouts.completions[row]
                place = slice(used, used + 1 + count)
                source_NW[number, place] = self._columns(ids, row, rollouts.first - 1, 1 + count)
                position_NW[number, place] = np.arange(prompt - 1, prompt + count)
                owner_NW[number, place] = owner
                scored_NW[number, used + 1 : used + 1 + count] = True
                # The log-probability of a token has the index of the one before it.
                self._back_BC[row, :count] = number * (width - 1) + used + np.arange(count)
                used += 1 + count
        source, self.position_ids, owner, scored = (
            torch.as_tensor(each, device=ids.device) for each in (source_NW, position_NW, owner_NW, scored_NW)
        )
        self.input_ids = ids.flatten()[source]
        self.labels = self.input_ids.masked_fill(~scored, IGNORED)
        to, by = owner[:, None, None, :], owner[:, None, :, None]
        causal = torch.ones(width, width, dtype=torch.bool, device=ids.device).tril()
        # Padding attends to padding: to nothing would be NaN.
        self.attention_mask = causal & ((to == by) | (to == 0))

    @staticmethod
    def _columns(ids: torch.Tensor, row: int, start: int, count: int) -> Array:
        return row * ids.shape[1] + start + np.arange(count)

    def restore(self, values: torch.Tensor) -> torch.Tensor:
        """Values of the tokens of packs, N × (W − 1), as those of completions, B × C; 0 where these are padding."""
        back = torch.as_tensor(self._back_BC, device=values.device)
        # The gradient of an index in brackets is accumulated one element at a time; that of index_select is not.
        known = values.flatten().index_select(0, back.clamp(min=0).flatten()).view_as(back)
        return known.masked_fill(back < 0, 0)
