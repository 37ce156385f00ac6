"""How a new generation is made: from scratch, or from a candidate, its parent.

``fresh``     a new generation
``regrow``    the parent's answer is cut, and the policy continues it; then, in a set, the other answers
``branch``    as ``regrow``, but the first token that was cut off is forbidden: a confident policy would repeat it
``extend``    the parent is answer 1 of a set, and the policy writes the others
``repair``    the prompt shows the parent with what it got wrong, or its scores, and asks for better answers
``cross``     the prompt shows two parents, each better where the other is worse, and asks for answers as good as both

The last two are for models that follow instructions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vpo.search.candidates import Candidate, Move, SearchProblem
from vpo.tasks import Message, Task
from vpo.util.errors import InputError, nearest

OPERATORS = ("fresh", "regrow", "branch", "extend", "repair", "cross")

REPAIRING = {"fresh": 0.25, "repair": 0.5, "cross": 0.25}


@dataclass(frozen=True)
class GenerationRequest:
    """A prompt, and the beginning of the completion where the policy does not write it.

    Attributes:
        messages: of the chat.
        prefix: the beginning of the completion.
        known: how many whole answers the prefix holds.
        avoided: a continuation whose first token is forbidden.
        max_tokens: of the completion; None for as many as the generator samples.
    """

    messages: list[Message]
    prefix: str = ""
    known: int = 0
    avoided: str = ""
    max_tokens: int | None = None


def check_operators(operators: Mapping[str, float], answers: int, unsupported: Mapping[str, str]) -> dict[str, float]:
    """The operators with a share above 0; raises for those that cannot be used.

    Args:
        operators: how often each is used, in proportion.
        answers: per generation.
        unsupported: operators that the generator does not support, and why.
    """
    for name, share in operators.items():
        if name not in OPERATORS:
            raise InputError(f"operator {name!r} is not known: {nearest(name, OPERATORS)}")
        if not 0 <= share < float("inf"):
            raise InputError(f"the share of operator {name} must be 0 or more, not {share}")
        if share and name in unsupported:
            raise InputError(f"operator {name} {unsupported[name]}")
        if share and name == "extend" and answers == 1:
            raise InputError("operator extend needs 2 or more answers per generation, not 1")
    used = {name: share for name, share in operators.items() if share > 0}
    if not used:
        raise InputError("operators must name 1 or more with a share above 0")
    return used


def default_operators(task: Task[Any], answers: int, unsupported: Mapping[str, str]) -> dict[str, float]:
    """The shares of operators where none are set.

    Where the task says what is wrong with an answer, mostly ``repair``. Else equal shares of ``fresh``, of the best
    supported variation of a parent, and for sets of ``extend``.
    """
    if task.repairs:
        return dict(REPAIRING)
    variation = next(name for name in ("branch", "regrow", "repair") if name not in unsupported)
    used = ["fresh", variation, *(["extend"] if answers > 1 and "extend" not in unsupported else [])]
    return {name: 1 / len(used) for name in used}


def request_for_move(
    task: Task[Any], problem: SearchProblem, move: Move, answers: int, weights: Sequence[float] | None
) -> GenerationRequest:
    """The prompt of a move.

    Args:
        task: of the problem.
        problem: with its goal.
        move: by the strategy.
        answers: per generation.
        weights: that the prompt states, for a policy trained with the target in its prompt.
    """
    if move.operator in ("repair", "cross"):
        return GenerationRequest(
            task.ask(problem.problem, answers, weights, review=_review(task, problem, move, answers))
        )
    messages = task.ask(problem.problem, answers, weights)
    if move.parent is None:
        return GenerationRequest(messages)
    answer = move.parent.answer or ""
    form = task.form
    opening, closing = (form.opening(0), form.closing(0) + form.separator) if answers > 1 else ("<answer>", "</answer>")
    if move.operator == "extend":
        return GenerationRequest(messages, f"{opening}{form.encode(answer)}{closing}", known=1)
    tagged = answers > 1 or task.wraps_single
    begun = form.begin(answer, move.kept) if answers > 1 else answer[: move.kept]
    text = form.encode(answer) if answers > 1 else answer
    avoided = text[len(begun) :] + (closing if tagged else "") if move.operator == "branch" else ""
    return GenerationRequest(messages, (opening if tagged else "") + begun, avoided=avoided)


def _review(task: Task[Any], problem: SearchProblem, move: Move, answers: int) -> str:
    """The parents of a move with what they got wrong, and what to do about it."""
    parents = [each for each in (move.parent, move.second) if each is not None]
    several = len(parents) > 1
    shown = [
        f"{f'Earlier answer {letter}' if several else 'An earlier answer'}:\n\n"
        f"{task.in_set(problem.problem, parent.answer or '')}\n\n"
        f"{parent.feedback or _scores_text(task, problem, parent)}"
        for letter, parent in zip("AB", parents, strict=False)
    ]
    wanted = task.improvement(len(parents))
    ways = f" Do so in {answers} different ways." if answers > 1 else ""
    goal = "" if problem.goal.is_own else f" What counts now is: {problem.goal.name}."
    return "\n\n".join([*shown, f"{wanted}.{ways}{goal}"])


def _scores_text(task: Task[Any], problem: SearchProblem, parent: Candidate) -> str:
    """The scores of a parent in words."""
    assert parent.scores is not None
    by_name = dict(zip(task.names_of(problem.problem), parent.scores, strict=True))
    scores = ", ".join(f"{name} {score:.2f}" for name, score in by_name.items())
    lacking = [name for name, score in by_name.items() if score < 1]
    return f"It scored, out of 1: {scores}." + (f" It falls short on: {', '.join(lacking)}." if lacking else "")
