"""Rows of EvalPlus, MBPP+ and HumanEval+ (arXiv 2305.01210): inputs, and a solution that is run for the outputs.

Outputs are compared as EvalPlus does: by ``==``, and within a tolerance where floats are expected or the row has one.
Some tasks accept more: eight compare sets, three only whether there was a match, `find_zero` takes any zero,
`are_equivalent` (Mbpp/164) any result, `sum_div` (295) 0 too, `digit_distance_nums` (558) and `surface_Area` (581) the
result of another reading of the task.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from vpo.sandbox.verdicts import Case
from vpo.tasks.code.problem import WRAPPER, Check, Draft
from vpo.tasks.data import field, items
from vpo.util.errors import InputError

TOLERANCE = 1e-6  # for numbers, where a row has none
SETS = frozenset(
    [
        "similar_elements",
        "find_char_long",
        "common_in_nested_lists",
        "extract_singly",
        "larg_nnum",
        "intersection_array",
        "find_dissimilar",
        "Diff",
    ]
)
EITHER = "are_equivalent"  # its tests are wrong, so any result passes
MATCHERS = ("check_str", "text_match_three", "text_starta_endb")
MATCHER_WRAPPER = """\
def {wrapper}(*args):
    match = {entry}(*args)
    return match if isinstance(match, bool) else match is not None"""


def read_mbpp_plus(row: Mapping[str, Any], where: str) -> Draft:
    """Read a row of MBPP+."""
    name = field(row, "task_id", str, where)
    number = name.rpartition("/")[2]
    if not number.isdecimal():
        raise InputError(f"{where}: task_id must end in a number, not {name!r}")
    statement = field(row, "prompt", str, where).strip().strip('"').strip()
    return _draft(row, where, restorer(int(number)), statement=statement, setup="", solution="")


def read_humaneval_plus(row: Mapping[str, Any], where: str) -> Draft:
    """Read a row of HumanEval+. Its prompt is code, put before every answer since it may define helpers."""
    prompt = field(row, "prompt", str, where)
    statement = "Complete this function."
    return _draft(row, where, tuple, statement=statement, setup=prompt, solution=prompt, starter=prompt.strip())


def _draft(
    row: Mapping[str, Any],
    where: str,
    restore: Callable[[Sequence[Any]], tuple[Any, ...]],
    *,
    statement: str,
    setup: str,
    solution: str,
    starter: str = "",
) -> Draft:
    if "base_input" not in row:
        raise InputError(
            f"{where}: the row has no base_input: use the JSONL of EvalPlus, since rows on the hub have none"
        )
    entry = field(row, "entry_point", str, where)
    atol = float(field(row, "atol", (int, float), where)) or None
    inputs = [*items(row, "base_input", list, where), *_more(row, where)]
    if not inputs:
        raise InputError(f"{where}: base_input and plus_input must hold 1 or more inputs, not 0")
    wrapper = MATCHER_WRAPPER.format(wrapper=WRAPPER, entry=entry) if entry in MATCHERS else ""
    checks = []
    for number, values in enumerate(inputs):
        try:
            arguments = restore(values)
        except (TypeError, ValueError, IndexError, AttributeError) as error:
            raise InputError(f"{where}: input {number} does not fit this task ({error})") from None
        case = Case(arguments, None, None if wrapper else atol, _comparison(entry), _also(entry, arguments))
        checks.append(Check(case, wrapper))
    return Draft(
        id=field(row, "task_id", str, where),
        statement=statement,
        checks=tuple(checks),
        entry=entry,
        starter=starter,
        setup=setup,
        solution=solution + field(row, "canonical_solution", str, where),
        needs_outputs=True,
    )


def _more(row: Mapping[str, Any], where: str) -> list[Any]:
    """The additional inputs of plus_input; a task without any has an empty object there."""
    return items(row, "plus_input", list, where) if row.get("plus_input") else []


def _comparison(entry: str) -> str:
    if entry == "find_zero":
        return "zero"
    if entry == EITHER:
        return "anything"
    return "set" if entry in SETS else "evalplus"


def _also(entry: str, arguments: Sequence[Any]) -> tuple[Any, ...]:
    """Outputs that are accepted besides the solution's, where the task can be read in another way."""
    if entry == "sum_div":
        return (0,)
    if entry == "surface_Area":  # the height is the distance of the apex from the base, not the slant height
        edge, height = arguments
        return (round(edge**2 + 2 * edge * math.sqrt((edge / 2) ** 2 + height**2)),)
    if entry == "digit_distance_nums":  # digit by digit, from the right
        one, other = map(str, arguments)
        digits = max(len(one), len(other))
        return (sum(abs(int(a) - int(b)) for a, b in zip(one.zfill(digits), other.zfill(digits), strict=True)),)
    return ()


def tolerance(expected: Any, atol: float | None) -> float | None:
    """Absolute tolerance: the row's, or TOLERANCE where floats are expected."""
    numbers = expected if isinstance(expected, list | tuple) and expected else [expected]
    return TOLERANCE if atol is None and all(isinstance(each, float) for each in numbers) else atol


def restorer(number: int) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """The function that turns an input of a task of MBPP+, which is JSON, into arguments with tuples and sets."""
    for numbers, restore in RESTORERS.items():
        if number in numbers:
            return restore
    return tuple


def _tuples(items: Sequence[Any]) -> list[Any]:
    return [tuple(item) for item in items]


def _deep(value: Any) -> Any:
    return tuple(map(_deep, value)) if isinstance(value, list) else value


RESTORERS: dict[tuple[int, ...], Callable[[Sequence[Any]], tuple[Any, ...]]] = {
    # every argument is a tuple
    (2, 116, 132, 143, 222, 261, 273, 394, 399, 421, 424, 429, 470, 560, 579, 596, 616, 630, 726, 740, 744, 809): (
        lambda values: tuple(_tuples(values))
    ),
    # every argument is a list of tuples
    (63, 64, 70, 94, 120, 237, 272, 299, 400, 409, 417, 438, 473, 614, 780): lambda values: tuple(map(_tuples, values)),
    # the first is a list of tuples
    (75, 413, 444, 753): lambda values: (_tuples(values[0]), values[1]),
    # the second is a tuple
    (106, 750): lambda values: (values[0], tuple(values[1])),
    # a list of sets; an empty one is a dict
    (115,): lambda values: ([set(each) if isinstance(each, list) and each else {} for each in values[0]],),
    (124,): lambda values: (float(values[0]), complex(values[1])),
    (252,): lambda values: (complex(values[0]),),
    # the first is a tuple
    (250, 307, 405, 446, 617, 720, 763, 808): lambda values: (tuple(values[0]), *values[1:]),
    # every argument is a tuple of tuples
    (259, 401, 445): lambda values: tuple(tuple(_tuples(each)) for each in values),
    # a tuple in which lists are tuples
    (278,): lambda values: (tuple(tuple(each) if isinstance(each, list) else each for each in values[0]),),
    (722,): lambda values: ({key: tuple(value) for key, value in values[0].items()}, *values[1:]),
    # nested tuples
    (580, 615, 791): lambda values: tuple(map(_deep, values)),
}
