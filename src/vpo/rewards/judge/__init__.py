"""A language model as a judge: a rubric per persona, each an objective."""

from vpo.rewards.judge.config import JudgeConfig
from vpo.rewards.judge.judge import Judge

__all__ = ["Judge", "JudgeConfig"]
