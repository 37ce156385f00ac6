"""What the reward path costs at scale: 8,192 rollouts of 5 answers with 16 objectives, in one process and in several.

    python benchmarks/scale.py [--processes 2] [--methods vpo,gdpo,max_at_k] [--json]

The path is all that vpo does between a batch of completions and what the trainer takes: parsing the answers, the
method, the metrics, and the exchange of scores between processes. The scorer here looks up numbers: the
time that a task takes to score is not included, and benchmarks/tasks.py measures it.

The share of a step is a calculation. A step of a model of N parameters takes at least 2·N operations a token to
generate, 2·N for the log-probabilities of the reference, and 6·N for the loss and its gradient (8·N with
checkpointing, which is not counted); an H200 was seen at 790 Tflop/s in bf16 products, and no trainer comes near that.
So the share that is printed is an upper bound: of a step that is all arithmetic, at full speed.
"""

import argparse
import json
import os
import socket
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from vpo.engines.caller import Caller
from vpo.engines.reward import RewardFunction, reward_function
from vpo.engines.rows import rows_of
from vpo.methods import METHODS
from vpo.tasks.answers import write
from vpo.util.processes import leave

ROLLOUTS, ANSWERS, OBJECTIVES, GROUP = 8_192, 5, 16, 8
WORDS = 150  # of an answer, some 200 tokens
PROMPT_TOKENS, ANSWER_TOKENS = 500, 200
PARAMETERS, SPEED = 1e9, 790e12
ROUNDS = 5


def completions(answers: int, start: int, stop: int) -> tuple[list[str], list[str]]:
    """Prompts and completions of the rollouts from `start` to `stop`, each answer with a number of its own."""
    filler = " ".join(["lorem"] * WORDS)
    texts = [
        write([f"{rollout * answers + index} {filler}" for index in range(answers)]) for rollout in range(start, stop)
    ]
    return [f"problem {rollout // GROUP}" for rollout in range(start, stop)], texts


def make_reward(method: str) -> RewardFunction:
    """The reward function of a method; its scorer looks up random numbers in a table."""
    table = np.random.default_rng(0).random((ROLLOUTS * ANSWERS, OBJECTIVES)).round(2).tolist()
    names = [f"objective_{number}" for number in range(OBJECTIVES)]

    def score(answer: str) -> list[float]:
        scores: list[float] = table[int(answer.partition(" ")[0])]
        return scores

    answers = ANSWERS if METHODS[method].takes_sets else None
    return reward_function(score=score, objectives=names, method=method, answers=answers, group=GROUP)


def seconds(method: str, rank: int = 0, processes: int = 1) -> float:
    """Seconds of one call of the reward function: the fastest of some rounds after a warm-up."""
    reward, share = make_reward(method), ROLLOUTS // processes
    prompts, texts = completions(reward.method.answers, rank * share, (rank + 1) * share)
    caller = Caller(processes=processes, process_index=rank)
    times = []
    for _ in range(ROUNDS + 1):
        began = time.perf_counter()
        reward.score(rows_of(prompts, {}), texts, caller=caller)
        times.append(time.perf_counter() - began)
    return min(times[1:])


def in_processes(methods: Sequence[str], processes: int) -> dict[str, float]:
    """The same for a batch that is split between processes: the time of the slowest."""
    import torch.multiprocessing as processes_of_torch

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with processes_of_torch.Manager() as manager:
        times = manager.dict()
        processes_of_torch.spawn(_one, (processes, port, list(methods), times), nprocs=processes)
        return {method: max(times[method, rank] for rank in range(processes)) for method in methods}


def _one(rank: int, processes: int, port: int, methods: Sequence[str], times: Any) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(processes))
    os.environ.update(LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(processes))
    for method in methods:
        times[method, rank] = seconds(method, rank, processes)
    leave()


def step_seconds(answers: int, gpus: int) -> float:
    """A lower bound for a step: its arithmetic at full speed."""
    tokens = ROLLOUTS * (PROMPT_TOKENS + answers * ANSWER_TOKENS)
    return 10 * PARAMETERS * tokens / (SPEED * gpus)


def main() -> None:
    """Measure, calculate, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=2, metavar="N")
    parser.add_argument("--methods", default="vpo,vpo_marginal,multi_rlvr,grpo,gdpo,max_at_k", metavar="NAME,…")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    methods = options.methods.split(",")
    several = in_processes(methods, options.processes)
    rows = []
    for method in methods:
        answers = make_reward(method).method.answers
        one = seconds(method)
        rows.append(
            {
                "method": method,
                "answers": answers,
                "seconds": one,
                "share_of_a_step": one / step_seconds(answers, 1),
                "seconds_in_processes": several[method],
                "share_in_processes": several[method] / step_seconds(answers, options.processes),
            }
        )
    if options.json:
        print(json.dumps({"processes": options.processes, "rows": rows}, indent=1))
        return
    print(f"{ROLLOUTS:,} rollouts, {OBJECTIVES} objectives; a step of 1e9 parameters, {SPEED / 1e12:.0f} Tflop/s a GPU")
    print(f"{'':12}  answers  1 process     share  {options.processes} processes     share")
    for row in rows:
        print(
            f"{row['method']:12}  {row['answers']:7}  {row['seconds']:7.2f} s  {row['share_of_a_step']:8.2%}"
            f"  {row['seconds_in_processes']:9.2f} s  {row['share_in_processes']:8.2%}"
        )


if __name__ == "__main__":
    main()
