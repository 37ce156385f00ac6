"""What a task may define beyond scores: pictures of its problems and answers, and what a search makes of answers."""

from collections.abc import Sequence
from typing import ClassVar, Generic, TypeVar

from vpo.tasks.lines import line_ends
from vpo.util.errors import InputError

P = TypeVar("P")


class PictureHooks(Generic[P]):
    """Pictures of problems and answers, for terminals, files and pages. By default there are none."""

    name: ClassVar[str]

    def picture(self, problem: P, answers: Sequence[str], *, colour: bool) -> str | None:
        """A problem and answers as a picture for a terminal, or None for a task without pictures."""
        return None

    def draw(self, problem: P, answers: Sequence[str], path: str) -> None:
        """Draw a problem and answers into a .png or .svg file."""
        raise InputError(f"task {self.name} has no pictures")

    def scene(self, problem: P) -> str | None:
        """A problem as an SVG drawing for a page, or None for a task without pictures."""
        return None

    def trace(self, problem: P, answer: str) -> str:
        """An answer as the points of an SVG line over the scene."""
        return ""


class SearchHooks(Generic[P]):
    """What a search makes of answers besides their scores.

    Attributes:
        repairs: whether `feedback_all` says what an answer got wrong. A search then repairs its parents by default.
        keeps_limits: whether each answer is scored in a process of its own, with limits: a search needs no others.
    """

    repairs: ClassVar[bool] = False
    keeps_limits: ClassVar[bool] = False

    def starts(self, problem: P) -> list[str]:
        """Answers that a search begins with. They cost nothing of its budget."""
        return []

    def steps(self, problem: P, answer: str) -> list[int]:
        """The positions at which the steps of an answer end: `tree` cuts and continues it there.

        Ascending, each above 0. By default, the ends of its lines but the last. Called in the process of the search
        for whatever a policy writes: it must be quick, run nothing of the answer, and not raise.
        """
        return line_ends(answer)

    def score_partial(self, problem: P, prefix: str) -> tuple[float, ...] | None:
        """The most that an answer which begins so can score on each objective; None where nothing is known.

        An optimistic estimate will do: a prefix whose score is too low is not continued. Called as `steps` is.
        """
        return None

    def resolve(self, problem: P, answer: str, parent: str | None) -> str:
        """The whole answer that an answer stands for.

        Override it where an answer may be changes to the parent that its prompt showed. Raise ValueError with the
        reason for one that cannot be applied.
        """
        return answer

    def whole(self, problem: P, text: str) -> str:
        """A text that is known to be a whole answer, as `resolve` returns one."""
        return text

    def feedback_all(
        self, problems: Sequence[P], answers: Sequence[str], vectors: Sequence[Sequence[float]]
    ) -> list[str]:
        """What each answer, with these scores, got wrong, for a prompt that asks to repair it; empty for scores alone.

        It must say nothing of tests that are held out from the reward.
        """
        return [""] * len(answers)

    def why_unscored(self, problem: P, answer: str) -> str:
        """Why an answer, whose score was None in the last call of `score_all`, has none; empty where nobody knows."""
        return ""

    def improvement(self, parents: int) -> str:
        """What a prompt asks for after one earlier answer with its feedback, or two that complement each other."""
        return "Repair it" if parents == 1 else "Each does what the other fails to do: write an answer that does both"
