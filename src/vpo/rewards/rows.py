"""Rows of a data set as prompts, and as answers to score."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vpo.rewards.scorer import Sample
from vpo.tasks import Message
from vpo.util.errors import InputError
from vpo.util.row_files import read_rows


def parse_messages(prompt: Any, source: str) -> list[Message]:
    """A prompt, text or chat messages of which the user's is last, as chat messages.

    Args:
        prompt: as it stands in the row.
        source: file and line, for errors.
    """
    if isinstance(prompt, str):
        return [{"role": "user", "content": prompt}]
    if not isinstance(prompt, list) or not prompt:
        given = "missing" if prompt is None else type(prompt).__name__
        raise InputError(f"{source}: prompt must be text or a list of messages, not {given}")
    messages = []
    for message in prompt:
        role, content = (message.get(name) if isinstance(message, Mapping) else None for name in ("role", "content"))
        if not isinstance(role, str) or not isinstance(content, str):
            raise InputError(f"{source}: a message of prompt must have a role and a content, both text")
        messages.append({"role": role, "content": content})
    if messages[-1]["role"] != "user":
        raise InputError(f"{source}: the last message of prompt must be the user's, not the {messages[-1]['role']}'s")
    return messages


def plain_text(messages: Sequence[Message]) -> str:
    """Messages as one text without roles, for models and functions that take no chat."""
    return "\n\n".join(message["content"] for message in messages)


def read_samples(path: str | Path) -> list[Sample]:
    """Answers of a JSONL or Parquet file: `prompt`, the text in `completion` or else in `answer`, further columns.

    The column of the text is not passed on to the rewards: many have a column `answer` for the correct one.
    """
    samples = []
    for line, row in read_rows(Path(path)):
        source = f"{path}:{line}"
        column = "completion" if isinstance(row, Mapping) and "completion" in row else "answer"
        if not isinstance(row, Mapping) or not isinstance(row.get(column), str):
            raise InputError(f"{source}: a row must be an object with prompt, and answer or completion, a text")
        messages = parse_messages(row.get("prompt"), source)
        columns = {name: value for name, value in row.items() if name != column}
        samples.append(Sample(str(row.get("id", line)), messages, row[column], columns))
    if not samples:
        raise InputError(f"{path}: the file must hold 1 or more answers, and has none")
    return samples
