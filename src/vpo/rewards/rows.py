"""Rows of a data set as prompts, and as answers to score."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vpo.rewards.scorer import Item
from vpo.tasks import Message
from vpo.util.errors import InputError
from vpo.util.row_files import read_rows


def messages_of(prompt: Any, place: str) -> list[Message]:
    """Return a prompt, a text or chat messages of which the user's is last, as messages."""
    if isinstance(prompt, str):
        return [{"role": "user", "content": prompt}]
    if not isinstance(prompt, list) or not prompt:
        raise InputError(f"{place}: prompt must be text or a list of messages, not {type(prompt).__name__}")
    found = []
    for message in prompt:
        role, content = (message.get(name) if isinstance(message, Mapping) else None for name in ("role", "content"))
        if not isinstance(role, str) or not isinstance(content, str):
            raise InputError(f"{place}: a message of prompt must have a role and a content, both text")
        found.append({"role": role, "content": content})
    if found[-1]["role"] != "user":
        raise InputError(f"{place}: the last message of prompt must be the user's, not the {found[-1]['role']}'s")
    return found


def text_of(messages: list[Message] | tuple[Message, ...]) -> str:
    """Return messages as one text, for models that know no chat."""
    return "\n\n".join(message["content"] for message in messages)


def read_items(path: str | Path) -> list[Item]:
    """Return the answers of a file: rows with `prompt`, the text in `completion` or else in `answer`, further columns.

    The text is no column to the rewards: to many of them `answer` is what is right.
    """
    found = []
    for line, row in read_rows(Path(path)):
        place = f"{path}:{line}"
        column = "completion" if isinstance(row, Mapping) and "completion" in row else "answer"
        if not isinstance(row, Mapping) or not isinstance(row.get(column), str):
            raise InputError(f"{place}: a row must be an object with prompt, and answer or completion, a text")
        messages = messages_of(row.get("prompt"), place)
        columns = {name: value for name, value in row.items() if name != column}
        found.append(Item(str(row.get("id", line)), messages, row[column], columns))
    if not found:
        raise InputError(f"{path}: the file must hold 1 or more answers, and has none")
    return found
