"""Forced tags in a real trainer: sampled tokens alone are trained on."""

import numpy as np
import pytest
import torch

pytest.importorskip("trl")

from tests.engines.training import G, P
from vpo.engines.forcing_trainer import ForcingAnswerTrainer, ForcingTrainer
from vpo.engines.trl import grpo_config, reward_function, task_dataset
from vpo.models.decoding import share_prompts
from vpo.models.forced_tags import ForcedTags, tags_of
from vpo.models.locate import embedded
from vpo.models.policy import load
from vpo.tasks.maze import MazeTask

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages
TASK = MazeTask(size=7, compact=True)
OPENINGS = "<answer_1>\n<answer_2>\n<answer_3>"


def train_step(tmp_path, method="vpo", *, kind=ForcingTrainer, shared=True, **settings):
    """One step; returns the trainer, what the loss saw with its value, and the texts that were scored."""
    seen, texts = [], []

    class Watched(kind):
        def _compute_loss(self, model, inputs):
            loss = super()._compute_loss(model, inputs)
            seen.append((inputs, loss.detach()))
            return loss

    policy = load(embedded("maze", size=7), precision="float32")
    reward = reward_function(TASK, method, problems=TASK.problems("train", count=P), group=G)
    reward = reward.observed_by(lambda step, rows, completions, scored: texts.extend(completions))
    chosen = {
        **{"output_dir": str(tmp_path / "out"), "num_generations": G, "per_device_train_batch_size": G * P},
        **{"max_completion_length": 90, "max_steps": 1, "learning_rate": 1e-3, "report_to": "none", "seed": 3},
        **{"save_strategy": "no", "use_cpu": True, "shuffle_dataset": False},
    }
    args = grpo_config(reward, **{**chosen, **settings})
    trainer = Watched(
        policy.model, reward_funcs=reward, args=args, train_dataset=task_dataset(reward),
        processing_class=policy.tokenizer,
    )  # fmt: skip
    if shared:
        share_prompts(policy.model)
    if issubclass(kind, ForcingTrainer | ForcingAnswerTrainer):
        trainer.force_tags(policy.model, ForcedTags(policy.tokenizer, tags_of(TASK, 3)))
    trainer.train()
    return trainer, seen, texts


@pytest.mark.parametrize("shared", [True, False])
def test_the_mask_covers_the_forced_tags_and_rewards_see_the_whole_text(shared, tmp_path):
    trainer, ((inputs, _),), texts = train_step(tmp_path, shared=shared)
    decode = trainer.processing_class.decode
    for ids, present, sampled in zip(
        inputs["completion_ids"], inputs["completion_mask"], inputs["tool_mask"], strict=True
    ):
        assert decode(ids[(present == 1) & (sampled == 0)]) == OPENINGS
        assert decode(ids[(present == 1) & (sampled == 1)], skip_special_tokens=True).count("</answer_") == 3
    assert len(texts) == G * P
    assert all(text.startswith("<answer_1>") and "\n<answer_2>" in text for text in texts)
    assert inputs["num_items_in_batch"] == (inputs["completion_mask"] * inputs["tool_mask"]).sum()


def reference_loss(trainer, inputs, mask):
    """The loss of DAPO at a ratio of 1, by hand, with its KL term: the sum over a mask by the size of the batch."""
    ids = torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], 1)
    attention = torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], 1)
    logits = trainer.model(ids, attention_mask=attention).logits / trainer.args.temperature
    length = inputs["completion_ids"].shape[1]
    logps = torch.log_softmax(logits[:, -length - 1 : -1], -1).gather(2, inputs["completion_ids"][..., None])[..., 0]
    advantages = inputs["advantages"] if inputs["advantages"].dim() == 2 else inputs["advantages"][:, None]
    per_token = -torch.exp(logps - logps.detach()) * advantages
    if trainer.beta:
        gap = inputs["ref_per_token_logps"] - logps
        per_token = per_token + trainer.beta * (gap.exp() - gap - 1)
    return (per_token * mask).sum() / mask.sum()


@pytest.mark.parametrize(
    ("method", "kind", "beta"),
    [("vpo", ForcingTrainer, 0.0), ("vpo", ForcingTrainer, 0.1), ("vpo_anchored", ForcingAnswerTrainer, 0.0)],
)
def test_forced_tokens_have_no_part_in_the_loss_or_its_gradient(method, kind, beta, tmp_path):
    """The gradient equals that of the sampled tokens alone, given the forced ones; with the forced ones it differs."""
    trainer, ((inputs, _),), _ = train_step(
        tmp_path, method, kind=kind, loss_type="dapo", beta=beta, learning_rate=1e-12, max_grad_norm=0
    )
    sampled = inputs["completion_mask"] * inputs["tool_mask"]
    assert (sampled < inputs["completion_mask"]).any()

    def gradient(loss):
        trainer.model.zero_grad()
        loss.backward()
        return torch.cat([each.grad.flatten() for each in trainer.model.parameters()])

    trainer.model.train()
    got = gradient(type(trainer).__mro__[1]._compute_loss(trainer, trainer.model, inputs))
    alone = gradient(reference_loss(trainer, inputs, sampled))
    whole = gradient(reference_loss(trainer, inputs, inputs["completion_mask"]))
    assert got.abs().max() > 0
    torch.testing.assert_close(got, alone, rtol=1e-3, atol=1e-6)
    assert (got - whole).abs().max() > 1e-3 * got.abs().max()


def test_a_trainer_that_samples_without_forcing_is_an_error(tmp_path):
    class Forgotten(ForcingTrainer):
        def force_tags(self, model, forced):
            pass

    with pytest.raises(RuntimeError, match="no tags were forced: call force_tags first"):
        train_step(tmp_path, kind=Forgotten)


def test_several_updates_a_batch_use_the_ratio_of_sampled_tokens(tmp_path):
    _, seen, _ = train_step(tmp_path, num_iterations=2, max_steps=2, beta=0.0)
    assert len(seen) == 2
    assert all("old_per_token_logps" in inputs and "tool_mask" in inputs for inputs, _ in seen)
    assert np.isfinite([float(loss) for _, loss in seen]).all()
