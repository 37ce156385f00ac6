"""A `trl.GRPOTrainer` for the methods that pay each answer of a set by itself, such as vpo_anchored. Run on TRL 1.16.

    trainer = AnswerTrainer(model, reward_funcs=reward, args=grpo_config(reward), train_dataset=dataset)

TRL's loss takes an advantage for each token, and its trainer gives each completion one. This one gives the tokens of
each answer theirs, and leaves the rest to TRL.
"""

from typing import Any

import numpy as np
import torch
from trl import GRPOTrainer

from vpo.engines.answer_tokens import answer_advantages, answer_of_tokens
from vpo.engines.reward import RewardFunction
from vpo.util.errors import InputError


class AnswerTrainer(GRPOTrainer):  # type: ignore[misc]  # trl is not looked into
    """Gives the tokens of each answer the advantage of that answer. It takes one reward function, and that of ours."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        """Take what `trl.GRPOTrainer` takes."""
        super().__init__(*args, **settings)
        reward = self.reward_funcs[0]
        if len(self.reward_funcs) > 1 or not isinstance(reward, RewardFunction) or not reward.method.per_answer:
            raise InputError(
                "AnswerTrainer takes one reward function of vpo, for a method that pays each answer by itself: use "
                "trl.GRPOTrainer for others"
            )
        self.reward: RewardFunction = reward
        self.lengths: dict[int, int] = {}

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        """Put an advantage for each token in place of the one of the completion."""
        output: dict[str, Any] = super()._generate_and_score_completions(inputs)
        given = output["advantages"]
        local_BM = torch.as_tensor(self.reward.by_answer, device=given.device)
        every_BM = self.accelerator.gather(local_BM).cpu().numpy()
        group = self.num_generations if self.model.training else self.num_generations_eval
        start = self.accelerator.process_index * len(local_BM)
        advantages_BM = answer_advantages(every_BM, group)[start : start + len(local_BM)]
        advantages_BT = np.zeros(output["completion_ids"].shape)
        tokenizer = getattr(self.processing_class, "tokenizer", self.processing_class)  # a processor has one
        rows = zip(output["completion_ids"].tolist(), output["completion_mask"].tolist(), strict=True)
        for place, (padded, mask) in enumerate(rows):
            ids = padded[: sum(mask)]
            owners = answer_of_tokens(tokenizer, ids, advantages_BM.shape[1], self.lengths, self.reward.grader.parts)
            advantages_BT[place, : len(owners)] = advantages_BM[place, owners]
        output["advantages"] = torch.as_tensor(advantages_BT, dtype=given.dtype, device=given.device)
        return output
