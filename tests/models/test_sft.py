"""Supervised fine-tuning: the loss that it reports, its seeds, and its micro-batches."""

import pytest

pytest.importorskip("trl")

import torch

from vpo.models.locate import embedded
from vpo.models.policy import load
from vpo.models.sft import Example, Schedule, fine_tune
from vpo.util.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages

EXAMPLES = [Example([5, 6, 7 + i, 8, 9, 1][: 4 + i % 3], 1 + i % 3) for i in range(8)]


def trained(tmp_path, **changes):
    """The losses of some steps of the embedded policy, and its weights."""
    policy = load(embedded("maze", size=7), precision="float32")
    schedule = Schedule(**{"steps": 3, "batch": 8, "learning_rate": 1e-3, "seed": 0, **changes})
    losses = fine_tune(policy.model, policy.tokenizer, EXAMPLES, tmp_path, schedule)
    return losses, torch.cat([each.flatten() for each in policy.model.parameters()])


def test_the_loss_is_the_mean_over_the_tokens_of_completions(tmp_path):
    model = load(embedded("maze", size=7), precision="float32").model
    likelihoods = []
    for tokens, prompt in EXAMPLES:
        with torch.no_grad():
            scores = model(torch.tensor([tokens])).logits[0].log_softmax(-1)
        likelihoods += [scores[index - 1, tokens[index]].item() for index in range(prompt, len(tokens))]
    losses, _ = trained(tmp_path)
    assert losses[0] == pytest.approx(-sum(likelihoods) / len(likelihoods), abs=1e-4)
    assert losses[-1] < losses[0]


def test_the_same_seed_trains_the_same_weights(tmp_path):
    once, again, other = (trained(tmp_path, batch=4, seed=seed) for seed in (0, 0, 1))
    assert once[0] == again[0] != other[0]
    assert torch.equal(once[1], again[1])


def test_micro_batches_add_up_to_a_batch(tmp_path):
    whole, split = trained(tmp_path), trained(tmp_path, micro_batch=2)
    assert split[0] == pytest.approx(whole[0], abs=2e-4)


def test_several_gpus_in_one_process_are_refused_in_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr("transformers.TrainingArguments.n_gpu", property(lambda _: 2))
    with pytest.raises(InputError, match=r"^the trainer refuses its settings \(.*CUDA_VISIBLE_DEVICES"):
        trained(tmp_path)
