"""Rewards that people already have, as objectives of a vector: see docs/rewards.md."""

from vpo.rewards.classifier import Classifier
from vpo.rewards.functions import FunctionReward
from vpo.rewards.judge import Judge, JudgeConfig
from vpo.rewards.scorer import Sample, Scorer, Scores
from vpo.rewards.similarity import Similarity
from vpo.rewards.text import Json, Length, Pattern, Readability
from vpo.rewards.toml import read_rewards
from vpo.rewards.vector import Limited, VectorReward

__all__ = [
    "Classifier",
    "FunctionReward",
    "Json",
    "Judge",
    "JudgeConfig",
    "Length",
    "Limited",
    "Pattern",
    "Readability",
    "Sample",
    "Scorer",
    "Scores",
    "Similarity",
    "VectorReward",
    "read_rewards",
]
