"""Arrays in, arrays out: the mathematics of Vector Policy Optimization.

Every function takes numpy arrays or torch tensors and returns the same type on the same device; it is written
once, over the array API. Importing this package does not import torch.

Shape suffixes, here and in the whole project:

=====  ===========================================================
``P``  problems
``G``  rollouts of one problem: the group
``M``  answers in one rollout: the set
``D``  objectives: the numbers that score one answer
``K``  directions: weightings of the objectives
``N``  generations in a pool;  ``n`` answers in a pool
=====  ===========================================================

So ``rewards_PGMD[p, g, i]`` is the score vector of answer i of rollout g of problem p.
"""

from vpo.core.at_k import best_at_k, best_at_tokens, best_of_set, first, pass_at_k
from vpo.core.cover import Cover, greedy_cover
from vpo.core.diversity import Diversity, diversity
from vpo.core.geometry import Geometry, geometry
from vpo.core.intervals import Interval, bootstrap
from vpo.core.judge_error import possible_scores
from vpo.core.set_reward import set_reward
from vpo.core.simplex import directions, dirichlet

__all__ = [
    "Cover",
    "Diversity",
    "Geometry",
    "Interval",
    "best_at_k",
    "best_at_tokens",
    "best_of_set",
    "bootstrap",
    "directions",
    "dirichlet",
    "diversity",
    "first",
    "geometry",
    "greedy_cover",
    "pass_at_k",
    "possible_scores",
    "set_reward",
]
