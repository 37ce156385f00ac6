"""Rewards that people already have, as objectives of a vector: see docs/rewards.md."""

from vpo.rewards.functions import FunctionReward
from vpo.rewards.scorer import Sample, Scorer, Scores
from vpo.rewards.text import Json, Length, Pattern, Readability
from vpo.rewards.vector import Limited, VectorReward

__all__ = [
    "FunctionReward",
    "Json",
    "Length",
    "Limited",
    "Pattern",
    "Readability",
    "Sample",
    "Scorer",
    "Scores",
    "VectorReward",
]
