"""What a form of m answers is: how a prompt asks for them, how they are written, and how they are read."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from vpo.tasks.reading import Section

Message: TypeAlias = dict[str, str]
SHOWN = 4  # answers of an example that are shown in full; of more, the first two and the last


@dataclass(frozen=True)
class Example:
    """An invented question, and different answers to it in a task's own form.

    Attributes:
        question: in a sentence or two.
        answers: two or more.
        before: what a completion has before its first answer, such as thoughts that the task requires.
    """

    question: str
    answers: tuple[str, ...]
    before: str = ""


class Form(ABC):
    """A form of several answers in one completion. A single answer is written in the task's own form."""

    name: ClassVar[str]
    summary: ClassVar[str]
    how: ClassVar[str]  # the sentence of a prompt that describes the form
    separator: ClassVar[str] = "\n"  # between two answers
    end: ClassVar[str] = ""  # after the last one

    @abstractmethod
    def opening(self, index: int) -> str:
        """The text that begins an answer, by its index from 0."""

    @abstractmethod
    def closing(self, index: int) -> str:
        """The text that ends an answer; empty where the next one's opening does."""

    @abstractmethod
    def sections(self, completion: str, answers: int) -> list[Section]:
        """The answers that a completion opens in this form, in its order. Takes linear time, and never raises."""

    def encode(self, text: str) -> str:
        """The text of an answer as it stands in this form."""
        return text

    def begin(self, text: str, kept: int) -> str:
        """The first characters of an answer as they stand in this form."""
        whole = self.encode(text)
        start = whole.find(text)
        return self.encode(text[:kept]) if start < 0 else whole[: start + kept]

    def write(self, texts: Sequence[str]) -> str:
        """Several answers in this form."""
        numbered = enumerate(map(self.encode, texts))
        written = [f"{self.opening(index)}{text}{self.closing(index)}" for index, text in numbered]
        return self.separator.join(written) + self.end

    def ask(self, messages: Sequence[Message], answers: int, example: Example | None) -> list[Message]:
        """A prompt that asks for several answers: by default, at the end of its last message."""
        *before, last = messages
        return [*before, {**last, "content": f"{last['content']}\n\n{self.request(answers, example)}"}]

    def request(self, answers: int, example: Example | None) -> str:
        """The text that asks for several answers: what is wanted, and the form, filled in by an example."""
        wanted = self.wanted(answers)
        if example is None:
            return f"{wanted} Use this format:\n\n{self.shown(('your first answer', 'a different answer'), answers)}"
        return (
            f"{wanted} This is the format, with answers to another question ({example.question}):\n\n"
            f"{example.before}{self.shown(example.answers, answers)}"
        )

    def wanted(self, answers: int) -> str:
        """The sentences that say what is wanted, without the example."""
        return (
            f"Give {answers} different answers, numbered 1 to {answers}. Each one should be complete and as good as "
            "you can make it, and take another approach than the others. If you reason, do so once, before the first "
            f"answer. {self.how}"
        )

    def shown(self, texts: Sequence[str], answers: int) -> str:
        """An example of a completion; the texts after the first are repeated where they are too few."""
        later = texts[1:] or texts
        every = [texts[0], *(later[index % len(later)] for index in range(answers - 1))]
        if answers <= SHOWN:
            return self.write(every)
        first, second, last = (
            f"{self.opening(index)}{self.encode(every[index])}{self.closing(index)}" for index in (0, 1, answers - 1)
        )
        return f"{first}{self.separator}{second}{self.separator}…\n{last}{self.end}"
