"""What every importer makes: answers with the scores that a file has for them."""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from vpo.util.files import storable

# What the reader of a format left out or assumed → how often; the text continues "3 ".
Notes: TypeAlias = Counter[str]

LONGEST_NAME = 80  # of a problem, in characters; a prompt that is longer is cut, and told apart by a hash


@dataclass(frozen=True)
class ImportedAnswer:
    """An answer as its file has it; the values are not checked yet.

    Attributes:
        where: the file, and the line where it has lines.
        problem: its id.
        scores: objective → score.
        answer: the text that was scored.
        completion: the whole text of the model, where it is another.
        solved: whether the file says that the answer solves the problem; None where it does not say.
        tokens: of the completion.
        generation: its id; None to count the completions of a problem.
        position: of the answer in its completion, from 1.
        further: scores that are imported only where they are named.
        target: w*, objective → weight, of those that the file states.
        failure: why there are no scores, where the file says it.
    """

    where: str
    problem: Any
    scores: Mapping[str, Any]
    answer: str | None = None
    completion: str | None = None
    solved: Any = None
    tokens: Any = None
    generation: Any = None
    position: Any = 1
    further: Mapping[str, Any] = field(default_factory=dict)
    target: Mapping[str, float] | None = None
    failure: str | None = None


def problem_name(prompt: Any) -> str:
    """A problem's id from its prompt: the text, or for a long one its beginning and a hash."""
    text = " ".join((text_of(prompt) or "").split())
    if len(text) <= LONGEST_NAME:
        return text
    digest = hashlib.sha256(storable(text).encode()).hexdigest()
    return f"{text[:60]}… {digest[:12]}"


def text_of(value: Any) -> str | None:
    """The text of a prompt or completion: a text, or chat messages, whose contents are joined."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(each, Mapping) for each in value):
        return "\n".join(filter(None, (_content(each) for each in value)))
    if isinstance(value, Mapping) and "content" in value:
        return _content(value)
    return json.dumps(value, ensure_ascii=False, default=str)


def _content(message: Mapping[str, Any]) -> str | None:
    """The text of one message, or of one part of it."""
    content = message.get("content") if "content" in message else message.get("text")
    return text_of(content)
