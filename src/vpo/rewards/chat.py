"""Any prompts, scored by rewards of your own: `--prompts prompts.jsonl --rewards rewards.toml`."""

from typing import ClassVar

from vpo.rewards.prompts import PromptTask, read_prompts
from vpo.rewards.toml import read_vector


class ChatTask(PromptTask):
    """The prompts of a file, scored as a rewards file says; see docs/rewards.md."""

    name: ClassVar[str] = "chat"
    files: ClassVar[tuple[str, ...]] = ("prompts", "rewards", "test")

    def __init__(self, *, prompts: str, rewards: str, test: str | None = None) -> None:
        """Make the task.

        Args:
            prompts: file of prompts, JSONL or Parquet.
            rewards: TOML file of rewards.
            test: file of the prompts of the test split; otherwise see `PromptTask`.
        """
        found = read_prompts(prompts)
        held_out = None if test is None else read_prompts(test, start="test-")
        super().__init__(read_vector(rewards), found, held_out)
