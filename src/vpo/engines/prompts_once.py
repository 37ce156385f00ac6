"""What TRL's trainer repeats for each completion of a prompt, or for each backward pass, done once. Run on TRL 1.16."""

from collections.abc import Callable, Iterator
from typing import Any

Tokenized = tuple[list[list[int]], Any, Any]  # of each prompt; images; fields of prompts beside their tokens


class Rows:
    """The rows of a batch as an object that no data loader looks into.

    TRL's loader returns all rows of a step for each backward pass, and reads them for the first. Loaders search lists
    and dicts for tensors, which rows of a GRPO data set do not have: with 1,536 rows it took half of a step.
    """

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        """Keep the rows."""
        self.rows = rows

    def __len__(self) -> int:
        """How many rows."""
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Iterate over the rows."""
        return iter(self.rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        """A row."""
        return self.rows[index]


class PromptsOnce:
    """Tokenizes each prompt once, and keeps data loaders from searching the rows."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        """Take the arguments of the trainer."""
        super().__init__(*args, **settings)
        trainer: Any = self
        if not trainer._is_vlm:  # rows with images have tensors
            trainer.data_collator = Rows

    def _prepare_inputs(self, generation_batch: Any) -> dict[str, Any]:
        """As TRL's, from a list of rows."""
        rows = generation_batch.rows if isinstance(generation_batch, Rows) else generation_batch
        inputs: dict[str, Any] = super()._prepare_inputs(rows)  # type: ignore[misc]
        return inputs

    def _tokenize_prompts(self, prompts: list[Any]) -> Tokenized:
        """As TRL's, with neighbours that are the same prompt tokenized once."""
        trainer: Any = self
        tokenize: Callable[[list[Any]], Tokenized] = super()._tokenize_prompts  # type: ignore[misc]
        if trainer._is_vlm or trainer.environment_factories is not None:
            return tokenize(prompts)
        starts = [index for index, prompt in enumerate(prompts) if not index or prompt != prompts[index - 1]]
        ids, images, fields = tokenize([prompts[index] for index in starts])
        if fields:
            return tokenize(prompts)
        counts = [end - start for start, end in zip(starts, [*starts[1:], len(prompts)], strict=True)]
        return [list(each) for each, count in zip(ids, counts, strict=True) for _ in range(count)], images, fields
