"""Numbered tags, ``<answer_1>…</answer_1>``: the request may stand in the system message, or after an example."""

from collections.abc import Sequence
from typing import ClassVar

from vpo.tasks import answers as protocol
from vpo.tasks.forms.base import Example, Form, Message
from vpo.tasks.reading import Section


class Tags(Form):
    """Numbered tags, with a filled example in the request."""

    name: ClassVar[str] = "tags"
    summary: ClassVar[str] = "numbered tags, <answer_1>…</answer_1>"
    how: ClassVar[str] = "Write each answer between its own tags, and nothing after the last."

    def opening(self, index: int) -> str:
        """The opening tag."""
        return f"<answer_{index + 1}>"

    def closing(self, index: int) -> str:
        """The closing tag."""
        return f"</answer_{index + 1}>"

    def encode(self, text: str) -> str:
        """Several lines stand on lines of their own."""
        return protocol.laid_out(text)

    def sections(self, completion: str, answers: int) -> list[Section]:
        """As `vpo.tasks.answers` reads them."""
        return protocol.sections(completion, answers)


class SystemTags(Tags):
    """Numbered tags, requested in the system message."""

    name: ClassVar[str] = "tags-system"
    summary: ClassVar[str] = "numbered tags, requested in the system prompt"

    def ask(self, messages: Sequence[Message], answers: int, example: Example | None) -> list[Message]:
        """The request ends the system message, or is one."""
        request = self.request(answers, example)
        if messages[0]["role"] != "system":
            return [{"role": "system", "content": request}, *messages]
        first, *others = messages
        return [{**first, "content": f"{first['content']}\n\n{request}"}, *others]


class OneShotTags(Tags):
    """Numbered tags, after a worked example: a question and its answers as turns of the chat."""

    name: ClassVar[str] = "tags-shot"
    summary: ClassVar[str] = "numbered tags, after a worked example in the chat"

    def ask(self, messages: Sequence[Message], answers: int, example: Example | None) -> list[Message]:
        """The example stands before the first message that is not the system's."""
        if example is None:
            return super().ask(messages, answers, example)
        shown = example.answers[:answers]
        shot = [
            {"role": "user", "content": f"{_sentence(example.question)}\n\n{self.wanted(len(shown))}"},
            {"role": "assistant", "content": f"{example.before}{self.write(shown)}"},
        ]
        system = [each for each in messages[:1] if each["role"] == "system"]
        *others, last = messages[len(system) :]
        return [*system, *shot, *others, {**last, "content": f"{last['content']}\n\n{self.wanted(answers)}"}]


def _sentence(question: str) -> str:
    """A question as a sentence of its own."""
    return f"{question[0].upper()}{question[1:]}{'' if question[-1] in '.?!' else '.'}"
