"""Rows of programming contests: LiveCodeBench (arXiv 2403.07974), DeepCoder, CodeContests (arXiv 2203.07814)."""

import base64
import binascii
import io
import json
import pickle
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from vpo.sandbox.verdicts import Case
from vpo.tasks.code.answers import read_program
from vpo.tasks.code.problem import Check, Draft
from vpo.tasks.data import field, items
from vpo.util.errors import InputError

LARGEST = 1 << 29  # bytes of the tests of a row, decompressed
PYTHON3 = 3  # the number of its language in CodeContests

# What those who write for these sites need not import.
IMPORTS = """\
import bisect, collections, functools, heapq, itertools, math, operator, random, re, string, sys
from bisect import *
from collections import *
from functools import *
from heapq import *
from itertools import *
from math import *
from typing import *"""


def read_livecodebench(row: Mapping[str, Any], place: str) -> Draft:
    """Return a row of code_generation_lite."""
    public = _json(field(row, "public_test_cases", str, place), f"{place}: public_test_cases")
    private = read_private(field(row, "private_test_cases", str, place), f"{place}: private_test_cases")
    metadata = _json(field(row, "metadata", str, place), f"{place}: metadata")
    if not isinstance(public, list) or not isinstance(private, list) or not isinstance(metadata, dict):
        raise InputError(f"{place}: tests must be lists, and metadata an object")
    starter = row.get("starter_code") or ""
    return _draft(
        _tests_in_lines([*public, *private], place),
        metadata.get("func_name"),
        place,
        id=field(row, "question_id", str, place),
        statement=field(row, "question_content", str, place).strip(),
        starter=starter,
    )


def read_deepcoder(row: Mapping[str, Any], place: str) -> Draft:
    """Return a row of DeepCoder-Preview: tests as one object of lists (TACO), or as a list of objects (the others)."""
    tests = _json(field(row, "tests", str, place), f"{place}: tests")
    name: Any = None
    if isinstance(tests, dict):
        pairs = _pairs(tests, "inputs", "outputs", f"{place}: tests")
        name = tests.get("fn_name")
        pairs = [(_arguments(given), _unwrapped(due)) for given, due in pairs] if name else pairs
    else:
        first = tests[0] if isinstance(tests, list) and tests and isinstance(tests[0], dict) else {}
        name = first.get("fn_name") or (first.get("metadata") or {}).get("func_name")
        pairs = _tests_in_lines(tests, place)
    solutions = row.get("solutions") or []
    return _draft(
        pairs,
        name,
        place,
        id=str(row.get("id") or place.rpartition("/")[2]),
        statement=field(row, "problem", str, place).strip(),
        starter=row.get("starter_code") or "",
        solution=read_program(solutions[0]) if solutions and isinstance(solutions[0], str) else None,
    )


def read_codecontests(row: Mapping[str, Any], place: str) -> Draft:
    """Return a row of CodeContests: as published, with three dicts of tests, or with one of them, `tests`."""
    if "tests" in row:
        parts, names = ["tests"], ("inputs", "outputs")
    else:
        parts, names = ["public_tests", "private_tests", "generated_tests"], ("input", "output")
    pairs = [pair for part in parts for pair in _pairs(field(row, part, dict, place), *names, f"{place}: {part}")]
    return _draft(
        pairs,
        None,
        place,
        id=str(row.get("id") or field(row, "name", str, place)),
        statement=field(row, "problem" if "problem" in row else "description", str, place).strip(),
        starter="",
        solution=_in_python(row.get("solutions")),
    )


def read_private(text: str, place: str) -> Any:
    """Return the private tests of LiveCodeBench: JSON, or JSON that was pickled, compressed and put into base64.

    Only plain values are unpickled: a pickle that names anything to import is refused.
    """
    if text.lstrip().startswith("["):
        return _json(text, place)
    try:
        packed = base64.b64decode(text, validate=True)
        unpacker = zlib.decompressobj()
        unpacked = unpacker.decompress(packed, LARGEST)
        if unpacker.unconsumed_tail:
            raise InputError(f"{place}: the tests must come to at most {LARGEST} bytes")
        written = _PlainUnpickler(io.BytesIO(unpacked)).load()
    except InputError:
        raise
    except (binascii.Error, ValueError, zlib.error) as error:
        raise InputError(f"{place}: the tests cannot be decompressed ({error})") from None
    except Exception as error:  # a pickle that is broken raises whatever it likes
        raise InputError(f"{place}: the tests cannot be unpickled ({type(error).__name__}: {error})") from None
    if not isinstance(written, str):
        raise InputError(f"{place}: the pickle must hold text, not {type(written).__name__}")
    return _json(written, place)


class _PlainUnpickler(pickle.Unpickler):
    """Makes plain values alone."""

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        """Refuse everything that is imported."""
        raise pickle.UnpicklingError(f"it asks for {module_name}.{global_name}")


def _draft(
    pairs: Sequence[tuple[Any, Any]],
    name: Any,
    place: str,
    *,
    id: str,
    statement: str,
    starter: str,
    solution: str | None = None,
) -> Draft:
    """Return a draft whose program reads standard input, or is the function of a name."""
    if not pairs:
        raise InputError(f"{place}: the row must hold 1 or more tests, not 0")
    if name is None:
        cases = [Case(_text(given, place), _text(due, place), compare="text") for given, due in pairs]
        return Draft(id, statement, tuple(map(Check, cases)), starter=starter, solution=solution)
    entry = f"Solution.{name}" if "class Solution" in (starter or solution or "") else str(name)
    checks = tuple(Check(Case(given, due)) for given, due in pairs)
    return Draft(id, statement, checks, entry=entry, starter=starter, setup=IMPORTS, solution=solution)


def _text(value: Any, place: str) -> str:
    """Return what is given to a program or printed by it: a text, or the lines of one."""
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "\n".join(value)
    if not isinstance(value, str):
        raise InputError(f"{place}: input and output of a test must be text where no function is named")
    return value


def _tests_in_lines(tests: Any, place: str) -> list[tuple[Any, Any]]:
    """Return inputs and outputs of a list of tests; those of a function are JSON, an argument a line."""
    if not isinstance(tests, list):
        raise InputError(f"{place}: tests must be a list, not {type(tests).__name__}")
    pairs: list[tuple[Any, Any]] = []
    for number, test in enumerate(tests):
        where = f"{place}: test {number}"
        if not isinstance(test, dict) or not {"input", "output"} <= test.keys():
            raise InputError(f"{where} must be an object with input and output")
        given, due = test["input"], test["output"]
        if test.get("testtype") == "functional":
            lines = field(test, "input", str, where).split("\n")
            given = tuple(_json(line, f"{where}: input") for line in lines if line.strip())
            due = _json(field(test, "output", str, where), f"{where}: output")
        elif test.get("type") == "function_call":
            given, due = _arguments(given), _unwrapped(due)
        pairs.append((given, due))
    return pairs


def _pairs(tests: Mapping[str, Any], given: str, due: str, place: str) -> list[tuple[Any, Any]]:
    """Return inputs and outputs that stand in two lists."""
    kinds = (str, list, dict, int, float, type(None))
    inputs, outputs = items(tests, given, kinds, place), items(tests, due, kinds, place)
    if len(inputs) != len(outputs):
        raise InputError(f"{place}: there are {len(inputs)} {given} and {len(outputs)} {due}")
    return list(zip(inputs, outputs, strict=True))


def _arguments(given: Any) -> tuple[Any, ...]:
    return tuple(given) if isinstance(given, list) else (given,)


def _unwrapped(due: Any) -> Any:
    """Return the one value that stands in a list, as the outputs of functions do there."""
    return due[0] if isinstance(due, list) and len(due) == 1 else due


def _in_python(solutions: Any) -> str | None:
    """Return the first solution in Python 3, where there is one."""
    if not isinstance(solutions, Mapping):
        return None
    written = zip(solutions.get("language") or (), solutions.get("solution") or (), strict=False)
    return next((source for language, source in written if language == PYTHON3), None)


def _json(text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place} must be JSON ({error})") from None
