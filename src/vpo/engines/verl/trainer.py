"""verl's own synchronous trainer with the advantages of `vpo.advantages`: `trainer.v1.trainer_mode=vpo`.

verl's estimators see one number per rollout; a trainer reads the vectors that the reward function returned with it.
Generation, KL, rollout correction, the loss and everything else stay verl's.
"""

from functools import cached_property
from typing import Any

import torch
import transfer_queue as tq
from tensordict import TensorDict
from verl.trainer.ppo.v1 import PPOTrainerSync
from verl.trainer.ppo.v1.trainer_base import register_trainer
from verl.workers.utils.padding import response_to_nested

from vpo.engines.answer_tokens import TokenOwners
from vpo.engines.caller import Caller
from vpo.engines.metrics import mean
from vpo.engines.verl.advantages import known_share, read_rate, read_rollout, rollout_metrics, rollout_result
from vpo.engines.verl.compatibility import MODE
from vpo.engines.verl.export import read_export
from vpo.util.errors import InputError


@register_trainer(MODE)
class VpoTrainer(PPOTrainerSync):  # type: ignore[misc]  # verl is untyped
    """Replaces GRPO's advantages by those of a method."""

    def __init__(self, config: Any) -> None:
        """The reward function of verl's config names the exported folder."""
        reward = read_export(config.reward.custom_reward_function.reward_kwargs.folder).reward(None)
        self.reward = reward.stopped_by(self._stall)
        config.trainer.v1.trainer_mode = "sync"  # which verl's trainer compares with, to know what it is
        self.stalled: str | None = None  # why the training has to stop
        super().__init__(config)

    def _compute_advantage(self, batch: Any, metrics: dict[str, Any]) -> Any:
        """Let verl do its part, then overwrite the advantages."""
        batch = super()._compute_advantage(batch, metrics)
        fields = ["uid", "extra_fields", "responses", "response_mask"]
        data = tq.kv_batch_get(keys=batch.keys, partition_id=batch.partition_id, select_fields=fields)
        uids, extras = list(data["uid"]), list(data["extra_fields"])
        # Rows that only make the batch divisible are copies of the first, and no rollouts.
        indices = [index for index, tag in enumerate(batch.tags) if not tag.get("is_padding")]
        answers = self.reward.method.answers
        responses = data["responses"].unbind()
        longest = self.config.actor_rollout_ref.rollout.response_length
        truncated = [len(responses[index]) >= longest for index in indices]
        rollouts = [
            read_rollout(uids[index], extras[index]["reward_extra_info"], answers, truncated=cut)
            for index, cut in zip(indices, truncated, strict=True)
        ]
        size = self.config.actor_rollout_ref.rollout.n
        result = rollout_result(self.reward, rollouts, size, self.global_steps - 1)
        own = {**result.means, "truncated": mean(truncated)}
        metrics.update(rollout_metrics(self.reward, rollouts, own))
        steps = getattr(self, "total_training_steps", None)  # which verl sets when it loads the data
        caller = Caller(step=self.global_steps - 1, batches=steps)
        self.reward.check_known(known_share(rollouts), caller)

        unread = next((index for index, each in zip(indices, rollouts, strict=True) if each.read_rate < 1), None)
        text = None if unread is None else self.tokenizer.decode(responses[unread].tolist(), skip_special_tokens=True)
        self.reward.alarms.check_read_rate(read_rate(rollouts).value, len(rollouts), text)

        nested_mask = data["response_mask"]
        mask_BT = nested_mask.to_padded_tensor(0)
        advantages_BT = torch.zeros(mask_BT.shape)
        for index, advantage in zip(indices, result.advantages, strict=True):
            ids = responses[index].tolist()
            by_token = advantage[self._token_owners.of(ids, answers)] if self.reward.method.per_answer else advantage
            advantages_BT[index, : len(ids)] = torch.as_tensor(by_token, dtype=torch.float32)
        nested = response_to_nested(advantages_BT * mask_BT, nested_mask)
        tensors = TensorDict({"advantages": nested, "returns": nested}, batch_size=len(batch))
        tq.kv_batch_put(keys=batch.keys, partition_id=batch.partition_id, fields=tensors)
        return batch

    def on_step_end(self) -> None:
        """Stop, with a checkpoint, where no reward can be known any more."""
        if self.stalled is None:
            super().on_step_end()
            return
        every = self.config.trainer.save_freq
        if every <= 0 or self.global_steps % every:  # else verl has saved one
            self._save_checkpoint()
        raise InputError(self.stalled)

    def _stall(self, reason: str) -> None:
        if self.global_steps >= self.total_training_steps:  # with a checkpoint of it the run would count as done
            raise InputError(reason)
        self.stalled = reason

    @cached_property
    def _token_owners(self) -> TokenOwners:
        return TokenOwners(self.tokenizer, self.reward.grader.parts)
