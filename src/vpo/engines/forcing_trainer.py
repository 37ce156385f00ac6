"""A `trl.GRPOTrainer` whose completions have forced tags, which are not trained on. Run on TRL 1.16.

    trainer = ForcingTrainer(model, reward_funcs=reward, args=args, train_dataset=dataset, processing_class=tokenizer)
    trainer.force_tags(model, ForcedTags(tokenizer, tags_of(task, answers=3)))

The policy did not sample these tokens, so they have neither a gradient nor a probability ratio nor a KL term. TRL masks
the results of tools in this way, and its loss takes the mask from its trainer. Rewards see the whole completion.
"""

from typing import Any

from vpo.engines.answer_trainer import AnswerTrainer
from vpo.engines.compatibility import check_single_turn
from vpo.engines.padding import UnpaddedTrainer
from vpo.models.forced_tags import ForcedTags, ForcingProcessor


class _Forcing:
    """Forces tags while completions are sampled, and masks them in the loss."""

    forcing: ForcingProcessor | None = None  # of the completions that were sampled last

    def force_tags(self, model: Any, forced: ForcedTags) -> None:
        """Force tags in all completions that the model's own `generate` samples.

        Args:
            model: the policy that the trainer trains.
            forced: the tags, and how the tokenizer writes them.
        """
        check_single_turn(self, "ForcingTrainer", ", without forced tags")
        sample = model.generate

        def generate(*prompts: Any, **settings: Any) -> Any:
            self.forcing = forced.processor()
            return sample(*prompts, **settings, logits_processor=[self.forcing])

        model.generate = generate

    def _generate(self, prompts: list[Any]) -> tuple[Any, ...]:
        """Sample completions, and return the mask of their tokens as that of a tool's results: 0 for forced ones."""
        self.forcing = None
        prompt_ids, completion_ids, tool_mask, *further = super()._generate(prompts)  # type: ignore[misc]
        if self.forcing is None or tool_mask is not None:
            raise RuntimeError("no tags were forced: call force_tags first, and use neither vLLM nor tools")
        sampled = (~self.forcing.mask()).int().tolist()
        mask = [row[: len(ids)] for row, ids in zip(sampled, completion_ids, strict=True)]
        return (prompt_ids, completion_ids, mask, *further)


class ForcingTrainer(_Forcing, UnpaddedTrainer):
    """A `trl.GRPOTrainer` that samples with forced tags, and trains on the other tokens.

    Call ``force_tags(model, ForcedTags(tokenizer, tags_of(task, answers)))`` before ``train()``. Completions have one
    turn, and are sampled by transformers: tools, environments and vLLM are refused.
    """


class ForcingAnswerTrainer(_Forcing, AnswerTrainer):
    """The same, for methods with an advantage for each answer."""
