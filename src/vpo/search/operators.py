"""What can be asked of a policy in a search: a fresh sample, or something out of a candidate that is there.

``fresh``     a new generation
``regrow``    a parent's answer, cut off somewhere, for the policy to finish; then, in a set, the other answers
``branch``    the same, but not with the token that stood there: a policy that is sure of itself would write that again
``extend``    a parent as answer 1 of a set, for the policy to write the others
``refine``    a parent shown with its scores, and a better answer asked for: for instruction-tuned models
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vpo.search.candidates import Move, SearchProblem
from vpo.tasks import Message, Task
from vpo.util.errors import InputError, nearest

OPERATORS = ("fresh", "regrow", "branch", "extend", "refine")


@dataclass(frozen=True)
class GenerationRequest:
    """A prompt, and the beginning of the completion, which the policy goes on from.

    Attributes:
        messages: of the chat.
        prefix: with which the completion begins.
        known: how many answers the prefix already holds whole.
        avoided: how the completion must not go on; the first token of it is barred.
    """

    messages: list[Message]
    prefix: str = ""
    known: int = 0
    avoided: str = ""


def check_operators(given: dict[str, float], answers: int, unable: Mapping[str, str]) -> dict[str, float]:
    """Return operators with their shares, refusing those that cannot be used.

    Args:
        given: how often each is used, in proportion.
        answers: that a generation is asked for.
        unable: operators that what writes cannot carry out, and why.
    """
    for name, share in given.items():
        if name not in OPERATORS:
            raise InputError(f"operator {name!r} is not known: {nearest(name, OPERATORS)}")
        if not 0 <= share < float("inf"):
            raise InputError(f"the share of operator {name} must be 0 or more, not {share}")
        if share and name in unable:
            raise InputError(f"operator {name} {unable[name]}")
        if share and name == "extend" and answers == 1:
            raise InputError("operator extend needs a policy that is asked for 2 or more answers, not 1")
    used = {name: share for name, share in given.items() if share > 0}
    if not used:
        raise InputError("operators must name 1 or more with a share above 0")
    return used


def default_operators(answers: int, unable: Mapping[str, str]) -> dict[str, float]:
    """Return what is used where nothing else is said: in equal shares, the best way there is to vary a parent."""
    varied = next(name for name in ("branch", "regrow", "refine") if name not in unable)
    used = ["fresh", varied, *(["extend"] if answers > 1 and "extend" not in unable else [])]
    return {name: 1 / len(used) for name in used}


def request_for_move(
    task: Task[Any], case: SearchProblem, move: Move, answers: int, stated: Sequence[float] | None
) -> GenerationRequest:
    """Return the prompt of a move.

    Args:
        task: that asks.
        case: the problem and its goal.
        move: what the strategy chose.
        answers: that a generation is asked for.
        stated: a weighting for the prompt, for a policy that was trained to be told one.
    """
    messages = task.ask(case.problem, answers, stated)
    if move.parent is None:
        return GenerationRequest(messages)
    text = move.parent.answer or ""
    opening, closing = ("<answer_1>", "</answer_1>\n") if answers > 1 else ("<answer>", "</answer>")
    if move.operator == "extend":
        return GenerationRequest(messages, f"{opening}{text}{closing}", known=1)
    if move.operator in ("regrow", "branch"):
        begun = opening if answers > 1 or task.wraps_single else ""
        kept = int(move.cut * len(text))
        avoided = text[kept:] + (closing if begun else "") if move.operator == "branch" else ""
        return GenerationRequest(messages, begun + text[:kept], avoided=avoided)
    *before, last = messages
    return GenerationRequest([*before, {**last, "content": f"{last['content']}\n\n{_review(task, case, move, text)}"}])


def _review(task: Task[Any], case: SearchProblem, move: Move, text: str) -> str:
    """Return a candidate and what became of it, in words."""
    assert move.parent is not None
    assert move.parent.scores is not None
    named = dict(zip(task.names_of(case.problem), move.parent.scores, strict=True))
    scores = ", ".join(f"{name} {score:.2f}" for name, score in named.items())
    lacking = [name for name, score in named.items() if score < 1]
    return (
        f"An earlier answer was:\n{text}\n\nIt scored, out of 1: {scores}."
        + (f" It falls short on: {', '.join(lacking)}." if lacking else "")
        + f"\nWhat counts now is: {case.goal.name}. Write a better one, in the form asked for above."
    )
