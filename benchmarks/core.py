"""Timings of the core, as ratios within one run, each with its bound.

python benchmarks/core.py [--json]
"""

import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from itertools import combinations

import numpy as np

import vpo
from timing import seconds, show
from vpo.core.credit import marginal_credit
from vpo.methods import METHODS


def python_loop(rewards_BMD: np.ndarray) -> np.ndarray:
    """The set reward, one set at a time."""
    directions = vpo.directions(rewards_BMD.shape[-1])
    return np.array([np.mean(np.max(directions @ rewards.T, axis=1)) for rewards in rewards_BMD])


def subset_loop(rewards_PGMD: np.ndarray, sets: int) -> np.ndarray:
    """The marginal credit by its definition: over all choices of K − 1 other sets, with and without an answer."""
    directions = vpo.directions(rewards_PGMD.shape[-1])
    credit_PGM = np.zeros(rewards_PGMD.shape[:-1])
    for group, values_GMK in enumerate(rewards_PGMD @ directions.T):
        rollouts, answers, _ = values_GMK.shape
        for own in range(rollouts):
            pools = list(combinations([other for other in range(rollouts) if other != own], sets - 1))
            for pool in pools:
                others_K = values_GMK[list(pool)].max(axis=(0, 1))
                whole_K = np.maximum(others_K, values_GMK[own].max(axis=0))
                for answer in range(answers):
                    rest_K = np.maximum(others_K, np.delete(values_GMK[own], answer, axis=0).max(axis=0))
                    credit_PGM[group, own, answer] += np.mean(whole_K - rest_K) / len(pools)
    return credit_PGM


def credit_row(rng: np.random.Generator) -> tuple[str, float, str]:
    """How many times faster the closed form is; the loop runs over 4 of the 4,096 groups."""
    rewards, some = rng.random((4096, 8, 3, 4)), slice(4)
    np.testing.assert_allclose(marginal_credit(rewards[some], sets=4), subset_loop(rewards[some], 4), atol=1e-12)
    loop = seconds(lambda: subset_loop(rewards[some], 4), repeats=3) * len(rewards) / 4
    fast = seconds(lambda: marginal_credit(rewards, sets=4), repeats=3)
    return "marginal_credit 4096 × 8 × 3 × 4, K = 4, times faster than a loop over subsets", loop / fast, "at least 20"


def extra_memory(function: Callable[[], object]) -> float:
    """Peak of the memory that a call allocates, in megabytes."""
    function()
    tracemalloc.start()
    function()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def process_seconds(*command: str) -> float:
    """Shortest time of five runs of a command, the interpreter's start included."""
    return seconds(lambda: subprocess.run(command, check=True, capture_output=True), repeats=5)


def import_seconds() -> float:
    """Shortest time of `import vpo` in a new interpreter."""
    code = "import time; start = time.perf_counter(); import vpo; print(time.perf_counter() - start)"
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True) for _ in range(6)]
    return min(float(run.stdout) for run in runs[1:])


def figures() -> list[tuple[str, float, str]]:
    rng = np.random.default_rng(0)

    rewards = rng.random((4096, 3, 4))
    np.testing.assert_allclose(vpo.set_reward(rewards), python_loop(rewards), atol=1e-12)
    loop, fast = seconds(lambda: python_loop(rewards), repeats=3), seconds(lambda: vpo.set_reward(rewards))
    large = rng.random((65_536, 5, 16))
    rows = [
        ("set_reward 4096 × 3 × 4, times faster than a Python loop", loop / fast, "at least 20"),
        ("set_reward 65,536 × 5 × 16, extra memory, MB", extra_memory(lambda: vpo.set_reward(large)), "below 500"),
        credit_row(rng),
        ("import vpo, s", import_seconds(), "below 0.3"),
        ("vpo --help, s", process_seconds(sys.executable, "-m", "vpo", "--help"), "below 0.5"),
    ]
    for name, method in METHODS.items():
        batch = rng.random((128, 8, 3 if method.takes_sets else 1, 4))
        taken = seconds(lambda name=name, batch=batch: vpo.advantages(name, batch))
        rows.append((f"advantages {name} of 128 groups of 8, share of that Python loop", taken / loop, ""))
    return rows


if __name__ == "__main__":
    show(__doc__, figures)
