"""Runs a trainer of TRL for a step or two, and returns the advantage that the loss saw for each rollout."""

from dataclasses import dataclass

import numpy as np

from vpo.engines.trl import grpo_config, task_dataset
from vpo.tasks.answers import duplicates

G, P = 4, 2  # rollouts of a problem, problems of a step


@dataclass(frozen=True)
class Batch:
    """A batch as the reward function scored it: an observer keeps one for each."""

    step: int
    rows: list
    texts: list
    scored: object

    @property
    def rewards(self):
        """The score vectors, (P, G, M, D)."""
        vectors = np.stack(self.scored.vectors)
        return vectors.reshape(P, G, *vectors.shape[1:])

    @property
    def copies(self):
        """Which answers repeat the words of an earlier one, (P, G, M)."""
        copies = [duplicates(answers, lambda answer: tuple(answer.split())) for answers in self.scored.parsed]
        return np.asarray(copies).reshape(P, G, -1)

    @property
    def problems(self):
        return [row["problem"] for row in self.rows[::G]]

    def by_text(self, advantages):
        """Expected advantages, (P, G, …), by the text of the rollout."""
        assert len(set(self.texts)) == P * G  # else a text would not say which rollout it is
        return dict(zip(self.texts, advantages.reshape(P * G, *advantages.shape[2:]), strict=True))


def run_trainer(model, reward, tmp_path, steps=1, kind=None):
    """Train; returns the trainer, what was scored at each step, and the rollouts of each step as its loss saw them.

    TRL shuffles the rollouts of a batch before it splits it, so each is known by its text.
    """
    from trl import GRPOTrainer

    batches, losses = [], []

    class Watched(kind or GRPOTrainer):
        def _compute_loss(self, model, inputs):
            losses.append(by_text(inputs, self.processing_class))
            return super()._compute_loss(model, inputs)

    args = grpo_config(
        reward,
        output_dir=str(tmp_path / "out"),
        num_generations=G,
        per_device_train_batch_size=G * P,
        max_completion_length=24,
        max_steps=steps,
        logging_steps=1,
        learning_rate=1e-3,
        report_to="none",
        save_strategy="no",
        use_cpu=True,
        shuffle_dataset=False,
        seed=3,
    )
    observed = reward.observed_by(lambda *each: batches.append(Batch(*each)))
    trainer = Watched(model, reward_funcs=observed, args=args, train_dataset=task_dataset(reward))
    trainer.train()
    return trainer, batches, losses


@dataclass(frozen=True)
class Rollout:
    """The tokens of a completion, and their advantages, as the loss saw them."""

    ids: list
    advantages_T: np.ndarray


def by_text(inputs, tokenizer):
    rollouts = {}
    for ids, mask, advantage in zip(
        inputs["completion_ids"], inputs["completion_mask"], inputs["advantages"], strict=True
    ):
        length = int(mask.sum())
        text = tokenizer.decode(ids[:length], skip_special_tokens=True)
        advantages_T = np.broadcast_to(advantage.detach().numpy(), mask.shape)[:length]
        rollouts[text] = Rollout(ids[:length].tolist(), advantages_T)
    return rollouts


def assert_advantages(seen, expected):
    """Compare rollout by rollout: text → advantage of all its tokens, or text → advantage of each."""
    assert seen.keys() == expected.keys()
    for text, advantage in expected.items():
        advantages_T = seen[text].advantages_T
        np.testing.assert_allclose(
            advantages_T, np.broadcast_to(advantage, advantages_T.shape), atol=2e-5, err_msg=text
        )


def by_token(expected, seen, tokenizer):
    """Advantages of answers of the task letters, text → (M,), as those of tokens, text → (T,).

    An answer of that task is an equal share of the characters, the last one with the rest; a token belongs to the
    answer within which it begins.
    """
    result = {}
    for text, advantages_M in expected.items():
        ids, answers = seen[text].ids, len(advantages_M)
        begins = [len(tokenizer.decode(ids[:count], skip_special_tokens=True)) for count in range(len(ids))]
        share = max(1, len(text) // answers)
        result[text] = np.asarray([advantages_M[min(begin // share, answers - 1)] for begin in begins])
    return result


def swapped(expected):
    """Exchange the advantages of the two rollouts that differ most."""
    low, high = (pick(expected, key=lambda text: np.ravel(expected[text])[0]) for pick in (min, max))
    return {**expected, low: expected[high], high: expected[low]}
