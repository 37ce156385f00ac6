"""The whole idea in one file: train two toy policies, one with GRPO and one with VPO, and write their answers.

The world: a problem offers 24 plans, each scored on 4 objectives. The policy sees only which plans are good on
average; how good they are in the problem at hand it cannot know. So one plan is the best bet, and a search that
may try several should try different ones.

The policy is a table of logits, one row for each answer it writes, trained by REINFORCE with the advantages that
`vpo.advantages` returns. That call is all that differs between the two.

    python examples/bandit.py --out demo        # writes demo/grpo.jsonl and demo/vpo.jsonl, in seconds
    vpo measure demo/grpo.jsonl demo/vpo.jsonl
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import vpo
from vpo.evaluation.pools import write_pool
from vpo.methods import get

OBJECTIVES = ("correct", "fast", "short", "safe")
PLANS = 24
STEPS, PROBLEMS, ROLLOUTS, LEARNING_RATE = 400, 32, 8, 0.5
TEST_PROBLEMS, POOL = 200, 30
MAX_TOKENS = 40


def draw_problems(count: int, rng: np.random.Generator) -> np.ndarray:
    """Scores of every plan in `count` problems, (count, PLANS, D)."""
    world = np.random.default_rng(7)
    on_average = world.dirichlet(np.full(len(OBJECTIVES), 0.7), PLANS) * world.uniform(0.8, 2.0, (PLANS, 1))
    return np.clip(on_average + rng.normal(0, 0.25, (count, PLANS, len(OBJECTIVES))), 0, 1)


def sample(logits_MA: np.ndarray, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Sample a plan for every answer of the completions, (*shape, M), by the Gumbel trick."""
    return (logits_MA + rng.gumbel(size=(*shape, *logits_MA.shape))).argmax(axis=-1)


def train(method: str, rng: np.random.Generator) -> np.ndarray:
    """Train a policy with a method; returns its logits (M, PLANS)."""
    answers = get(method).answers
    logits_MA = rng.normal(0, 0.01, (answers, PLANS))
    for step in range(STEPS):
        scores_PAD = draw_problems(PROBLEMS, rng)
        plans_PGM = sample(logits_MA, (PROBLEMS, ROLLOUTS), rng)
        rewards_PGMD = np.take_along_axis(scores_PAD[:, None], plans_PGM[..., None], axis=2)

        advantages_PG = vpo.advantages(method, rewards_PGMD, step=step)

        # The gradient of log π at the plans chosen, weighted by the advantage: REINFORCE.
        probabilities_MA = np.exp(logits_MA) / np.exp(logits_MA).sum(axis=1, keepdims=True)
        chosen_PGMA = np.eye(PLANS)[plans_PGM] - probabilities_MA
        logits_MA += LEARNING_RATE * np.einsum("pg,pgma->ma", advantages_PG, chosen_PGMA) / advantages_PG.size
    return logits_MA


def pool(logits_MA: np.ndarray, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Rows of a pool: 30 answers for each test problem."""
    answers = len(logits_MA)
    scores_PAD = draw_problems(TEST_PROBLEMS, np.random.default_rng(1))
    plans_PNM = sample(logits_MA, (TEST_PROBLEMS, POOL // answers), rng)
    for (problem, generation, index), plan in np.ndenumerate(plans_PNM):
        scores_D = scores_PAD[problem, plan]
        yield {
            "problem": f"test-{problem}",
            "generation": generation,
            "position": index + 1,
            "scores": dict(zip(OBJECTIVES, scores_D.tolist(), strict=True)),
            "solved": bool(scores_D.mean() >= 0.6),
            "tokens": MAX_TOKENS * answers,
            "answer": f"plan {plan}",
        }


def main() -> None:
    parser = argparse.ArgumentParser(description="Train two toy policies and write pools of their answers.")
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for the pools (demo)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for method in ("grpo", "vpo"):
        rng = np.random.default_rng(options.seed)
        logits_MA = train(method, rng)
        write_pool(options.out / f"{method}.jsonl", pool(logits_MA, rng))
        print(f"trained {method} for {STEPS} steps of {PROBLEMS * ROLLOUTS} rollouts: {options.out}/{method}.jsonl")


if __name__ == "__main__":
    main()
