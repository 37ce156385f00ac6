"""Rewards that people already have, as objectives of a vector: see docs/rewards.md."""

from vpo.rewards.functions import Function
from vpo.rewards.scorer import Item, Scorer, Scores
from vpo.rewards.text import Json, Length, Pattern, Readability
from vpo.rewards.vector import Limited, Vector

__all__ = ["Function", "Item", "Json", "Length", "Limited", "Pattern", "Readability", "Scorer", "Scores", "Vector"]
