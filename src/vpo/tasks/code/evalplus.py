"""Rows of EvalPlus, MBPP+ and HumanEval+ (arXiv 2305.01210): inputs, and a solution that is run for the outputs.

What EvalPlus accepts besides equality is here too: numbers within a tolerance, eight tasks whose results are sets,
three of which only counts whether they found something, and any zero for `find_zero`. What it accepts further is not:
anything at all for Mbpp/164 (are_equivalent), 0 for Mbpp/295 (sum_div), and another reading of Mbpp/558
(digit_distance_nums) and Mbpp/581 (surface_Area). There only what the solution returns is right.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from vpo.sandbox.verdicts import Case
from vpo.tasks.code.problem import THROUGH, Check, Draft
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
FOUND = ("check_str", "text_match_three", "text_starta_endb")
FOUND_THROUGH = """\
def {through}(*args):
    found = {entry}(*args)
    return found if isinstance(found, bool) else found is not None"""


def read_mbpp_plus(row: Mapping[str, Any], place: str) -> Draft:
    """Return a row of MBPP+."""
    name = field(row, "task_id", str, place)
    number = name.rpartition("/")[2]
    if not number.isdecimal():
        raise InputError(f"{place}: task_id must end in a number, not {name!r}")
    statement = field(row, "prompt", str, place).strip().strip('"').strip()
    return _draft(row, place, restored(int(number)), statement=statement, setup="", solution="")


def read_humaneval_plus(row: Mapping[str, Any], place: str) -> Draft:
    """Return a row of HumanEval+. Its prompt is code, which stands before every answer: it may have helpers."""
    prompt = field(row, "prompt", str, place)
    statement = "Complete this function."
    return _draft(row, place, tuple, statement=statement, setup=prompt, solution=prompt, starter=prompt.strip())


def _draft(
    row: Mapping[str, Any],
    place: str,
    restore: Callable[[Sequence[Any]], tuple[Any, ...]],
    *,
    statement: str,
    setup: str,
    solution: str,
    starter: str = "",
) -> Draft:
    if "base_input" not in row:
        raise InputError(
            f"{place}: the row has no base_input: take the JSONL of EvalPlus, as rows on the hub have none"
        )
    entry = field(row, "entry_point", str, place)
    atol = float(field(row, "atol", (int, float), place)) or None
    inputs = [*items(row, "base_input", list, place), *_more(row, place)]
    if not inputs:
        raise InputError(f"{place}: base_input and plus_input must hold 1 or more inputs, not 0")
    through = FOUND_THROUGH.format(through=THROUGH, entry=entry) if entry in FOUND else ""
    checks = []
    for number, given in enumerate(inputs):
        try:
            arguments = restore(given)
        except (TypeError, ValueError, IndexError, AttributeError) as error:
            raise InputError(f"{place}: input {number} is not one of this task ({error})") from None
        checks.append(Check(Case(arguments, None, None if through else atol, _comparison(entry)), through))
    return Draft(
        id=field(row, "task_id", str, place),
        statement=statement,
        checks=tuple(checks),
        entry=entry,
        starter=starter,
        setup=setup,
        solution=solution + field(row, "canonical_solution", str, place),
        unmade=True,
    )


def _more(row: Mapping[str, Any], place: str) -> list[Any]:
    """Return the further inputs; a task without any has an empty object there."""
    return items(row, "plus_input", list, place) if row.get("plus_input") else []


def _comparison(entry: str) -> str:
    if entry == "find_zero":
        return "zero"
    return "set" if entry in SETS else "value"


def tolerance(expected: Any, atol: float | None) -> float | None:
    """Return how far a number may be off: as the row says, else a little where numbers are expected."""
    numbers = expected if isinstance(expected, list | tuple) and expected else [expected]
    return TOLERANCE if atol is None and all(isinstance(each, float) for each in numbers) else atol


def restored(number: int) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """Return what makes the arguments of a task of MBPP+ out of its JSON, which has lists alone."""
    for numbers, restore in RESTORED.items():
        if number in numbers:
            return restore
    return tuple


def _tuples(items: Sequence[Any]) -> list[Any]:
    return [tuple(item) for item in items]


def _deep(value: Any) -> Any:
    return tuple(map(_deep, value)) if isinstance(value, list) else value


RESTORED: dict[tuple[int, ...], Callable[[Sequence[Any]], tuple[Any, ...]]] = {
    # every argument is a tuple
    (2, 116, 132, 143, 222, 261, 273, 394, 399, 421, 424, 429, 470, 560, 579, 596, 616, 630, 726, 740, 744, 809): (
        lambda given: tuple(_tuples(given))
    ),
    # every argument is a list of tuples
    (63, 64, 70, 94, 120, 237, 272, 299, 400, 409, 417, 438, 473, 614, 780): lambda given: tuple(map(_tuples, given)),
    # the first is a list of tuples
    (75, 413, 444, 753): lambda given: (_tuples(given[0]), given[1]),
    # the second is a tuple
    (106, 750): lambda given: (given[0], tuple(given[1])),
    # a list of sets, of which an empty one is a dict
    (115,): lambda given: ([set(each) if isinstance(each, list) and each else {} for each in given[0]],),
    (124,): lambda given: (float(given[0]), complex(given[1])),
    (252,): lambda given: (complex(given[0]),),
    # the first is a tuple
    (250, 307, 405, 446, 617, 720, 763, 808): lambda given: (tuple(given[0]), *given[1:]),
    # every argument is a tuple of tuples
    (259, 401, 445): lambda given: tuple(tuple(_tuples(each)) for each in given),
    # a tuple in which lists are tuples
    (278,): lambda given: (tuple(tuple(each) if isinstance(each, list) else each for each in given[0]),),
    (722,): lambda given: ({key: tuple(value) for key, value in given[0].items()}, *given[1:]),
    # tuples however deep
    (580, 615, 791): lambda given: tuple(map(_deep, given)),
}
