"""How well tool calls match the gold calls: keys and values of their arguments, over the best pairing of calls."""

import json
from collections.abc import Sequence
from math import fsum
from typing import Any

from vpo.tasks.text import f1
from vpo.tasks.toolrl import bfcl
from vpo.tasks.toolrl.problem import Call


def match_arguments(calls: Sequence[Call], gold: Sequence[Call]) -> tuple[float, float]:
    """arg_key and arg_value: means over aligned calls, with 0 for every unmatched call on either side."""
    names = {call.name for call in gold} - {None}
    pairs = [
        pair
        for name in names
        for pair in _align([call for call in calls if call.name == name], [call for call in gold if call.name == name])
    ]
    total = len(calls) + len(gold) - len(pairs)
    if total == 0:
        return 1.0, 1.0
    # `fsum` rounds once, so the score does not depend on the order of calls, or of a set of names.
    return fsum(keys for keys, _ in pairs) / total, fsum(values for _, values in pairs) / total


def _align(calls: Sequence[Call], gold: Sequence[Call]) -> list[tuple[float, float]]:
    """(key match, value match) of each pair in the best pairing of calls of one tool: best by keys, then by values.

    The order of the calls does not count.
    """
    matches = [[(_keys(call, expected), _values(call, expected)) for call in calls] for expected in gold]
    if len(calls) <= 1 and len(gold) <= 1:
        return [pair for row in matches for pair in row]
    from scipy.optimize import linear_sum_assignment  # slow to import

    # The factor is so large that values never outweigh a difference in keys.
    total = [[keys * 1e6 + values for keys, values in row] for row in matches]
    return [matches[i][j] for i, j in zip(*linear_sum_assignment(total, maximize=True), strict=True)]


def _keys(call: Call, gold: Call) -> float:
    """The F1 of the keys, without the optional ones."""
    return f1(call.parameters.keys() - gold.optional, gold.parameters.keys())


def _values(call: Call, gold: Call) -> float:
    """The mean match over the gold keys and those optional ones that the call has; 1 without any."""
    keys = [*gold.parameters, *(gold.optional & call.parameters.keys())]
    matches = [_value(call.parameters[key], key, gold) if key in call.parameters else 0.0 for key in keys]
    return fsum(matches) / len(matches) if matches else 1.0


def _value(value: Any, key: str, gold: Call) -> float:
    argument = gold.arguments.get(key)
    return match(value, gold.parameters[key]) if argument is None else bfcl.match(value, argument)


def match(value: Any, gold: Any) -> float:
    """How well a value matches, 0 to 1: text by word F1, lists by F1 of their items, anything else exactly.

    A value of another type does not match: the text "true" is not true, and "5" is not 5.
    """
    if isinstance(gold, str):
        return f1(value.lower().split(), gold.lower().split()) if isinstance(value, str) else 0.0
    if isinstance(gold, list):
        return f1(map(canonical, value), map(canonical, gold)) if isinstance(value, list) else 0.0
    return float(canonical(value) == canonical(gold))


def canonical(value: Any) -> str:
    """A text that is the same for equal JSON values: 5 and 5.0 are equal, 1 and true are not."""
    return json.dumps(_plain(value), sort_keys=True)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
