"""A `trl.GRPOTrainer` for methods with an advantage for each answer, such as vpo_marginal. Run on TRL 1.16.

    trainer = AnswerTrainer(model, reward_funcs=reward, args=grpo_config(reward), train_dataset=dataset)

TRL's loss takes an advantage for each token, and its trainer gives each completion one. This one gives the tokens of
each answer theirs, and leaves the rest to TRL.
"""

import math
from typing import Any

import numpy as np
import torch

from vpo.engines.answer_tokens import TokenOwners
from vpo.engines.caller import caller_of
from vpo.engines.compatibility import check, check_single_turn, single_reward_hint
from vpo.engines.padding import UnpaddedTrainer
from vpo.engines.reward import RewardFunction
from vpo.engines.scorer import RewardResult
from vpo.util.errors import InputError


class AnswerTrainer(UnpaddedTrainer):
    """A `trl.GRPOTrainer` that gives the tokens of each answer the advantage of that answer.

    It takes one reward function, made by vpo, for a method with an advantage for each answer: `vpo_marginal` with sets,
    or `vpo_anchored`. Completions have one turn: tools and environments are refused.
    """

    def __init__(self, *args: Any, **settings: Any) -> None:
        """Check the method and the settings.

        Args:
            args: those of `trl.GRPOTrainer`.
            settings: those of `trl.GRPOTrainer`, such as `reward_funcs` and `train_dataset`.
        """
        super().__init__(*args, **settings)
        reward = self.reward_funcs[0]
        if len(self.reward_funcs) > 1 or not isinstance(reward, RewardFunction) or not reward.method.per_answer:
            raise InputError(
                "AnswerTrainer takes one reward function of vpo, for a method with an advantage for each answer: use "
                "trl.GRPOTrainer for others"
            )
        check(reward, self.args)
        check_single_turn(self, "AnswerTrainer", single_reward_hint(reward.method))
        self.reward: RewardFunction = reward
        self.result: RewardResult | None = None  # of the batch that is being scored
        tokenizer = getattr(self.processing_class, "tokenizer", self.processing_class)  # a processor has one
        self.token_owners = TokenOwners(tokenizer, reward.grader.parts)

    def _calculate_rewards(
        self, inputs: list[dict[str, Any]], prompts: list[Any], completions: list[Any], completion_ids: list[list[int]]
    ) -> torch.Tensor:
        """Call the reward function as TRL does, and keep all that it returns."""
        rows = [{**row, "prompt": prompt} for row, prompt in zip(inputs, prompts, strict=True)]
        caller = caller_of(self)
        self.result = self.reward.score(rows, completions, caller.truncated(completion_ids), caller)
        self.reward.check_known(self.result.known, caller)
        for name, value in self.result.metrics.items():
            self._log_metric(name, value)
        rewards = [math.nan if reward is None else reward for reward in self.result.rewards]
        local_B1 = torch.tensor(rewards, dtype=torch.float32, device=self.accelerator.device)[:, None]
        gathered: torch.Tensor = self.accelerator.gather(local_B1)
        return gathered

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        """Replace the advantage of each completion by one for each token."""
        output: dict[str, Any] = super()._generate_and_score_completions(inputs)
        assert self.result is not None
        advantages_BM = self.result.advantages_BM
        assert advantages_BM is not None
        advantages_BT = np.zeros(output["completion_ids"].shape)
        rows = zip(output["completion_ids"].tolist(), output["completion_mask"].tolist(), strict=True)
        for index, (padded, mask) in enumerate(rows):
            ids = padded[: sum(mask)]
            owners = self.token_owners.of(ids, self.reward.method.answers)
            advantages_BT[index, : len(owners)] = advantages_BM[index, owners]
        per_completion = output["advantages"]
        output["advantages"] = torch.as_tensor(advantages_BT, dtype=per_completion.dtype, device=per_completion.device)
        return output
