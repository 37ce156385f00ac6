"""Records of what was done: the command, the time, and where two records differ."""

import math
import re
import shlex
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PASSWORD = re.compile(r"(://)[^\s@]*@")  # user and password of an address


def command_line() -> str:
    """The command that is running, such as "vpo eval embedded", for records. Passwords in addresses are left out."""
    arguments = [PASSWORD.sub(r"\1…@", each) for each in sys.argv[1:]]
    return shlex.join([Path(sys.argv[0]).stem.replace("__main__", "vpo"), *arguments])


def now() -> str:
    """The time in UTC, such as "2026-01-31T12:00:00Z", for records."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def first_difference(one: Any, other: Any, name: str = "") -> str:
    """Where two JSON-like values differ first, such as "scorers.0.model"; empty where they are equal.

    Numbers may differ by a thousandth: models compute slightly different numbers on every machine.
    """
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        pairs = [(key, one.get(key), other.get(key)) for key in dict.fromkeys([*one, *other])]
    elif isinstance(one, list | tuple) and isinstance(other, list | tuple) and len(one) == len(other):
        pairs = [(str(index), *pair) for index, pair in enumerate(zip(one, other, strict=True))]
    elif isinstance(one, float) or isinstance(other, float):
        numbers = isinstance(one, int | float) and isinstance(other, int | float)
        return "" if numbers and math.isclose(one, other, rel_tol=1e-3, abs_tol=1e-6) else name
    else:
        return "" if one == other else name
    differences = (first_difference(left, right, f"{name}.{key}" if name else key) for key, left, right in pairs)
    return next((path for path in differences if path), "")
