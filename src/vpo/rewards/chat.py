"""The task `chat`: prompts of a file, scored by a rewards file."""

from typing import ClassVar

from vpo.rewards.prompts import PromptTask, read_prompts
from vpo.rewards.toml import read_rewards


class ChatTask(PromptTask):
    """Prompts of a file, scored by the rewards of a TOML file: ``--prompts prompts.jsonl --rewards rewards.toml``."""

    name: ClassVar[str] = "chat"
    files: ClassVar[tuple[str, ...]] = ("prompts", "rewards", "test")

    def __init__(self, *, prompts: str, rewards: str, test: str | None = None) -> None:
        """Read the files.

        Args:
            prompts: JSONL or Parquet file of prompts.
            rewards: TOML file of rewards.
            test: file of the test prompts; without one, `PromptTask` splits `prompts`.
        """
        test_prompts = None if test is None else read_prompts(test, id_prefix="test-")
        super().__init__(read_rewards(rewards), read_prompts(prompts), test_prompts)
