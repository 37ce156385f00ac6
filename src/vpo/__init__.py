"""Vector Policy Optimization: train language models to write sets of different good answers.

vpo.set_reward(rewards)             E_w[max_i w·r_i] of each set, (..., M, D) -> (...)
vpo.advantages("vpo", rewards)      (P, G, M, D) -> (P, G), for any GRPO-style trainer
vpo.best_at_k(scores, k)            expected best of k, exact, (..., n) -> (...)
vpo.pass_at_k(solved, k)            chance that one of k solves, exact, (..., n) -> (...)
vpo.bootstrap(values)               mean over problems with its interval
vpo.diversity(scores)               how different the answers of a pool are, (..., n, D)
vpo.geometry(scores)                whether a reward has trade-offs, (..., n, D)
vpo.greedy_cover(scores, k)         the k answers that are best together, (n, D) -> k indices
vpo.read_pool(path)                 a pool of scored answers, JSONL or Parquet
"""

from vpo.core import (
    Cover,
    Diversity,
    Geometry,
    Interval,
    best_at_k,
    best_of_set,
    bootstrap,
    directions,
    dirichlet,
    diversity,
    first,
    geometry,
    greedy_cover,
    pass_at_k,
    set_reward,
)
from vpo.evaluation.pools import read_pool, write_pool
from vpo.methods import advantages
from vpo.util.errors import InputError

__version__ = "0.1.0"

__all__ = [
    "Cover",
    "Diversity",
    "Geometry",
    "InputError",
    "Interval",
    "advantages",
    "best_at_k",
    "best_of_set",
    "bootstrap",
    "directions",
    "dirichlet",
    "diversity",
    "first",
    "geometry",
    "greedy_cover",
    "pass_at_k",
    "read_pool",
    "set_reward",
    "write_pool",
]
